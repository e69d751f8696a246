"""Internal errors: which there were, and what is no longer watched because of them.

An observer that raised an error is not called again, nor is one that builds on it: what it would report from then on may
be wrong. Where it is not known what builds on the part that failed, watching stops altogether.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, get_args

from gradtrace.errors import first_line
from gradtrace.model.events import Event, Unseen
from gradtrace.watcher.core.observer import Observer

_KINDS: tuple[type, ...] = get_args(Event)
_CORE = __name__.rpartition(".")[0]
WHY = "an internal error stopped the watching for it"


class Failures:
    """Those of one watch."""

    def __init__(self, debug: bool) -> None:
        self._debug = debug
        #: there was one
        self.found = False
        #: how often each error occurred, by what to say of it
        self._errors: dict[str, int] = {}
        self.observers: Sequence[Observer] = ()
        #: by `id()`; the observers among them live as long as the watch
        self._stopped: set[int] = set()
        #: nothing is watched any more
        self.over = False

    def add(self, error: Exception, work: object) -> Unseen | None:
        """Stops what `work`, a callable or an observer, belongs to; gives what rules must know of it, if it is news."""
        self.found = True
        self._note(error)
        if self.over or self.has_stopped(work):
            return None
        owners = list(self._with_dependents(self._owner(work)))
        self._stopped.update(map(id, owners))
        kinds = frozenset(kind for one in owners if one.serves_rules for kind in _reported_by(one))
        if any(one.serves_rules and not _is_known(one) for one in owners) or not owners:
            self.over, kinds = True, frozenset()
        elif not kinds:
            return None
        return Unseen(tuple(sorted(kinds)), WHY, failed=True)

    def has_stopped(self, work: object) -> bool:
        """Whether this callable, or observer, belongs to what has stopped."""
        return self.over or (bool(self._stopped) and id(self._owner(work)) in self._stopped)

    def remarks(self) -> Iterator[str]:
        for text, count in self._errors.items():
            times = f", {count} times" if count > 1 else ""
            yield (
                f"internal error in gradtrace while watching ({text}{times}): faults may be missing below; "
                "run with --debug for the traceback"
            )

    def _note(self, error: Exception) -> None:
        with suppress(Exception):  # the text of an error may fail in its turn, and so may stderr
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = first_line(error)
            text = f"{text}, at {where.name}:{where.lineno}"
            self._errors[text] = self._errors.get(text, 0) + 1
            if self._debug and self._errors[text] == 1:
                traceback.print_exception(error)
            return
        self._errors[type(error).__name__] = self._errors.get(type(error).__name__, 0) + 1

    def _owner(self, work: object) -> Observer | None:
        """The observer whose method this is, or a method of a part of which it is."""
        part = getattr(work, "__self__", work)
        if isinstance(part, Observer):
            return part
        return next((one for one in self.observers if any(part is held for held in vars(one).values())), None)

    def _with_dependents(self, owner: Observer | None) -> Iterator[Observer]:
        waiting = [] if owner is None else [owner]
        met: list[Observer] = []
        while waiting:
            one = waiting.pop()
            met.append(one)
            yield one
            builds_on_it = (other for other in self.observers if any(held is one for held in vars(other).values()))
            waiting += [other for other in builds_on_it if other not in met and other not in waiting]


def _is_known(observer: Observer) -> bool:
    """Whether it is known what becomes of rules without this observer."""
    module = type(observer).__module__
    return module.rpartition(".")[0] != _CORE and bool(_reported_by(observer))


def _reported_by(observer: Observer) -> frozenset[str]:
    """The names of the events that an observer reports: its module imports them for that."""
    module: dict[str, Any] = vars(sys.modules[type(observer).__module__])
    return frozenset(value.__name__ for value in module.values() if isinstance(value, type) and value in _KINDS)
