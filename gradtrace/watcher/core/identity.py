"""Which tensor is this? A number for each tensor and optimizer, that no other one ever gets.

An address is no identity: Python gives the address of a dead tensor to the next one. A weak reference says whether
the tensor that was met at an address is still the one there; it keeps nothing of the user's alive.

`torch.utils.swap_tensors`, which `module.to()` can be made to use, refuses tensors that are weakly referenced: for the
time of such a call our references to the two are given up.
"""

from __future__ import annotations

import functools
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeAlias, TypeVar

import torch

from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.patches import patched

T = TypeVar("T")

#: never given twice in a run; also of an optimizer
TensorId: TypeAlias = int


class _Ref(weakref.ref[Any]):
    """The weak reference to one tensor, with its number and where it lay."""

    __slots__ = ("address", "number")

    address: int
    number: TensorId


class Identities:
    """Numbers the tensors and optimizers of one run, and forgets them when they die."""

    def __init__(self) -> None:
        self._refs: dict[int, _Ref] = {}
        self._numbers = count(1)
        #: references whose tensors have died, in whichever thread, and that tables still hold something of
        self._dead: deque[_Ref] = deque()
        self._tables: list[MutableMapping[TensorId, Any]] = []

    def of(self, thing: Any) -> TensorId:
        """The number of a tensor or an optimizer."""
        known = self._refs.get(id(thing))
        if known is not None and known() is thing:
            return known.number
        return self._meet(thing, next(self._numbers))

    def of_all(self, things: Iterable[Any]) -> set[TensorId]:
        """The numbers of several."""
        return set(map(self.of, things))

    def known(self, thing: Any) -> TensorId:
        """Its number, 0 where it has none."""
        known = self._refs.get(id(thing))
        return known.number if known is not None and known() is thing else 0

    def table(self, table: MutableMapping[TensorId, T]) -> MutableMapping[TensorId, T]:
        """The table, of which from now on the entries of the dead are dropped."""
        self._tables.append(table)
        return table

    def forget_dead(self) -> None:
        """Drops what is known of tensors that have died. Not while code iterates over a table."""
        while self._dead:
            ref = self._dead.popleft()
            if self._refs.get(ref.address) is ref:
                del self._refs[ref.address]
            for table in self._tables:
                table.pop(ref.number, None)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While open, tensors that are met can be swapped."""
        with patched(torch.utils, "swap_tensors", self._giving_up):
            yield

    def _giving_up(self, swap: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        @compiled.around
        @functools.wraps(swap)
        def swap_tensors(t1: Any, t2: Any) -> None:
            numbers = [(one, self._give_up(one)) for one in (t1, t2)]
            try:
                swap(t1, t2)
            finally:
                for one, number in numbers:
                    if number:
                        self._meet(one, number)

        return swap_tensors

    def _meet(self, thing: Any, number: TensorId) -> TensorId:
        ref = self._refs[id(thing)] = _Ref(thing, self._dead.append)
        ref.address, ref.number = id(thing), number
        return number

    def _give_up(self, thing: Any) -> TensorId:
        number = self.known(thing)
        if number:
            del self._refs[id(thing)]
        return number
