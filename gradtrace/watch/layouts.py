"""Looks for computations along the wrong dimension that mix the samples of a batch, where that can be told for sure.

Two cases are sure: softmax over the first dimension whose weights are then summed over *another* one, for each entry of
the first on its own; and a recurrent network of which the "last step" is taken along its batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F

from gradtrace.model.events import MixedBatch
from gradtrace.model.site import Stack
from gradtrace.watch import saved
from gradtrace.watch.backward import BackwardCall
from gradtrace.watch.observer import Handler, Observer, TorchCall
from gradtrace.watch.walk import VIEWS

_SOFTMAX = (torch.softmax, torch.Tensor.softmax, F.softmax)
_RECURRENT = {torch.lstm: "LSTM", torch.gru: "GRU", torch.rnn_tanh: "RNN", torch.rnn_relu: "RNN"}
#: pass weights on as they are
_PASSING = VIEWS | {"CloneBackward0", "NativeDropoutBackward0"}
#: calls waiting for a backward call
_MOST = 64


@dataclass(slots=True)
class _Recurrent:
    """A call of a recurrent network: the node of its output (not of its last state), and which dimension is the batch."""

    output: tuple[int, int]
    name: str
    batch: int
    shape: tuple[int, ...]
    stack: Stack


class Layouts(Observer):
    """Suspicious calls, by number, until a backward call runs through them."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._softmax: dict[int, tuple[tuple[int, ...], Stack]] = {}
        self._recurrent: list[_Recurrent] = []

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys(_SOFTMAX, self._normalises) | dict.fromkeys(_RECURRENT, self._runs)

    def _normalises(self, call: TorchCall) -> None:
        if call.after == call.before or not isinstance(call.out, torch.Tensor) or call.out.dim() < 2:
            return
        shape = tuple(call.out.shape)
        if shape[0] < 2 or 1 in shape or shape[0] in shape[1:]:
            return
        node: Any = call.out.grad_fn
        if type(node).__name__ == "SoftmaxBackward0" and _wrapped(node._saved_dim) in (0, -len(shape)):
            self._softmax[node._sequence_nr()] = shape, self.session.frames.stack(call.frame)
            if len(self._softmax) > _MOST:
                self._softmax.pop(next(iter(self._softmax)))

    def _runs(self, call: TorchCall) -> None:
        if call.after == call.before or len(call.args) != 9:
            return
        entered, hidden, weights, *_, batch_first = call.args
        packed = not isinstance(weights, (list, tuple)) or (
            call.func is torch.lstm and isinstance(hidden, torch.Tensor)
        )
        if packed or entered.dim() != 3 or 1 in entered.shape[:2]:
            return
        batch, stack = 0 if batch_first else 1, self.session.frames.stack(call.frame)
        name = _RECURRENT[call.func]
        node: Any = call.out[0].grad_fn
        if node is not None:
            output = node._sequence_nr(), call.out[0].output_nr
            self._recurrent.append(_Recurrent(output, name, batch, tuple(entered.shape), stack))
        del self._recurrent[:-_MOST]

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if self._softmax:
            self._look_at_weights(call.nodes)
        if self._recurrent:
            self._look_at_steps(call.nodes)
            self._recurrent = [one for one in self._recurrent if one.output[0] > call.root_node]

    def _look_at_weights(self, nodes: Sequence[Any]) -> None:
        found = {node._sequence_nr(): node for node in nodes}
        met = self._softmax.keys() & found.keys()
        users = _users(nodes) if met else {}
        for number in met:
            shape, stack = self._softmax.pop(number)
            if _summed_elsewhere(found[number], users, shape[0]):
                self.session.emit(MixedBatch("softmax", "softmax", shape, stack))

    def _look_at_steps(self, nodes: Sequence[Any]) -> None:
        for node in nodes:
            if type(node).__name__ != "SelectBackward0" or node.next_functions[0][0] is None:
                continue
            number, (below, output) = node._sequence_nr(), node.next_functions[0]
            entered = below._sequence_nr(), output
            one = next((one for one in self._recurrent if one.output == entered), None)
            if one is not None and _takes_last(node, one):
                self._recurrent.remove(one)
                kind, taken = ("recurrent", "recurrent, batch first")[not one.batch], self.session.trail.find(number)
                self.session.emit(MixedBatch(kind, one.name, one.shape, one.stack, taken))


def _wrapped(number: int) -> int:
    """torch hands out negative numbers as unsigned ones."""
    return number - 2**64 if number >= 2**63 else number


def _takes_last(node: Any, one: _Recurrent) -> bool:
    dim, index = _wrapped(node._saved_dim), _wrapped(node._saved_index)
    return dim in (one.batch, one.batch - 3) and index in (-1, one.shape[one.batch] - 1)


def _users(nodes: Sequence[Any]) -> dict[Any, list[tuple[Any, int]]]:
    """Who used the output of each node, as which input."""
    found: dict[Any, list[tuple[Any, int]]] = {}
    for node in nodes:
        for index, (child, _) in enumerate(node.next_functions):
            found.setdefault(child, []).append((node, index))
    return found


def _consumers(node: Any, users: Mapping[Any, list[tuple[Any, int]]]) -> Iterator[tuple[Any, int]]:
    """Who used it, past views."""
    waiting = list(users.get(node, ()))
    while waiting:
        user, index = waiting.pop()
        if type(user).__name__ in _PASSING:
            waiting += users.get(user, ())
        else:
            yield user, index


def _summed_elsewhere(node: Any, users: Mapping[Any, list[tuple[Any, int]]], normalised: int) -> bool:
    """Whether weights normalised over `normalised` entries weigh the entries of another dimension against each other,
    separately for each of them."""
    consumers = list(_consumers(node, users))
    return bool(consumers) and all(_separately(user, index, users, normalised) for user, index in consumers)


def _separately(user: Any, index: int, users: Mapping[Any, list[tuple[Any, int]]], normalised: int) -> bool:
    values = dict(saved.tensors(user))
    other = values.get(
        ("mat2", "self")[index] if type(user).__name__ == "BmmBackward0" else ("other", "self")[index & 1]
    )
    if other is None or other.dim() < 3 or other.shape[0] != normalised:
        return False
    if type(user).__name__ == "BmmBackward0":
        return other.shape[1 if index == 0 else 2] not in (1, normalised)
    sums = list(_consumers(user, users)) if type(user).__name__ == "MulBackward0" else []
    return bool(sums) and all(
        type(one).__name__ == "SumBackward1" and _dims(one, other.dim()) <= {1, 2} - {other.dim() - 1}
        for one, _ in sums
    )


def _dims(node: Any, count: int) -> set[int]:
    return {_wrapped(dim) % count for dim in node._saved_dim}
