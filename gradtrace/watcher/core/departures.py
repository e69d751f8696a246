"""Numbers that left torch, by item() and its like, and are recognized where they come back."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gradtrace.model.events import Cut
from gradtrace.model.site import Stack

#: places that are remembered, numbers of each, and numbers of one list or array
_PLACES, _NUMBERS, _LIST = 1_024, 64, 64
#: the last departures, whatever left
_LAST = 4
#: places whose last number is compared with what enters, pairs of places that are compared, and how many different
#: numbers of a place must come back by the same factor
_RECENT, _PAIRS, _TIMES = 16, 4_096, 3
#: a number that times this is whole is too common to be known by its value: 1, 0.5, 0.25
_ROUND = 64


class Departure(NamedTuple):
    """A value left torch: what cut it off, the first cut first, and a number that it was."""

    cuts: tuple[Cut, ...]
    number: float


class Departures:
    """The last numbers of each place. A number that was not computed with is the same object when it comes back; else it
    is known by its value, unless that is a round one."""

    def __init__(self) -> None:
        self._of_place: dict[Stack, deque[Departure]] = {}
        self._by_id: dict[int, Departure] = {}
        self._by_value: dict[float, Departure] = {}
        #: the last number of each of the last places
        self._recent: dict[Stack, Departure] = {}
        #: by places of a departure and a use: the factor between the numbers, the last one, and how often it was the same
        self._factors: dict[tuple[Stack, Stack], tuple[float, float, int]] = {}
        #: behind which cuts what left last was, the oldest first
        self.last: deque[tuple[Cut, ...]] = deque(maxlen=_LAST)
        #: how many backward calls there had been when the last one left
        self._calls = 0

    def __bool__(self) -> bool:
        return bool(self.last)

    def lately(self, calls: int) -> tuple[Cut, ...]:
        """What cut off the last value that left, if there have been no more than so many backward calls since the run
        began; else empty."""
        return self.last[-1] if self.last and self._calls == calls else ()

    def leave(self, value: object, cuts: tuple[Cut, ...], calls: int) -> None:
        """`value`, a number, list or array, left torch behind these cuts, after so many backward calls."""
        self.last.append(cuts)
        self._calls = calls
        place = cuts[0].stack
        known = self._of_place.get(place)
        if known is None:
            if len(self._of_place) >= _PLACES:
                return
            known = self._of_place[place] = deque()
        for number in numbers_in([value]):
            self._remember(Departure(cuts, number), known)

    def _remember(self, departure: Departure, of_place: deque[Departure]) -> None:
        if len(of_place) >= _NUMBERS:
            self._forget(of_place.popleft())
        of_place.append(departure)
        place = departure.cuts[0].stack
        self._recent.pop(place, None)
        if len(self._recent) >= _RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[place] = departure
        # the departure keeps the number alive, so that no other one can lie at its address
        self._by_id[id(departure.number)] = departure
        if math.isfinite(departure.number) and not (departure.number * _ROUND).is_integer():
            self._by_value[departure.number] = departure

    def _forget(self, departure: Departure) -> None:
        self._by_id.pop(id(departure.number), None)
        if self._by_value.get(departure.number) is departure:
            del self._by_value[departure.number]

    def of(self, values: Iterable[object]) -> list[Departure]:
        """The departures of those numbers among `values`, lists and arrays of them opened, that left torch before."""
        if not self._by_id:
            return []
        found = {}
        for number in numbers_in(values):
            departure = self._by_id.get(id(number)) or self._by_value.get(number)
            if departure is not None:
                found[departure.cuts] = departure
        return list(found.values())

    def proportional(self, number: float, used: Stack) -> Departure | None:
        """The departure of which `number`, used at this place, is a multiple, and has been by the same factor each time:
        `0.5 * loss.item()`."""
        # zero, as an option of the call is, is a multiple of everything
        for place, departure in self._recent.items() if number else ():
            pair = place, used
            if not departure.number or (pair not in self._factors and len(self._factors) >= _PAIRS):
                continue
            factor, last, times = self._factors.get(pair, (0.0, 0.0, 0))
            now = number / departure.number
            if not math.isclose(now, factor, rel_tol=1e-12):
                times = 0
            elif departure.number == last:  # a constant says nothing
                continue
            self._factors[pair] = now, departure.number, times + 1
            if times + 1 >= _TIMES:
                return departure
        return None


def numbers_in(values: Iterable[object]) -> Iterator[float]:
    """The floating point numbers among values, of lists and small arrays those in them."""
    for value in values:
        if type(value) is float:
            yield value
        elif isinstance(value, (list, tuple)):
            yield from numbers_in(value[:_LIST])
        elif type(value).__module__ == "numpy":
            yield from _of_numpy(value)


def _of_numpy(value: Any) -> Iterator[float]:
    """Those of a NumPy array or scalar, if there are few and they are of floating point."""
    if getattr(value, "size", _LIST + 1) <= _LIST and getattr(getattr(value, "dtype", None), "kind", "") == "f":
        found = value.tolist()
        yield from numbers_in(found if isinstance(found, list) else [found])
