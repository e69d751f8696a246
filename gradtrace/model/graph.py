"""A snapshot of an autograd graph: plain values, no tensors, nothing that keeps the user's memory alive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from gradtrace.model.site import Stack


class Kind(Enum):
    """What a node of the snapshot stands for."""

    __hash__ = object.__hash__  # Enum's own goes through the name, in Python
    #: a backward function (`AddBackward0`, or the class of a custom `autograd.Function`)
    OP = "op"
    #: a leaf that requires grad: `AccumulateGrad`
    LEAF = "leaf"
    #: an input that requires no grad; torch keeps no node for it
    CONSTANT = "constant"
    #: a place where the path was cut (`detach()`, `no_grad`, `.data` ...); its inputs are what lies behind
    CUT = "cut"
    #: several nodes drawn as one; only in folded graphs
    BOX = "box"


class SavedState(Enum):
    """Whether a saved tensor is still there and still what it was."""

    __hash__ = object.__hash__
    HELD = "held"
    FREED = "freed"
    MODIFIED = "modified"


class TensorFact(NamedTuple):
    """Shape and dtype of a tensor, e.g. `(64, 10)` and `float32`; None where torch does not say."""

    shape: tuple[int, ...] | None
    dtype: str | None = None
    device: str = "cpu"


class Saved(NamedTuple):
    """A tensor that a node saved for its backward (`_saved_self` is named `self`). `bytes` counts its elements."""

    name: str
    tensor: TensorFact
    bytes: int
    state: SavedState = SavedState.HELD
    #: number of the memory it lies in, equal for tensors that share it, and the bytes of all of it; 0 where unknown
    storage: int = 0
    storage_bytes: int = 0
    #: the memory is that of a parameter or a module's buffer: it lives without the graph
    parameter: bool = False


class Gradient(NamedTuple):
    """The gradient that arrived at a node's outputs, or at a leaf, in a backward call."""

    norm: float
    mean: float
    #: shares, from 0 to 1, of elements that are exactly zero and that are NaN or infinite
    zeros: float
    nonfinite: float
    #: it is of the part of a distributed tensor that this rank holds
    local: bool = False


class Call(NamedTuple):
    """One call of an `nn.Module` whose operations are in the graph. `number` counts from 1 in order of the calls."""

    number: int
    #: `encoder.layers.2`
    path: str
    #: its class: `TransformerEncoderLayer`
    kind: str
    #: number of the call inside which it ran; 0 for none
    inside: int = 0


class Box(NamedTuple):
    """Several nodes of a graph, drawn as one."""

    #: ids of the nodes inside
    members: tuple[int, ...]
    #: paths of the modules in it, one for each iteration of a repetition; empty outside of modules
    paths: tuple[str, ...] = ()
    #: names of the functions in it that are outside of modules
    functions: tuple[str, ...] = ()
    #: how many equal iterations it stands for
    times: int = 1
    #: the iterations are further ones of the one that is shown beside the box
    more: bool = False
    #: operations inside, and elements of the parameters they use
    operations: int = 0
    parameters: int = 0
    #: bytes of memory kept for the nodes inside, without that of parameters; shared memory at the node that was first
    saved_bytes: int = 0


class Node(NamedTuple):
    """One node. `id` counts from 1 in the order in which a walk from the root meets the nodes, the same in each run."""

    id: int
    kind: Kind
    #: `AddBackward0`; for a cut what cut it (`detach()`); for constants and leaves empty
    op: str
    #: the user's name for the output: `loss`, `self.hidden`, `model.fc.weight`
    name: str | None = None
    #: one for each output
    outputs: tuple[TensorFact, ...] = ()
    #: where the user's code made it, innermost frame first; empty where unknown
    stack: Stack = ()
    #: path of the innermost nn.Module it ran in: `encoder.layers.2.linear1`
    module: str = ""
    saved: tuple[Saved, ...] = ()
    #: leaf only: "None", "zero" or "accumulated"
    grad: str | None = None
    #: the value of a scalar, rounded for people
    value: str | None = None
    #: what is special: "freed", "modified in place", "in-place", "view", "custom Function", "checkpoint",
    #: "double backward", "hook"
    tags: tuple[str, ...] = ()
    #: number of the innermost module call it ran in; 0 for none
    call: int = 0
    #: its place in the order in which operations were made; 0 for what is none
    made: int = 0
    #: None where no gradient came by, or none was looked at
    gradient: Gradient | None = None
    box: Box | None = None


class Edge(NamedTuple):
    """`user` consumed output number `output` of `source` as its input number `input`."""

    user: int
    source: int
    input: int
    output: int = 0


@dataclass(frozen=True)
class Graph:
    """The graph below one root (or several, where `backward` was called on several tensors).

    `nodes` are in the order of their ids. `request` says what it was drawn for: "backward", "grad", "now" for a tensor
    that was looked at, or "" for one that merely remained at the end. `stack` is the place of that request.
    """

    roots: tuple[int, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    request: str = ""
    stack: Stack = ()
    retain_graph: bool = False
    create_graph: bool = False
    #: facts that do not fit a node, in the user's words ("only the first 100000 nodes are shown")
    remarks: tuple[str, ...] = field(default=())
    #: the module calls that nodes ran in, in the order of their numbers
    calls: tuple[Call, ...] = ()
    #: names of the script's parameters that no path leads to
    absent: tuple[str, ...] = ()
    #: of a folded graph: the graph it stands for, how many levels of modules are open, and how many there are
    whole: Graph | None = None
    opened: int = 0
    levels: int = 0

    @cached_property
    def by_id(self) -> Mapping[int, Node]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def call(self) -> Mapping[int, Call]:
        """The module calls by their numbers."""
        return {call.number: call for call in self.calls}

    @cached_property
    def inputs(self) -> Mapping[int, tuple[Edge, ...]]:
        """The edges to what each node consumed, in input order."""
        edges = sorted(self.edges, key=attrgetter("user", "input"))
        return {user: tuple(group) for user, group in groupby(edges, attrgetter("user"))}

    @cached_property
    def uses(self) -> Mapping[int, int]:
        """How many edges lead to each node."""
        return Counter(edge.source for edge in self.edges)

    @property
    def ops(self) -> int:
        """How many backward functions there are."""
        return sum(node.kind is Kind.OP for node in self.nodes)

    @property
    def leaves(self) -> int:
        """How many leaves gradients can reach."""
        return sum(node.kind is Kind.LEAF for node in self.nodes)

    @cached_property
    def order(self) -> Sequence[int]:
        """All nodes, users before what they read; fewer where edges lead in a circle. No recursion: graphs are deep."""
        waiting = Counter(edge.source for edge in self.edges)
        ready = [node.id for node in self.nodes if node.id not in waiting]
        found = []
        while ready:
            found.append(ready.pop())
            for edge in self.inputs.get(found[-1], ()):
                waiting[edge.source] -= 1
                if not waiting[edge.source]:
                    ready.append(edge.source)
        return found

    @property
    def is_acyclic(self) -> bool:
        return len(self.order) == len(self.nodes)

    @cached_property
    def depth(self) -> int:
        """Nodes on the longest path from a root to a leaf, both counted."""
        level = dict.fromkeys(self.by_id, 1)
        for user in self.order:
            for edge in self.inputs.get(user, ()):
                level[edge.source] = max(level[edge.source], level[user] + 1)
        return max(level.values(), default=0)
