"""The picture of the graph of each line's last backward call, and of the one before it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch

from gradtrace.model.graph import Graph
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.pictures.snapshot import Snapshots, value_of

#: lines whose graphs are kept
_PLACES = 64


@dataclass(slots=True)
class _PicturedCall:
    #: what the graph is made of: where that is as before, the picture is too, but for the value of its root
    kinds: int
    graph: Graph
    root: weakref.ref[torch.Tensor] | None
    previous: Graph | None = None


class LatestPictures(Snapshots):
    """Takes a picture where the graph is not made of the same operations as at the last call of that line."""

    def __init__(self) -> None:
        super().__init__(stop_when_repeated=False, remaining=False)
        self._places: dict[tuple[str, int], _PicturedCall] = {}
        self._last: _PicturedCall | None = None

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        super().before_backward(call, frame, outputs)
        if not call.stack or not call.nodes:
            return
        kinds = hash((tuple(map(type, call.nodes)), call.request))
        place = self._places.get(call.stack[0].place)
        root = weakref.ref(outputs[0]) if len(outputs) == 1 else None
        if place is not None and place.kinds == kinds:
            place.previous, place.root = place.graph, root
        else:
            previous = place.graph if place is not None else None
            if len(self._places) >= _PLACES:
                self._places.pop(next(iter(self._places)))
            place = _PicturedCall(kinds, self.picture_of(call, frame, outputs), root, previous)
            self._places[call.stack[0].place] = place
        self._last = place

    @property
    def latest(self) -> Graph | None:
        """The graph of the last backward call, as it was before that call."""
        return _with_value(self._last) if self._last is not None else None

    @property
    def previous(self) -> Graph | None:
        """The graph of the call before it on the same line."""
        return self._last.previous if self._last is not None else None


def _with_value(place: _PicturedCall) -> Graph:
    """The picture with the value that its root has now; without one, where the root is gone."""
    graph = place.graph
    if len(graph.roots) != 1:
        return graph
    value = value_of(place.root()) if place.root is not None else None
    nodes = tuple(node._replace(value=value) if node.id == graph.roots[0] else node for node in graph.nodes)
    return replace(graph, nodes=nodes)
