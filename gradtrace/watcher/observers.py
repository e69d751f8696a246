"""Makes the observers of a watch. They are found by being there: a class in one of these packages is one, and gets what
the types of its constructor's parameters name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_type_hints

from gradtrace.watcher import faults, gradients, parameters, ranks, truths
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session

#: in this order they get events: what becomes of a gradient first, since others read it
_PACKAGES = (gradients, faults, parameters, truths, ranks)


class Observers:
    """The observers of one watch, each made once, and before those that need it.

    `given` are objects that observers may need as well, such as the optimizer steps.
    """

    def __init__(self, session: Session, *given: object) -> None:
        self._session = session
        self._made: dict[type, Any] = {type(one): one for one in (session, *given)}
        self._given = frozenset(self._made)

    def make_all(self) -> None:
        """Makes every observer that each check has."""
        for kind in found():
            if kind.in_every_check:
                self.make(kind)

    def make(self, kind: type[Any]) -> Any:
        """The one object of this class, made where it is not there yet."""
        if kind not in self._made:
            for earlier in getattr(kind, "comes_after", ()):
                self.make(earlier)
            hints = get_type_hints(kind.__init__)
            hints.pop("return", None)
            arguments = {name: self._session if name == "session" else self.make(hint) for name, hint in hints.items()}
            self._made[kind] = kind(**arguments)
        return self._made[kind]

    def __iter__(self) -> Iterator[Observer]:
        """In the order in which they were made."""
        for kind, one in self._made.items():
            if kind not in self._given and isinstance(one, Observer):
                yield one


def found() -> Iterator[type[Observer]]:
    """Every class of an observer in these packages, by package and name of its module."""
    for package in _PACKAGES:
        for entry in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{entry.name}")
            for kind in vars(module).values():
                if isinstance(kind, type) and issubclass(kind, Observer) and kind.__module__ == module.__name__:
                    yield kind
