"""Looks for computations along the wrong dimension that mix the samples of a batch, where that is certain.

Softmax over the first dimension is wrong where its weights are then summed over *another* one, for each entry of the
first on its own, or where one entry of each row is picked from it, as the probability of that row's class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from types import FrameType
from typing import Any

import torch

from gradtrace.model.events import MixedBatch
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import node_number, saved_argument
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.graph import ops, query, saved

#: calls waiting for a backward call
_MOST = 64


class Layouts(Observer):
    """Suspicious calls, by number, until a backward call runs through them."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._softmax: dict[int, tuple[tuple[int, ...], Stack]] = {}

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys(ops.SOFTMAX_FUNCTIONS, self._normalises)

    def _normalises(self, call: TorchCall) -> None:
        if call.after == call.before or not isinstance(call.out, torch.Tensor) or call.out.dim() < 2:
            return
        shape = tuple(call.out.shape)
        node: Any = call.out.grad_fn
        if (
            min(shape[:2]) > 1
            and type(node).__name__ in ops.SOFTMAXES
            and wrapped(saved_argument(node, "dim")) in (0, -len(shape))
        ):
            self._softmax[node_number(node)] = shape, self.session.frames.stack(call.frame)
            if len(self._softmax) > _MOST:
                self._softmax.pop(next(iter(self._softmax)))

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if self._softmax:
            self._look_at_weights(call.nodes)

    def _look_at_weights(self, nodes: Sequence[Any]) -> None:
        found = {node_number(node): node for node in nodes}
        met = self._softmax.keys() & found.keys()
        users = query.uses_of(nodes) if met else {}
        for number in met:
            shape, stack = self._softmax.pop(number)
            kind = _kind(found[number], users, shape)
            if kind:
                self.session.emit(MixedBatch(kind, "softmax", shape, stack))


def wrapped(number: int) -> int:
    """torch hands out negative numbers as unsigned ones."""
    return number - 2**64 if number >= 2**63 else number


def _consumers(
    node: Any, users: Mapping[Any, list[tuple[Any, int]]], passing: Set[str] = ops.SAME_WEIGHTS
) -> Iterator[tuple[Any, int]]:
    """Who used it, past views."""
    waiting = list(users.get(node, ()))
    while waiting:
        user, index = waiting.pop()
        if type(user).__name__ in passing:
            waiting += users.get(user, ())
        else:
            yield user, index


def _kind(node: Any, users: Mapping[Any, list[tuple[Any, int]]], shape: tuple[int, ...]) -> str:
    """In which way the use of the result shows that another dimension was meant; empty where it does not."""
    if _picked_by_row(node, users, shape[0]):
        return "rows"
    weights = type(node).__name__ == "SoftmaxBackward0" and shape[0] not in shape[1:]
    return "softmax" if weights and _summed_elsewhere(node, users, shape[0]) else ""


def _picked_by_row(node: Any, users: Mapping[Any, list[tuple[Any, int]]], rows: int) -> bool:
    """Whether of each row one entry is taken: by nll_loss, or by gather."""
    for user, _ in _consumers(node, users, ops.SAME_WEIGHTS | ops.TO_LOGARITHMS):
        kind = type(user).__name__
        if kind.startswith("NllLoss"):
            return True
        if kind == "GatherBackward0" and wrapped(saved_argument(user, "dim")) in (1, -1):
            index = dict(saved.tensors(user)).get("index")
            if index is not None and tuple(index.shape) == (rows, 1):
                return True
    return False


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
    return {wrapped(dim) % count for dim in saved_argument(node, "dim")}
