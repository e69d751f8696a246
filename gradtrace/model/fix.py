"""What `fix` found: edits that hold, and findings without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gradtrace.model.finding import Finding


@dataclass(frozen=True, slots=True)
class Fix:
    """A finding with an edit that holds, and the numbers that show it."""

    finding: Finding
    #: what the edit does, in words
    title: str
    #: one line of what the run with the edit showed
    proof: str
    #: the file, with the text that the edit was made in (it holds the fixes before this one) and the text that it gave
    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Unfixed:
    """A finding without an edit that holds: how many were tried, and why they failed, an example for each reason."""

    finding: Finding
    tried: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Patch:
    """The texts of the edited files, as they were and with all fixes, by path."""

    before: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> list[str]:
        return [path for path in self.after if self.after[path] != self.before[path]]


@dataclass(frozen=True, slots=True)
class FixReport:
    """The result of one `fix`."""

    fixes: tuple[Fix, ...]
    unfixed: tuple[Unfixed, ...]
    patch: Patch
    #: the files hold the edits now
    written: bool = False
    #: Ctrl-C ended the search: findings that were not taken on are missing
    interrupted: bool = False
