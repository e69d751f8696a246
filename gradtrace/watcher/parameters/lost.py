"""Parameters that were trained for a while, and get no gradient any more since a cut lies on their path.

A backward call of one place reaches the same leaves again and again. Where it suddenly reaches fewer, the next calls of
that place are searched for constants in their graphs: a cut that was made for the first time when the leaves went
missing, and that has them behind it, is what took their gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.events import Cut, GradientLost
from gradtrace.model.site import Stack
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters

#: backward calls of one place that reached a leaf before its absence is worth a look
_CALLS = 3
#: steps of one optimizer without a gradient that end the doubt
_STEPS = 3
#: calls whose graphs are searched for the cut, after leaves went missing
_LOOKS = 8
#: backward calls between the first of the cuts and the first call that lacks the leaves: a batch or an episode may have
#: begun without the cut
_BEFORE = 3
#: times that leaves may go missing at a place and come back: there it is usual
_RETURNS = 2
#: places of backward calls that are followed, and names given in one event
_PLACES, _NAMES = 256, 6


@dataclass(slots=True)
class _ReachOfPlace:
    """The leaves that the backward calls of one place reach."""

    leaves: set[TensorId]
    #: how many these are, and how many of them Parameters
    counts: tuple[int, int]
    calls: int = 1
    #: when the leaves went missing, by number of the backward call
    since: int = 0
    missing: set[TensorId] = field(default_factory=set)
    looks: int = 0
    returns: int = 0


@dataclass(slots=True)
class _LostLeaf:
    """A leaf without a gradient since a cut was made, and the steps that each optimizer made without it."""

    cut: Cut
    backward: Stack
    name: str = ""
    steps: dict[TensorId, int] = field(default_factory=dict)


class LostGradients(Observer):
    def __init__(self, session: Session, origins: Origins) -> None:
        super().__init__(session)
        self._origins = origins
        self._places: dict[Stack, _ReachOfPlace] = {}
        self._lost: dict[TensorId, _LostLeaf] = {}
        self._optimizers: dict[TensorId, str] = {}

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not call.accumulates or not call.whole:
            return
        if self._lost:
            self._forget(self.session.ids.of_all(call.leaves))
        place = self._places.get(call.stack)
        if place is None:
            if len(self._places) < _PLACES:
                self._places[call.stack] = _ReachOfPlace(self.session.ids.of_all(call.leaves), _counts(call.leaves))
        elif not place.missing and _counts(call.leaves) == place.counts:
            place.calls += 1
        elif place.returns < _RETURNS:
            self._compare(place, call)

    def _compare(self, place: _ReachOfPlace, call: BackwardCall) -> None:
        """Some of the place's leaves are missing, or new ones have come."""
        reached = self.session.ids.of_all(call.leaves)
        missing = {key for key in place.leaves - reached if self.session.is_owned(key)}
        if not missing:
            self._return(place)
            place.leaves |= reached
            place.counts = _counts(call.leaves)
            place.calls += 1
        elif not place.missing:
            # where other parameters take their place, another stage of training begins
            begin = any(self.session.is_owned(key) for key in reached - place.leaves)
            if place.calls < _CALLS or begin:
                self._places[call.stack] = _ReachOfPlace(reached, _counts(call.leaves))
                return
            place.missing, place.since, place.looks = missing, call.number, 0
            self._origins.listen(self)
        else:
            place.missing &= missing
        if place.missing and place.looks < _LOOKS:
            place.looks += 1
            self._explain(place, call)
        elif place.looks == _LOOKS:
            self._origins.listen(self, False)

    def _return(self, place: _ReachOfPlace) -> None:
        if place.missing:
            place.returns += 1
            place.missing = set()
            self._origins.listen(self, False)

    def _explain(self, place: _ReachOfPlace, call: BackwardCall) -> None:
        """Looks for the cut behind the missing leaves among what enters this graph."""
        cuts = [cut for constant in self._origins.constants(call.nodes) for cut in constant.cuts]
        for leaf in call.leaves:
            if not isinstance(leaf, torch.nn.Parameter):
                cuts += self._origins.of_leaf(leaf)
        for cut in cuts:
            if self._origins.calls_before(cut) < place.since - _BEFORE:
                continue
            for key in self._origins.leaves_behind(cut) & place.missing:
                self._lost.setdefault(key, _LostLeaf(cut, call.stack))

    def _forget(self, keys: Iterable[TensorId]) -> None:
        for key in keys:
            self._lost.pop(key, None)

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        if not self._lost:
            return
        own = self.session.ids.of(optimizer)
        self._optimizers[own] = type(optimizer).__name__
        for parameter in parameters(optimizer):
            key = self.session.ids.known(parameter)
            lost = self._lost.get(key)
            if lost is None:
                continue
            if not parameter.requires_grad:
                del self._lost[key]
                continue
            lost.steps[own] = lost.steps.get(own, 0) + 1
            known = self.session.book.known(parameter)
            lost.name = known.name if known is not None else ""

    def at_end(self) -> None:
        found: dict[tuple[Stack, TensorId], list[_LostLeaf]] = {}
        for lost in self._lost.values():
            for optimizer, steps in lost.steps.items():
                if steps >= _STEPS:
                    found.setdefault((lost.cut.stack, optimizer), []).append(lost)
        for (_, optimizer), leaves in found.items():
            names = dict.fromkeys(lost.name for lost in leaves if lost.name)
            first = leaves[0]
            self.session.emit(
                GradientLost(
                    tuple(names)[:_NAMES],
                    len(leaves),
                    self._optimizers[optimizer],
                    first.steps[optimizer],
                    first.backward,
                    first.cut,
                )
            )


def _counts(leaves: Sequence[torch.Tensor]) -> tuple[int, int]:
    """A new leaf may have come in place of a Parameter."""
    return len(leaves), sum(isinstance(leaf, torch.nn.Parameter) for leaf in leaves)
