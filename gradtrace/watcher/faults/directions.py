"""Sees bidirectional networks of which only the last step's output is used: there the reverse direction has read one input
and no state, so that its recurrent weights get a gradient of exactly zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from gradtrace.model.events import FlatGradient
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import local_part, node_number, saved_argument
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.faults.mixed_batch import wrapped
from gradtrace.watcher.graph import ops, query

Tensor = torch.Tensor

#: calls waiting for a backward call, looks at one place, and looks that must agree
_MOST, _LOOKS, _ENOUGH = 16, 8, 3


@dataclass(slots=True)
class _BidirectionalRun:
    """A call of a bidirectional network: the node of its output, its recurrent weight for the last layer's reverse
    direction, and which dimension is the time."""

    node: int
    weight: TensorId
    time: int
    steps: int


@dataclass(slots=True)
class _LastStepRead:
    """A place that reads the last step alone."""

    backward: Stack
    looks: int = 0
    #: at each look the gradient was zero
    zero: bool = True
    name: str = ""
    #: the weights whose gradients are to be looked at after the backward call that runs
    weights: set[TensorId] = field(default_factory=set)


class Directions(Observer):
    """Each place is looked at in its first backward calls."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._runs: list[_BidirectionalRun] = []
        self._reads: dict[Stack, _LastStepRead] = {}

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys(ops.RECURRENT_FUNCTIONS, self._recurs)

    def _recurs(self, call: TorchCall) -> None:
        if call.after == call.before or len(call.args) != 9 or not isinstance(call.args[2], (list, tuple)):
            return
        given, _, weights, biases, layers, _, _, both_ways, batch_first = call.args
        each = 4 if biases else 2
        node = call.out[0].grad_fn
        if not both_ways or given.dim() != 3 or len(weights) != 2 * layers * each or node is None:
            return
        time = 1 if batch_first else 0
        weight = weights[(2 * layers - 1) * each + 1]
        self._runs.append(_BidirectionalRun(node_number(node), self.session.ids.of(weight), time, given.shape[time]))
        del self._runs[:-_MOST]

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        runs, self._runs = self._runs, []
        if not runs or not call.accumulates:
            return
        nodes = {node_number(node): node for node in call.nodes}
        met = [run for run in runs if run.node in nodes and run.steps > 1]
        users = query.uses_of(call.nodes) if met else {}
        for run in met:
            reading = [user for user, _ in users.get(nodes[run.node], ())]
            if reading and all(_takes_last(user, run) for user in reading):
                stack = self.session.trail.find(node_number(reading[0]))
                self._reads.setdefault(stack, _LastStepRead(call.stack)).weights.add(run.weight)

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        for read in self._reads.values():
            if read.weights and read.looks < _LOOKS and error is None:
                self._look(read, [leaf for leaf in call.leaves if self.session.ids.known(leaf) in read.weights])
            read.weights.clear()

    def _look(self, read: _LastStepRead, leaves: list[Tensor]) -> None:
        read.looks += 1
        for leaf in leaves:
            read.zero = read.zero and leaf.grad is not None and not bool(local_part(leaf.grad).any())
            known = self.session.book.known(leaf)
            read.name = known.name if known is not None else ""

    def at_end(self) -> None:
        for stack, read in self._reads.items():
            if read.zero and read.name and read.looks >= _ENOUGH:
                self.session.emit(FlatGradient((read.name,), 1, "reverse", stack, read.looks, read.backward))

    so_far = at_end


def _takes_last(user: Any, run: _BidirectionalRun) -> bool:
    if type(user).__name__ != "SelectBackward0" or wrapped(saved_argument(user, "dim")) % 3 != run.time:
        return False
    return wrapped(saved_argument(user, "index")) in (-1, run.steps - 1)
