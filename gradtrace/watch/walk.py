"""The walk through a graph at each backward call, and the marks it leaves on the nodes.

A mark lives in the node's `metadata`, which torch keeps in C++ beside the node: it dies with the graph and keeps
nothing of the user's alive. Python wrappers of nodes live as long as their nodes, and a long chain of wrapped nodes
overflows the C stack when it is dropped; so a walk ends at `LIMIT` nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from gradtrace.model.site import Stack

#: nodes that one walk of `check` visits at most
LIMIT = 10_000
KEY = "gradtrace"
_HELD = "gradtrace: holds"
#: nodes in a row that may be wrapped without more ado
_LINK = 2_000

ACCUMULATE: Any = type(torch.empty(0, requires_grad=True).expand(0).grad_fn.next_functions[0][0])  # type: ignore[union-attr]

#: operations that compute nothing: using their node again spoils nothing
VIEWS = frozenset(
    name + "Backward0"
    for name in (
        "Alias AsStrided Diagonal Expand Permute ReshapeAlias Select Slice Split SplitWithSizes Squeeze T Transpose "
        "Unbind Unfold UnsafeView Unsqueeze View ViewAsReal ViewAsComplex"
    ).split()
) | {"SqueezeBackward1", "SqueezeBackward2", "TransposeBackward1"}


class Mark:
    """Left on every node that a backward call ran through."""

    __slots__ = ("__weakref__", "call", "failed", "number", "owners", "retained", "root", "stack")

    def __init__(self, call: int, stack: Stack, root: str, retained: bool, number: int) -> None:
        self.call = call
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

    nodes: list[Any] = field(default_factory=list)
    leaves: list[torch.Tensor] = field(default_factory=list)
    #: edges into the graph of an earlier call that freed it: (user or None for a root, old node, its mark)
    old: list[tuple[Any, Any, Mark]] = field(default_factory=list)
    #: marks of earlier retaining calls on nodes met
    kept: set[Mark] = field(default_factory=set)


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
    return tensor.grad_fn if tensor.grad_fn is not None else torch.autograd.graph.get_gradient_edge(tensor).node


def visit(roots: Iterable[Any]) -> Visit:
    """Walks from the roots, past nodes of retaining calls, up to nodes of calls that freed them."""
    found = Visit()
    seen: set[Any] = set()
    waiting: list[tuple[Any, Any]] = [(None, root) for root in roots]
    while waiting and len(found.nodes) < LIMIT:
        user, node = waiting.pop()
        if node in seen:
            continue
        if type(node) is ACCUMULATE:
            seen.add(node)
            found.leaves.append(node.variable)
            continue
        mark = node.metadata.get(KEY)
        if mark is not None and not mark.retained:
            found.old.append((user, node, mark))
            continue
        if mark is not None:
            found.kept.add(mark)
        seen.add(node)
        found.nodes.append(node)
        waiting += [(node, child) for child, _ in node.next_functions if child is not None]
    return found


def restrict(found: Visit, inputs: Sequence[Any]) -> Visit:
    """What of the visit runs when gradients are asked for `inputs` alone: the nodes between the roots and them."""
    wanted = set(roots_of(inputs))
    users: dict[Any, list[Any]] = {}
    for node in found.nodes:
        for child, _ in node.next_functions:
            if child is not None:
                users.setdefault(child, []).append(node)
    runs: set[Any] = set()
    waiting = list(wanted)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in runs:
                runs.add(user)
                waiting.append(user)
    leaves = [leaf for leaf in found.leaves if any(leaf is asked for asked in inputs)]
    nodes = [node for node in found.nodes if node in runs]
    # whether the old part leads to an input is not known: its nodes were not walked
    return Visit(nodes, leaves, [edge for edge in found.old if edge[0] in runs or edge[0] is None], found.kept)


def stamp(nodes: Sequence[Any], mark: Mark) -> None:
    for node in nodes:
        node.metadata[KEY] = mark
    keep(nodes)


def keep(nodes: Sequence[Any]) -> None:
    """Makes a deep graph of wrapped nodes safe to drop, whenever that is.

    A wrapped node is dropped from within the one above it: tens of thousands in a row overflow the C stack. Here every
    `_LINK`-th node holds those below it, as far as the next such node, in a list that lets the uppermost go first.
    """
    if len(nodes) <= _LINK:
        return
    inner = sorted((node for node in nodes if type(node) is not ACCUMULATE), key=lambda node: -node._sequence_nr())
    for start in range(0, len(inner), _LINK):
        # a list is emptied from its end
        inner[start].metadata[_HELD] = inner[start + 1 : start + _LINK][::-1]


class Ancestry:
    """Who used whom in a visit that ran into the graph of an earlier call."""

    def __init__(self, found: Visit) -> None:
        self._nodes = found.nodes
        self._users: dict[Any, list[Any]] = {}
        for node in found.nodes:
            for child, _ in node.next_functions:
                if child is not None:
                    self._users.setdefault(child, []).append(node)

    def entry(self, user: Any, node: Any, number: int) -> tuple[Any, Any]:
        """The first node made at `number` or later above the edge from `user` to `node`, and the older one that it
        used.

        What lies between was made before that moment, though the earlier call did not run through it: a hidden state
        hangs on the same cell as the loss. Where all is older the edge itself is the entry.
        """
        seen = {user}
        waiting = [(user, node)]
        while waiting:
            upper, lower = waiting.pop(0)
            if upper is None or upper._sequence_nr() >= number:
                return upper, lower
            for above in self._users.get(upper, ()):
                if above not in seen:
                    seen.add(above)
                    waiting.append((above, upper))
        return user, node

    def has_leaves_since(self, number: int) -> bool:
        """Whether a node made at `number` or later takes in a leaf."""
        return any(
            type(child) is ACCUMULATE
            for node in self._nodes
            if node._sequence_nr() >= number
            for child, _ in node.next_functions
        )


def distinct(edges: Iterable[tuple[Any, Any, Mark]]) -> Iterator[tuple[Any, Any, Mark]]:
    """One edge for each earlier call and pair of operations."""
    seen = set()
    for user, node, mark in edges:
        key = (mark.call, type(user), type(node))
        if key not in seen:
            seen.add(key)
            yield user, node, mark
