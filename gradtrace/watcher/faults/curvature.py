"""Second derivatives that are always zero, since only piecewise linear operations lie between: a ReLU network has no
curvature.

What is asked is the graph alone: no value is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from gradtrace.model.events import FlatDerivative
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import ops, query, walk

if TYPE_CHECKING:
    from gradtrace.watcher.core.backward import BackwardCall

#: calls of one place before anything is said, places that are looked at, and activations that are remembered
_SIGHTINGS, _PLACES, _ACTIVATIONS = 3, 256, 4_096


class Curvature(Observer):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: calls of each place whose result was zero; -1 once that is settled
        self._zeros: dict[Stack, int] = {}
        #: where piecewise linear operations were made, by their numbers and by those of what they were given
        self._activations: dict[int, Stack] = {}

    def functions(self) -> Mapping[Any, Handler]:
        return {torch.autograd.grad: self._differentiated}

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not call.create or not any(kind.__name__ in ops.PIECEWISE_LINEAR for kind in call.kinds):
            return
        if len(self._activations) > _ACTIVATIONS:
            self._activations.clear()
        for node in call.nodes:
            if type(node).__name__ in ops.PIECEWISE_LINEAR:
                made = self.session.trail.find(node_number(node))
                for one in (node, *query.inputs(node)):
                    if type(one) is not walk.ACCUMULATE:
                        self._activations[node_number(one)] = made

    def _differentiated(self, call: TorchCall) -> None:
        """Looks at gradients of gradients that are to be differentiated again: a value alone may be a measurement."""
        if not call.kwargs.get("create_graph") or not self.session.created:
            return
        stack = self.session.frames.stack(call.frame)
        seen = self._zeros.get(stack, 0)
        if seen < 0 or (stack not in self._zeros and len(self._zeros) >= _PLACES):
            return
        given = {**dict(zip(("outputs", "inputs"), call.args, strict=False)), **call.kwargs}
        inputs = tensors_in([given.get("inputs")])
        roots = walk.roots_of(tensors_in([given.get("outputs")]))
        below = query.below(roots)
        if not any(self._is_created(node) for node in below):
            return  # a first derivative
        ends = set(walk.roots_of(inputs))
        judged = len(below) < walk.LIMIT and not ends.isdisjoint(below) and not any(one.is_complex() for one in inputs)
        flat = self._flat_between(roots, ends) if judged else None
        self._zeros[stack] = seen + 1 if flat is not None else -1
        if flat is not None and seen + 1 == _SIGHTINGS:
            self._report(flat, stack)

    def _report(self, flat: Any, stack: Stack) -> None:
        slot, op = ops.PIECEWISE[type(flat).__name__]
        below = query.slots(flat)[slot]
        made = self._activations.get(node_number(below), ()) if type(below) is not walk.ACCUMULATE else ()
        root = questions.root_of(stack[0]) if stack else ""
        self._zeros[stack] = -1
        self.session.emit(FlatDerivative(stack, root, op, made, _SIGHTINGS))

    def _flat_between(self, roots: Sequence[Any], ends: set[Any]) -> Any | None:
        """A piecewise linear operation through whose slope all paths from the roots to any of the ends go; None where some
        path goes past such ones."""
        flat: list[Any] = []
        seen: set[Any] = set()
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            if node in ends:
                return None
            seen.add(node)
            closed = self._closed(node)
            if closed is not None:
                flat.append(node)
            waiting += [one for at, one in enumerate(query.slots(node)) if one is not None and at != closed]
        return next((node for node in flat if not ends.isdisjoint(query.below([node]))), None)

    def _closed(self, node: Any) -> int | None:
        """The input of a node to which it gives a gradient of zero."""
        found = ops.PIECEWISE.get(type(node).__name__)
        return found[0] if found is not None and self._is_created(node) else None

    def _is_created(self, node: Any) -> bool:
        """Whether it belongs to a graph of gradients."""
        return type(node) is not walk.ACCUMULATE and self.session.is_created(node_number(node))
