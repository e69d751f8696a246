"""What a rule is: a small state machine fed by events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs, Related
from gradtrace.model.site import Stack
from gradtrace.rules.judging.intent import expects_error


class Rule(ABC):
    """One kind of fault. A fresh object judges each run; its state must not grow with the length of the run.

    The docstring of the rule's module is its manual.
    """

    #: public name
    id: ClassVar[str]
    level: ClassVar[Level]
    #: the kinds of events passed to it; of ordinary backward calls and steps only one per place, not each
    events: ClassVar[tuple[type[Any], ...]]
    #: the kinds of rank facts that it reads from the `Job` passed to it
    reads: ClassVar[tuple[type[Any], ...]] = ()
    #: rules whose findings at the same line it replaces, since they explain the fault less well
    covers: ClassVar[frozenset[str]] = frozenset()
    #: what a run must have for silence to mean that all is well
    needs: ClassVar[Needs] = Needs()

    @abstractmethod
    def see(self, event: Event) -> Iterable[Finding]:
        """The findings that this event completes."""

    def finding(
        self,
        stack: Stack,
        message: str,
        help: str,
        related: Iterable[tuple[Stack, str]] = (),
        level: Level | None = None,
    ) -> list[Finding]:
        """A finding at the innermost frame of `stack`, or nothing where that is unknown, or where a test wants the error.

        Related places that are unknown, or were named already, are left out.
        """
        related = list(related)
        if not stack or expects_error([stack, *(other for other, _ in related)]):
            return []
        seen = {stack[0].place}
        others = []
        for other, text in related:
            if other and other[0].place not in seen:
                seen.add(other[0].place)
                others.append(Related(other[0], text))
        return [Finding(self.id, level or self.level, message, help, stack[0], tuple(others))]
