"""Where paths end: tensors that require no grad although something that went into them did."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from gradtrace.model.events import Cut
from gradtrace.model.site import Stack

#: cut tensors remembered before the dead among them are forgotten
_MANY = 4_096
#: cuts told of one tensor
_FEW = 4


class Cuts:
    """The tensors behind which gradients end, by identity, with what cut them."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], tuple[Cut, ...]]] = {}
        #: the last places where a value left torch (`item()`, `numpy()`): what comes back of it has no history
        self._left: deque[Cut] = deque(maxlen=_FEW)
        #: places where leaves were frozen
        self._frozen: dict[Stack, Cut] = {}

    def of(self, tensor: torch.Tensor) -> tuple[Cut, ...]:
        ref, cuts = self._known.get(id(tensor), (None, ()))
        return cuts if ref is not None and ref() is tensor else ()

    def add(self, tensor: torch.Tensor, cuts: tuple[Cut, ...]) -> None:
        if len(self._known) >= _MANY:
            self._known = {key: value for key, value in self._known.items() if value[0]() is not None}
        if len(self._known) < 4 * _MANY:
            self._known[id(tensor)] = weakref.ref(tensor), cuts

    def left(self, cut: Cut) -> None:
        """A value left torch as a Python number or a NumPy array."""
        self._left.append(cut)

    def froze(self, stack: Stack) -> None:
        """A leaf was told to require no grad."""
        if len(self._frozen) < _MANY:
            self._frozen.setdefault(stack, Cut("requires_grad = False", "frozen", stack))

    def behind(self, tensors: Sequence[Any]) -> tuple[Cut, ...]:
        """What cut the paths behind these tensors; where no cut is known, what may have: the last first."""
        known = tuple(cut for tensor in tensors if isinstance(tensor, torch.Tensor) for cut in self.of(tensor))
        return known or tuple(reversed(self._left)) or tuple(self._frozen.values())[-_FEW:]


def tensors_in(values: Iterable[Any], depth: int = 2) -> Iterator[torch.Tensor]:
    """The tensors among the arguments of a call, lists and tuples of them opened."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif depth and isinstance(value, (list, tuple)):
            yield from tensors_in(value, depth - 1)
