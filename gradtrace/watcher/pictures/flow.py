"""What gradient comes by at each node while a backward call runs: hooks that read and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.autograd.graph

from gradtrace.model.graph import Gradient
from gradtrace.watcher.compat import is_part, local_part, node_number
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph.walk import ACCUMULATE


class Flow:
    """Reads the gradients that arrive at these nodes, until `close`. `nodes` gives each node a number."""

    def __init__(self, session: Session, nodes: Mapping[Any, int]) -> None:
        self._session = session
        self.found: dict[int, Gradient] = {}
        self._numbers = {_key(node): number for node, number in nodes.items()}
        self._handles = [node.register_prehook(self._reader(number)) for node, number in nodes.items()]

    def close(self) -> None:
        """Takes the hooks out again."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def returned(self, inputs: Sequence[Any], gradients: Sequence[Any]) -> None:
        """What `autograd.grad` gave for its inputs: their own nodes do not run."""
        for tensor, gradient in zip(inputs, gradients, strict=False):
            edge = torch.autograd.graph.get_gradient_edge(tensor)
            number = self._numbers.get(_key(edge.node))
            if number is not None:
                self._read(number, (gradient,))

    def _reader(self, number: int) -> Callable[[tuple[Any, ...]], None]:
        def read(gradients: tuple[Any, ...]) -> None:
            self._session.guarded(self._read, number, gradients)

        return read

    def _read(self, number: int, gradients: tuple[Any, ...]) -> None:
        # no node may come of it where the call has create_graph=True
        with torch.no_grad():
            values = [_values(one) for one in gradients if isinstance(one, torch.Tensor)]
            found = [_fact(one) for one in values if one is not None]
            local = any(is_part(one) for one in gradients if isinstance(one, torch.Tensor))
        if found:
            self.found[number] = _together(found)._replace(local=local)


def _key(node: Any) -> int:
    """Keeps no node alive."""
    return -id(node.variable) if type(node) is ACCUMULATE else node_number(node)


def _values(gradient: torch.Tensor) -> torch.Tensor | None:
    gradient = local_part(gradient)
    if gradient.layout is not torch.strided:
        return gradient._values() if gradient.layout is torch.sparse_coo else None
    return gradient


def _fact(gradient: torch.Tensor) -> tuple[int, float, float, int, int]:
    """Elements, the sum of squares, the sum, and how many are exactly zero and how many not finite."""
    if gradient.is_complex():
        gradient = torch.view_as_real(gradient.resolve_conj())
    wide = torch.float64 if gradient.device.type == "cpu" else torch.float32
    total = gradient.sum(dtype=wide)
    norm = torch.linalg.vector_norm(gradient, dtype=wide) if gradient.is_floating_point() else total.abs()
    zeros, bad = (gradient == 0).sum(), gradient.numel() - gradient.isfinite().sum()
    return gradient.numel(), float(norm) ** 2, float(total), int(zeros), int(bad)


def _together(facts: list[tuple[int, float, float, int, int]]) -> Gradient:
    """Those of all outputs of a node as one."""
    elements, squares, total, zeros, bad = (sum(column) for column in zip(*facts, strict=True))
    many = max(int(elements), 1)
    return Gradient(float(squares) ** 0.5, total / many, zeros / many, bad / many)
