"""Where a loss drives what networks compute: down, up, or toward a label that is the same for the whole batch.

Two losses that drive the same output to different places are opponents, whatever they are called; and a loss that is the
plain output of a network is there to train something else through it, since it has no minimum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from gradtrace.watcher.graph import ops, query, saved
from gradtrace.watcher.graph.walk import ACCUMULATE

#: nodes looked at in one graph
_MOST = 256
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Goal(NamedTuple):
    """Holds a node: not to be kept."""

    #: the layer or comparison at which the way through sums and rising functions ends
    node: Any
    #: "down", "up", "toward 1.0", "away from 0.0"
    goal: str
    #: nothing but sums lies between it and the loss
    outright: bool


class _LossPart(NamedTuple):
    """A part of a loss, on the way down from the root."""

    node: Any
    #: the loss falls where this falls
    down: bool
    outright: bool


def goals(roots: Iterable[Any]) -> Iterator[Goal]:
    """The goals of a loss, as far as they can be read from its graph."""
    waiting = [_LossPart(root, True, True) for root in roots]
    for _ in range(_MOST):
        if not waiting:
            return
        part = waiting.pop()
        name = type(part.node).__name__
        if name in ops.LABELLED:
            yield from _labelled(part)
        elif ops.computes_with_weight(name):
            yield Goal(part.node, "down" if part.down else "up", part.outright)
        else:
            waiting += _parts(part, name)


def _parts(part: _LossPart, name: str) -> list[_LossPart]:
    children = query.slots(part.node)
    signs = _signs(part.node, name, children)
    outright = part.outright and name not in ops.RISING
    found = []
    for child, same in zip(children, signs, strict=False):
        if child is not None and type(child) is not ACCUMULATE:
            found.append(_LossPart(child, part.down is same, outright))
    return found


def _signs(node: Any, name: str, children: Sequence[Any]) -> list[bool]:
    """For each input whether the result rises with it; empty where that is not known."""
    if name in ops.RISING_WITH_ALL or name in ops.RISING:
        return [True] * len(children)
    if name == "SubBackward0":
        return [True, False]
    if name in ops.FALLING:
        return [False]
    factor = _factor(node) if name in ops.FACTORS else 0.0
    return [factor > 0] * len(children) if factor else []


def _factor(node: Any) -> float:
    """The number that a product has as its other side; zero where it has none, or where that is not known."""
    if len(query.inputs(node)) != 1:
        return 0.0
    return next((float(one) for _, one in saved.tensors(node) if type(one) in _PLAIN and _is_number(one)), 0.0)


def _is_number(tensor: torch.Tensor) -> bool:
    return tensor.numel() == 1 and not tensor.is_meta and not tensor.is_complex()


def _labelled(part: _LossPart) -> Iterator[Goal]:
    label = next((one for name, one in saved.tensors(part.node) if name == "target"), None)
    if label is None or type(label) not in _PLAIN or label.requires_grad or label.is_meta or not label.numel():
        return
    low, high = (float(bound) for bound in label.detach().aminmax())
    if low == high:
        yield Goal(part.node, f"{'toward' if part.down else 'away from'} {low}", False)
