"""Bootstrap targets, `reward + gamma * value`, through which the gradient of a loss flows back into the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from gradtrace.model.events import AttachedTarget
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import local_part, node_number
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import ops, query, saved, walk

Tensor = torch.Tensor

_KEY = "gradtrace: bootstrap"
#: a discount: less than one, and more than a mere weight
_LEAST = 0.5
#: looks at one place; factors and views that are gone through
_LOOKS, _DEEP = 3, 6


class Targets(Observer):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._looks: Counter[Stack] = Counter()

    def functions(self) -> Mapping[Any, Handler]:
        adding = (Tensor.add, torch.add, Tensor.__radd__)
        return {**dict.fromkeys(adding, self._adds), **dict.fromkeys(ops.DISTANCE_FUNCTIONS, self._compares)}

    def _adds(self, call: TorchCall) -> None:
        """Marks the sum of data and a discounted value."""
        if call.after == call.before or len(call.args) < 2:
            return
        one, other = call.args[:2]
        if not (isinstance(one, Tensor) and isinstance(other, Tensor)) or one.requires_grad == other.requires_grad:
            return
        value, data = (one, other) if one.requires_grad else (other, one)
        if not data.dim() or data.numel() < 2 or type(value.grad_fn).__name__ != "MulBackward0":
            return
        if self._looks_left(call) and _is_discounted(value.grad_fn):
            call.out.grad_fn.metadata[_KEY] = True

    def _looks_left(self, call: TorchCall) -> bool:
        stack = self.session.frames.stack(call.frame)
        self._looks[stack] += 1
        return self._looks[stack] <= _LOOKS

    def _compares(self, call: TorchCall) -> None:
        sides = [one for one in (*call.args[:2], call.kwargs.get("target")) if isinstance(one, Tensor)]
        if call.after == call.before or len(sides) != 2 or not all(one.requires_grad for one in sides):
            return
        targets = [_bootstrap(one.grad_fn) for one in sides]
        if targets.count(None) != 1:
            return
        index = 1 if targets[0] is None else 0
        mine, its = (
            {self.session.ids.of(leaf) for leaf in query.leaves_of([side]) if self.session.owned(leaf)}
            for side in (sides[1 - index], sides[index])
        )
        if mine & its and self._looks_left(call):
            made = self.session.trail.find(node_number(targets[index]))
            stack = self.session.frames.stack(call.frame)
            self.session.emit(AttachedTarget(made, stack, call.func.__name__))


def _bootstrap(node: Any) -> Any:
    """The marked sum behind views of it; None where there is none."""
    made = query.past(node, ops.VIEWS, _DEEP)
    if made is None or type(made) is walk.ACCUMULATE or not made.metadata.get(_KEY):
        return None
    return made


def _is_discounted(node: Any) -> bool:
    """Whether a value is multiplied with constants that are a discount, or zero where an episode ends."""
    factor = 1.0
    for _ in range(_DEEP):
        if type(node).__name__ != "MulBackward0":
            break
        left, right = query.slots(node)
        if (left is None) == (right is None):
            return False
        constant = dict(saved.tensors(node)).get("other" if right is None else "self")
        constant = None if constant is None else local_part(constant)
        if constant is None or not constant.numel() or float(constant.min()) < 0:
            return False
        factor *= float(constant.max())
        node = left if right is None else right
    return _LEAST <= factor < 1
