"""Looks at what goes into a loss: outputs of softmax where scores belong, and shapes that pair samples wrongly.

What is suspicious is reported when a backward call runs through it: a number that is merely printed trains nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F

from gradtrace.model.events import Broadcast, DoubleSoftmax, Event
from gradtrace.model.site import Stack
from gradtrace.source import syntax
from gradtrace.watcher.code.construction import only_in_sequential
from gradtrace.watcher.compat import DisableTorchFunction, node_number, saved_argument
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.graph import ops, query, saved

Tensor = torch.Tensor

#: take scores, and put softmax or sigmoid to them themselves
_OF_SCORES = {
    F.cross_entropy: "softmax",
    F.multilabel_soft_margin_loss: "sigmoid",
    F.binary_cross_entropy_with_logits: "sigmoid",
}
#: what a distribution normalizes scores with
_NORMALIZING = (torch.logsumexp, Tensor.logsumexp)
_CATEGORICAL = os.path.join("torch", "distributions", "categorical.py")
#: take logarithms of probabilities
_OF_LOGARITHMS = (F.nll_loss, F.kl_div, F.ctc_loss)
#: take probabilities
_OF_PROBABILITIES = (F.binary_cross_entropy,)
_PRODUCTS = (Tensor.mul, torch.mul)
_DIFFERENCES = (Tensor.sub, torch.sub, *_PRODUCTS)

_MODULES = {"softmax": "Softmax", "sigmoid": "Sigmoid", "log_softmax": "LogSoftmax"}
#: their result may be a column on purpose, for the function that asks for it
_RESHAPING = ops.functions(ops.COLUMN_FUNCTIONS)
#: pair rows and columns only by mistake where nothing has a graph: scores are added on purpose
_SUMS = (Tensor.add, torch.add, Tensor.div, torch.div)
#: keep pairs without a graph as they are
_KEEPING = (
    *(Tensor.sub, torch.sub, Tensor.add, torch.add, Tensor.mul, torch.mul, Tensor.div, torch.div),
    *(Tensor.__truediv__, Tensor.neg, Tensor.clamp, torch.clamp, Tensor.detach, Tensor.clone, Tensor.exp, torch.exp),
)
#: suspicions waiting for a backward call; views passed on the way to the operation behind them
_MOST, _DEEP = 64, 16


class Losses(Observer):
    """Suspicions by the number of the node that the call made."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._waiting: dict[int, Event] = {}
        #: those that are meant unless what comes of them is a plain mean
        self._kept: set[int] = set()
        #: columns by identity, and where each was made of a row
        self._columns: dict[TensorId, Stack] = {}
        #: tensors without a graph in which rows and columns were paired, by identity
        self._pairs: dict[TensorId, Broadcast] = {}

    def functions(self) -> Mapping[Any, Handler]:
        return {
            **dict.fromkeys(_OF_SCORES, self._of_scores),
            **dict.fromkeys(_NORMALIZING, self._normalizes),
            **dict.fromkeys(ops.SOFTMAX_FUNCTIONS, self._again),
            **dict.fromkeys(_OF_LOGARITHMS, self._of_logarithms),
            **dict.fromkeys(_OF_PROBABILITIES, self._of_probabilities),
            **dict.fromkeys(ops.DISTANCE_FUNCTIONS, self._compares),
            **dict.fromkeys(_KEEPING, self._keeps),
            **dict.fromkeys(_SUMS, self._combines),
            **dict.fromkeys(_DIFFERENCES, self._combines),
            **dict.fromkeys(_RESHAPING, self._reshapes),
        }

    def _reshapes(self, call: TorchCall) -> None:
        out, given = call.out, call.args[0]
        if type(out) is not Tensor or out.dim() != 2 or out.shape[1] != 1 or out.shape[0] < 2:
            return
        if isinstance(given, Tensor) and given.dim() == 1 and given.numel() == out.numel():
            self._columns[self.session.ids.of(out)] = self.session.frames.stack(call.frame)
            _shorten(self._columns)

    def _keeps(self, call: TorchCall) -> None:
        """Pairs that were made without a graph go into something else."""
        if not self._pairs:
            return
        with DisableTorchFunction():
            for one in call.inputs:
                pairs = self._pairs.get(self.session.ids.known(one))
                if pairs is None or type(call.out) is not Tensor or call.out.shape != one.shape:
                    continue
                if call.after == call.before:
                    self._remember_pairs(call.out, pairs)
                elif any(other.requires_grad and other.numel() == one.shape[0] for other in call.inputs):
                    self._suspect(call, pairs)

    def _remember_pairs(self, out: Tensor, pairs: Broadcast) -> None:
        self._pairs[self.session.ids.of(out)] = pairs
        _shorten(self._pairs)

    def _is_meant(self, tensor: Tensor, call: TorchCall) -> bool:
        """Whether a column was made of a row by the function that pairs it now, or for it."""
        if not _reshaped(tensor):
            return False
        made = self._columns.get(self.session.ids.known(tensor))
        stack = self.session.frames.stack(call.frame)
        if made is None or not stack:
            return True
        return any((site.path, site.function) == (stack[0].path, stack[0].function) for site in made)

    def _of_scores(self, call: TorchCall) -> None:
        node = _past_mixing(_behind(call))
        first = ops.NORMALIZED.get(type(node).__name__)
        if first is not None:
            self._doubled(call, node, first, _OF_SCORES[call.func])

    def _again(self, call: TorchCall) -> None:
        """Softmax of softmax, along the same dimension."""
        node, own = _behind(call), call.out.grad_fn
        if type(own).__name__ == "LogSoftmaxBackward0":  # of a loss; what lies between may sharpen attention
            node = _past_mixing(node)
        if type(node).__name__ == "SoftmaxBackward0" and saved_argument(node, "dim") == saved_argument(own, "dim"):
            self._doubled(call, node, "softmax", "softmax")

    def _normalizes(self, call: TorchCall) -> None:
        """`Categorical(logits=probabilities)`: softmax of softmax."""
        node = _behind(call)
        if type(node).__name__ == "SoftmaxBackward0" and call.frame.f_code.co_filename.endswith(_CATEGORICAL):
            self._doubled(call, node, "softmax", "softmax")

    def _of_logarithms(self, call: TorchCall) -> None:
        """Softmax of softmax, its logarithm taken; or no logarithm at all."""
        node = _behind(call)
        if type(node).__name__ == "SoftmaxBackward0":
            self._doubled(call, node, "softmax", "logarithm")
        elif type(node).__name__ == "LogSoftmaxBackward0":
            self._doubled_inside(call, node, "softmax")

    def _of_probabilities(self, call: TorchCall) -> None:
        node = _behind(call)
        if type(node).__name__ == "SigmoidBackward0":
            self._doubled_inside(call, node, "sigmoid")

    def _doubled_inside(self, call: TorchCall, node: Any, second: str) -> None:
        """What goes into `second`, whose node this is, may be probabilities already."""
        inner = _past_copies(query.first_input(node))
        first = ops.PROBABILITIES.get(type(inner).__name__)
        if first is not None:
            self._doubled(call, inner, first, second)

    def _doubled(self, call: TorchCall, node: Any, first: str, second: str) -> None:
        made = self.session.trail.find(node_number(node))
        stack, loss = self.session.frames.stack(call.frame), call.func.__name__
        module = None
        if made and first not in syntax.line_text(*made[0].place).lower():
            module = only_in_sequential(_MODULES[first], call.frame, self.session.frames)
        self._suspect(call, DoubleSoftmax(first, second, loss, made, stack, module))

    def _suspect(self, call: TorchCall, event: Event) -> None:
        if len(self._waiting) >= _MOST:
            self._waiting.pop(next(iter(self._waiting)))
        # the last node that the call made is that of its result
        self._waiting[call.after - 1] = event

    def _compares(self, call: TorchCall) -> None:
        if call.after == call.before:
            return
        one, other = _first_two(call, "target")
        if one is not None and other is not None and _misaligned(one, other):
            reduced = call.kwargs.get("reduction", "mean") != "none"
            if reduced or not (_reshaped(one) or _reshaped(other)):
                self._crossed(call, one, other, reduced)

    def _combines(self, call: TorchCall) -> None:
        """Only the shape [n, 1] with [n]: anything else may be meant."""
        self._keeps(call)
        if len(call.args) != 2:
            return
        one, other = call.args
        if type(one) is not Tensor or type(other) is not Tensor or one.dim() + other.dim() != 3:
            return
        with DisableTorchFunction():
            if not _misaligned(one, other) or _same_memory(one, other):
                return
            meant = self._is_meant(one, call) or self._is_meant(other, call)
            if call.after == call.before:
                if not meant and type(call.out) is Tensor and call.out.is_floating_point():
                    self._remember_pairs(call.out, self._broadcast(call, one, other, False))
            elif call.func in _SUMS:
                return
            elif not meant or (call.func in _PRODUCTS and (_keeps_dim(one) or _keeps_dim(other))):
                self._crossed(call, one, other, False)
                self._kept |= {call.after - 1} if meant else set()

    def _broadcast(self, call: TorchCall, one: Tensor, other: Tensor, reduced: bool) -> Broadcast:
        shape, stack = _broadcast(one, other), self.session.frames.stack(call.frame)
        return Broadcast(call.func.__name__, tuple(one.shape), tuple(other.shape), shape, reduced, stack)

    def _crossed(self, call: TorchCall, one: Tensor, other: Tensor, reduced: bool) -> None:
        self._suspect(call, self._broadcast(call, one, other, reduced))

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        kept, self._kept = self._kept, set()
        nodes = {node_number(node): node for node in call.nodes}
        for number, event in waiting.items():
            if number not in nodes:
                self._waiting[number] = event
                self._kept |= {number} & kept
                continue
            between = ops.SCALINGS if number in kept else ops.POINTWISE
            if not isinstance(event, Broadcast) or event.reduced or _summed_up(nodes[number], call.nodes, between):
                self.session.emit(event)


def _shorten(known: dict[int, Any]) -> None:
    """Forgets the oldest of too many."""
    if len(known) > _MOST:
        known.pop(next(iter(known)))


def _first_two(call: TorchCall, second: str) -> tuple[Tensor | None, Tensor | None]:
    given = (*call.args[:2], *(call.kwargs[name] for name in ("input", second) if name in call.kwargs))
    tensors = [tensor for tensor in given if isinstance(tensor, Tensor)]
    return (tensors[0], tensors[1]) if len(tensors) == 2 else (None, None)


def _behind(call: TorchCall) -> Any:
    """The operation, past views, that made what goes into a loss; None where that has no graph."""
    if call.after == call.before:
        return None
    tensor = call.args[0] if call.args else call.kwargs.get("input")
    return _past_copies(tensor.grad_fn) if isinstance(tensor, Tensor) else None


def _past_copies(node: Any) -> Any:
    return query.past(node, ops.SAME_VALUES, _DEEP)


def _past_mixing(node: Any) -> Any:
    """The operation that made probabilities, past the mean of several and a factor of one at most: they stay such."""
    for _ in range(_DEEP):
        node = _past_copies(node)
        kind = type(node).__name__
        if kind in ops.MEANS or (kind in ops.FACTORS and _shrinks(node)):
            node = query.first_input(node)
        elif kind in ops.JOINS:
            parts = [_past_mixing(child) for child in query.slots(node)]
            return parts[0] if len({type(part) for part in parts}) == 1 else node
        else:
            break
    return node


def _shrinks(node: Any) -> bool:
    """Whether one number, between -1 and 1, scales everything."""
    number = dict(saved.tensors(node)).get("other")
    if number is None or number.dim() or query.slots(node)[1] is not None or not number:
        return False
    return abs(number.item() if type(node).__name__ == "MulBackward0" else 1 / number.item()) <= 1


def _misaligned(one: Tensor, other: Tensor) -> bool:
    """The same sizes but for dimensions of size one, and yet each is broadcast against the other."""
    if one.dim() == other.dim() or one.numel() != other.numel():
        return False
    if [size for size in one.shape if size != 1] != [size for size in other.shape if size != 1]:
        return False
    return math.prod(_broadcast(one, other)) > one.numel()


def _broadcast(one: Tensor, other: Tensor) -> tuple[int, ...]:
    """The shape that an operation on both gives. Not by torch.broadcast_shapes, which imports sympy."""
    sizes = zip_longest(reversed(one.shape), reversed(other.shape), fillvalue=1)
    return tuple(right if left == 1 else left for left, right in sizes)[::-1]


def _reshaped(tensor: Tensor) -> bool:
    """Given its dimension of size one on purpose: by unsqueeze, an index of None, a view, or keepdim."""
    if tensor.dim() == 1:
        return False
    base = tensor._base
    if base is not None and base.dim() < tensor.dim():
        return True
    node = tensor.grad_fn
    return type(node).__name__ in ops.VIEWS or _keeps_dim(tensor)


def _keeps_dim(tensor: Tensor) -> bool:
    return bool(saved_argument(tensor.grad_fn, "keepdim"))


def _same_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _takes_pairs(node: Any) -> bool:
    """Whether data of the full shape, a weight for each pair, goes in as well: then pairs are meant."""
    inputs = query.slots(node)
    if len(inputs) != 2 or None not in inputs:
        return False
    values = dict(saved.tensors(node))
    data = values.get("other" if inputs[1] is None else "self")
    return data is not None and data.dim() > 1 and 1 not in data.shape


def _joins(node: Any) -> bool:
    """Whether more than one of its inputs has a graph."""
    return len(query.inputs(node)) > 1


def _summed_up(node: Any, nodes: Sequence[Any], between: frozenset[str]) -> bool:
    """Whether all that becomes of a node's output is one number: a mean or sum over everything, with nothing but these
    operations, on each element alone, up to there."""
    users = query.users_of(nodes)
    seen, waiting, reduced = {node}, [node], False
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if type(user).__name__ in ops.FULL_REDUCTIONS:
                reduced = True
            elif type(user).__name__ not in between or _takes_pairs(user) or (between is ops.SCALINGS and _joins(user)):
                return False
            elif user not in seen:
                seen.add(user)
                waiting.append(user)
    return reduced
