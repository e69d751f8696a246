"""The picture of the graph of each line's last backward call, and of the one before it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch

from gradtrace.model.graph import Graph
from gradtrace.watcher import compat
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.pictures.snapshot import Snapshots, value_of

#: lines whose graphs are kept
_PLACES = 64


@dataclass(slots=True)
class _PicturedCall:
    #: what the graph is made of: where that is as before, the picture is too, but for the name and value of its root
    made_of: int
    graph: Graph
    #: the root's node: a second call on the same one finds its graph freed
    root_node: int
    #: the user's expression for the root
    name: str
    root: weakref.ref[torch.Tensor] | None
    previous: Graph | None = None


class LatestPictures(Snapshots):
    """Takes a picture where the graph is not made as at the last call of that line."""

    def __init__(self) -> None:
        super().__init__(stop_when_repeated=False, remaining=False)
        self._places: dict[tuple[str, int], _PicturedCall] = {}
        self._last: _PicturedCall | None = None

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        super().before_backward(call, frame, outputs)
        # of a graph that an earlier call ran through no node is walked again
        if not call.stack or call.root_node < 0:
            return
        made_of = self._made_of(call)
        place = self._places.get(call.stack[0].place)
        root = weakref.ref(outputs[0]) if len(outputs) == 1 else None
        if place is not None and place.made_of == made_of and place.root_node != call.root_node:
            place.previous = place.graph
        else:
            previous = place.graph if place is not None else None
            if len(self._places) >= _PLACES:
                self._places.pop(next(iter(self._places)))
            graph = self.picture_of(call, frame, outputs)
            place = _PicturedCall(made_of, graph, call.root_node, call.root, root, previous)
            self._places[call.stack[0].place] = place
        place.root, place.root_node, place.name = root, call.root_node, call.root
        self._last = place

    def _made_of(self, call: BackwardCall) -> int:
        """A hash of the operations and their shapes, and of the leaves and which of them have a gradient."""
        operations = [(type(node), *(tuple(one.shape) for one in compat.output_metadata(node))) for node in call.nodes]
        leaves = [(self.session.ids.of(leaf), leaf.grad is None) for leaf in call.leaves]
        return hash((call.request, *operations, *leaves))

    @property
    def latest(self) -> Graph | None:
        """The graph of the last backward call, as it was before that call."""
        return _with_value(self._last) if self._last is not None else None

    @property
    def previous(self) -> Graph | None:
        """The graph of the call before it on the same line."""
        return self._last.previous if self._last is not None else None


def _with_value(place: _PicturedCall) -> Graph:
    """The picture with the name and the value that its root has now; without a value, where the root is gone."""
    graph = place.graph
    if len(graph.roots) != 1:
        return graph
    value = value_of(place.root()) if place.root is not None else None
    nodes = list(graph.nodes)
    for at, node in enumerate(nodes):
        if node.id == graph.roots[0]:
            nodes[at] = node._replace(value=value, name=place.name or node.name)
    return replace(graph, nodes=tuple(nodes))
