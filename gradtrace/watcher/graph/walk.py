"""The walk through a graph at each backward call, and the marks it leaves on the nodes.

A mark lives in the node's `metadata`, which torch keeps in C++ beside the node: it dies with the graph and keeps
nothing of the user's alive. Python wrappers of nodes live as long as their nodes, and a long chain of wrapped nodes
overflows the C stack when it is dropped; so a walk ends at `LIMIT` nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradtrace.model.site import Stack
from gradtrace.watcher.compat import node_number

#: nodes that one walk of `check` visits at most
LIMIT = 10_000
KEY = "gradtrace"
_HELD = "gradtrace: holds"
#: nodes in a row that may be wrapped without more ado
_LINK = 2_000

ACCUMULATE: Any = type(torch.empty(0, requires_grad=True).expand(0).grad_fn.next_functions[0][0])  # type: ignore[union-attr]


class Mark:
    """Left on every node that a backward call ran through."""

    __slots__ = ("__weakref__", "call", "failed", "number", "owners", "request", "retained", "root", "stack")

    def __init__(self, call: int, request: str, stack: Stack, root: str, retained: bool, number: int) -> None:
        self.call = call
        self.request = request
        self.stack = stack
        self.root = root
        self.retained = retained
        #: the sequence number that the next node had when the call began
        self.number = number
        #: keys of the optimizers that own the leaves reached
        self.owners: frozenset[int] = frozenset()
        self.failed = False


@dataclass(slots=True)
class Visit:
    """What one walk met. Holds nodes: drop it when the call is over."""

    #: each node and the one from which it was first reached, None for a root
    nodes: dict[Any, Any] = field(default_factory=dict)
    leaves: list[torch.Tensor] = field(default_factory=list)
    #: edges into the graph of an earlier call that freed it: (user or None for a root, old node, its mark)
    old: list[tuple[Any, Any, Mark]] = field(default_factory=list)
    #: marks of earlier retaining calls on these nodes
    kept: set[Mark] = field(default_factory=set)
    #: whether all of the graph was seen
    whole: bool = True


def roots_of(tensors: Sequence[Any]) -> list[Any]:
    """The nodes of tensors or GradientEdges; leaves give their AccumulateGrad."""
    found = []
    for tensor in tensors:
        node = getattr(tensor, "node", None) if not isinstance(tensor, torch.Tensor) else _node(tensor)
        if node is not None:
            found.append(node)
    return found


def _node(tensor: torch.Tensor) -> Any:
    if not tensor.requires_grad:
        return None
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    try:
        return torch.autograd.graph.get_gradient_edge(tensor).node
    except AssertionError:  # a view made under no_grad: no node is its own
        return None


def visit(roots: Iterable[Any]) -> Visit:
    """Walks from the roots, past nodes of retaining calls, up to nodes of calls that freed them."""
    found = Visit()
    nodes = found.nodes
    leaves: dict[Any, None] = {}
    waiting = list(roots)
    # who uses each of those that wait
    users: list[Any] = [None] * len(waiting)
    while waiting and len(nodes) < LIMIT:
        user, node = users.pop(), waiting.pop()
        if node in nodes:
            continue
        if type(node) is ACCUMULATE:
            leaves[node] = None
            continue
        if marked := node.metadata.get(KEY):
            mark = marked[0]
            if not mark.retained:
                found.old.append((user, node, mark))
                continue
            found.kept.add(mark)
        nodes[node] = user
        for child, _ in node.next_functions:
            if child is not None:
                waiting.append(child)
                users.append(node)
    found.leaves = [node.variable for node in leaves]
    found.whole = not waiting
    return found


def stamp(nodes: Mapping[Any, Any], mark: Mark) -> None:
    """Marks each node, and notes the number of the node that used it."""
    for node, user in nodes.items():
        node.metadata[KEY] = mark, -1 if user is None else node_number(user)
    keep(list(nodes))


def mark_of(node: Any) -> Mark | None:
    found = node.metadata.get(KEY)
    return found[0] if found else None


def keep(nodes: Sequence[Any]) -> None:
    """Makes a deep graph of wrapped nodes safe to drop, whenever that is.

    A wrapped node is dropped from within the one above it: tens of thousands in a row overflow the C stack. Here every
    `_LINK`-th node holds those below it, as far as the next such node, in a list that lets the uppermost go first.
    """
    if len(nodes) <= _LINK:
        return
    inner = sorted((node for node in nodes if type(node) is not ACCUMULATE), key=lambda node: -node_number(node))
    for start in range(0, len(inner), _LINK):
        # a list is emptied from its end
        inner[start].metadata[_HELD] = inner[start + 1 : start + _LINK][::-1]
