"""Places in the user's source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias


class Site(NamedTuple):
    """One frame of the user's code: the expression being evaluated in it.

    `line` and `end_line` count from 1; `column` and `end_column` count characters from 0, as Python's own tracebacks
    do, and are None where the interpreter does not know them (Python 3.10). A tuple, since places are looked up at every
    call.
    """

    path: str
    line: int
    function: str
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    #: the frame was entered through `nn.Module.__call__`: it is a `forward`
    in_module_call: bool = False

    @property
    def place(self) -> tuple[str, int]:
        """File and line, to compare places."""
        return self.path, self.line

    def plain(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        named = zip(self._fields, self, strict=True)
        return {
            name: value
            for name, value in named
            if name not in self._field_defaults or value != self._field_defaults[name]
        }


@dataclass(frozen=True, slots=True)
class Held:
    """What holds a module: an attribute of a class (`self.body.0` in `Block`) or a variable (`net.1`, no class)."""

    path: str
    kind: str
    expression: str


#: The user's frames at one moment, innermost first; library frames are left out.
Stack: TypeAlias = tuple[Site, ...]
