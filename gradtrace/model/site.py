"""Places in the user's source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Site:
    """One frame of the user's code: the expression being evaluated in it.

    `line` and `end_line` count from 1; `column` and `end_column` count characters from 0, as Python's own tracebacks
    do, and are None where the interpreter does not tell them (Python 3.10).
    """

    path: str
    line: int
    function: str
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    #: the frame was entered through `nn.Module.__call__`: it is a `forward`
    in_module_call: bool = False

    def __hash__(self) -> int:
        """Of what nearly always tells sites apart: they are looked up at every call."""
        return hash((self.path, self.line, self.column))

    @property
    def place(self) -> tuple[str, int]:
        """File and line, to compare places."""
        return self.path, self.line


#: The user's frames at one moment, innermost first; library frames are left out.
Stack: TypeAlias = tuple[Site, ...]
