"""How often is enough: in how many iterations, or in what share of them, something must be seen before a rule speaks.

A number that means the same in several rules has its name and its reason here; what only one rule counts stays with it.
"""

from __future__ import annotations

from typing import TypeVar

#: once may be an accident of that iteration; what happens twice at one place is how the code works
TWICE = 2
#: the first iteration may set something up that the second finds: from the third on they are alike
REGULARLY = 3
#: so many in a row are enough wherever in the run they begin: a warm-up or a pause is shorter
IN_A_ROW = 8
#: a share with room for exceptions: the last batch of an epoch, a step that a GradScaler skips
MOSTLY = 0.8

#: optimizers, or lines, that one rule follows at once
FOLLOWED = 256
#: calls of one line that are remembered until it is known what became of them
PENDING = 64

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def mostly(times: int, of: int) -> bool:
    """Whether it happened nearly every time."""
    return times >= MOSTLY * of


def regularly(times: int, of: int, enough: int = REGULARLY) -> bool:
    """Whether it happened nearly every time, and `enough` times to say so."""
    return times >= enough and mostly(times, of)


def oldest_beyond(most: int, known: dict[_Key, _Value]) -> list[_Value]:
    """The oldest entry, taken out, where there are more than `most`: what a rule knows must not grow with the run."""
    return [known.pop(next(iter(known)))] if len(known) > most else []
