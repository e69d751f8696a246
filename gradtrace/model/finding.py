"""What `check` reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from gradtrace.model.site import Site


class Level(IntEnum):
    """How bad: an ERROR makes gradients or updates wrong, a WARNING costs memory or time or is likely wrong."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Related:
    """A second place that matters for a finding, and what happened there."""

    site: Site
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault at one line, however often it occurred."""

    rule: str
    level: Level
    #: one sentence: what happened, in the user's names
    message: str
    #: what to type instead
    help: str
    #: the line that caused it, where the mend goes
    site: Site
    related: tuple[Related, ...] = ()
    occurrences: int = 1
    #: the error that it explains, "RuntimeError: message", its first line
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Silenced:
    """A finding that the user does not want to hear of. `how` is "comment" or "baseline"."""

    finding: Finding
    how: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the script ended. `how` is one of "finished", "stopped" (by --steps or a repeated call site), "exit"
    (sys.exit), "exception", "interrupted" (Ctrl-C), "killed" (os._exit or a signal)."""

    how: str
    #: the exit status python itself would have had
    status: int = 0
    #: the uncaught exception, if any, as "RuntimeError: message"
    exception: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The result of one `check`."""

    script: str
    findings: tuple[Finding, ...]
    ended: Ended
    torch: str
    backward_calls: int
    optimizer_steps: int
    exit_code: int
    #: what the reader must know about the watching itself (internal errors, what could not be seen)
    remarks: tuple[str, ...] = ()
    silenced: tuple[Silenced, ...] = ()
