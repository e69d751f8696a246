"""What `check` reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from gradtrace.model.graph import Graph
from gradtrace.model.site import Site
from gradtrace.model.truths import Truth

if TYPE_CHECKING:
    from gradtrace.model.fix import Fix, Patch
    from gradtrace.model.manual import Manual


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
    #: the line that caused it, where the fix goes
    site: Site
    related: tuple[Related, ...] = ()
    occurrences: int = 1
    #: the error that it explains, "RuntimeError: message", its first line
    error: str | None = None
    #: the user's names of the parameters that it is about
    about: tuple[str, ...] = ()
    #: the ranks of the job that it was found on, in order; empty where there is one process
    ranks: tuple[int, ...] = ()

    @property
    def place(self) -> tuple[str, str, int]:
        """Rule, file and line: what makes two findings one."""
        return self.rule, *self.site.place


@dataclass(frozen=True, slots=True)
class Silenced:
    """A finding that the user silenced. `how` is "comment" or "baseline"."""

    finding: Finding
    how: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How the script ended. `how` is one of "finished", "stopped" (by --steps or a repeated call site), "exit"
    (sys.exit or os._exit), "exception", "interrupted" (Ctrl-C), "killed" (SIGTERM)."""

    how: str
    #: the exit status python itself would have had
    status: int = 0
    #: the uncaught exception, if any, as "RuntimeError: message"
    exception: str | None = None


#: an ability of torch: it lets others see the values of the tensors that operations saved
SAVED_VALUES = "saved tensor values"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a run must have for a rule to judge: so many backward calls and steps, and a torch with these abilities."""

    calls: int = 1
    steps: int = 0
    abilities: tuple[str, ...] = ()

    def __str__(self) -> str:
        counts = [(self.calls, "backward call"), (self.steps, "optimizer step")]
        words = [f"{number} {noun}{'s' * (number > 1)}" for number, noun in counts if number]
        return " and ".join(words)

    def unmet(self, calls: int, steps: int) -> str:
        """What was missing in a run with so many; empty where nothing was."""
        lacks = ((self.calls, calls, "backward call"), (self.steps, steps, "optimizer step"))
        return next((_lack(wanted, seen, noun) for wanted, seen, noun in lacks if seen < wanted), "")


def _lack(wanted: int, seen: int, noun: str) -> str:
    if not seen:
        return f"no {noun} was seen"
    return f"it takes {wanted} {noun}s, and {seen} {'was' if seen == 1 else 'were'} seen"


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A rule that lacked data, and which: "no optimizer step was seen"."""

    rule: str
    why: str


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
    #: rules that lacked data, in this run
    unjudged: tuple[Unjudged, ...] = ()
    #: the rules that were to judge
    rules: tuple[Manual, ...] = ()
    #: findings below this level do not fail
    fail_on: Level = Level.WARNING
    #: the directory that paths are relative to; None for the working directory
    root: str | None = None
    #: the file that the settings came from
    settings: str | None = None
    #: of each backward call site, where a form shows them
    graphs: tuple[Graph, ...] = ()
    #: what must hold of each sound run, and whether it held of this one
    truths: tuple[Truth, ...] = ()
    #: an internal error kept rules from judging
    incomplete: bool = False
    #: what to type to try edits for the findings; empty where none is known
    fix_command: str = ""
    #: edits that hold, where they were wanted, and the texts they were made in
    fixes: tuple[Fix, ...] = ()
    patch: Patch | None = None
