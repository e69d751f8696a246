"""Boxes: nodes that stand for several others, and what they show of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from gradtrace.graphs.parts import Part, Parts, is_freed
from gradtrace.model.graph import Box, Call, Graph, Kind, Node, TensorFact
from gradtrace.model.site import Stack


@dataclass(frozen=True, slots=True)
class Closed:
    """What is to be drawn as one."""

    members: tuple[int, ...]
    #: of the modules that it consists of, and the functions outside of modules
    calls: tuple[Call, ...]
    functions: tuple[str, ...]
    times: int
    #: path of the module around it
    around: str
    #: operations of the equal iteration that is shown beside it
    shown: frozenset[int]


def shut(
    parts: Parts, iterations: Sequence[Sequence[Part | int]], around: str, shown: frozenset[int] = frozenset()
) -> Iterator[Closed]:
    """The iterations as one; a single operation without a leaf stays what it is."""
    members = parts.members(iterations)
    if len(members) == 1 and not parts.reads_leaf(members[0]):
        return
    inner = [one for iteration in iterations for one in iteration if isinstance(one, Part)]
    calls = tuple(one.call for one in inner if one.call is not None)
    functions = tuple(dict.fromkeys(str(one.key[2]) for one in inner if one.key[0] == "function"))
    if len(members) > 1 or calls:
        yield Closed(members, calls, functions, len(iterations), around, shown)


def box(
    graph: Graph,
    closed: Closed,
    number: int,
    ends: Collection[int],
    outputs: Iterable[tuple[int, int]],
    saved: int,
) -> Node:
    """The node with this number for what is closed. `ends` are the leaves and constants in it, `outputs` what leaves it,
    by node and output; `saved` are the bytes kept for what is in it."""
    nodes = [graph.by_id[member] for member in closed.members]
    leaves = [one for end in ends if (one := graph.by_id[end]).kind is Kind.LEAF and one.outputs]
    out = [graph.by_id[node] for node, _ in outputs]
    lone = out[0] if len(out) == 1 else None
    return Node(
        id=number,
        kind=Kind.BOX,
        op=", ".join(dict.fromkeys(call.kind for call in closed.calls)) or _operations(nodes),
        name=lone.name if lone is not None else None,
        outputs=tuple(_fact(graph.by_id[node], output) for node, output in outputs),
        stack=_outside(_common(nodes), _classes(graph, nodes, closed.calls)),
        module=closed.around,
        value=lone.value if lone is not None else None,
        tags=tuple(_tags(nodes, leaves)),
        gradient=out[0].gradient if out else None,
        box=Box(
            members=(*closed.members, *ends),
            paths=tuple(dict.fromkeys(call.path for call in closed.calls)),
            functions=closed.functions,
            times=closed.times,
            more=bool(closed.shown),
            operations=len(nodes),
            parameters=sum(prod(leaf.outputs[0].shape or ()) for leaf in leaves),
            saved_bytes=saved,
        ),
    )


def _tags(nodes: Sequence[Node], leaves: Sequence[Node]) -> Iterator[str]:
    """What must not be hidden: what of all this is freed, unknown, or has gradients that went wrong."""
    if any(map(is_freed, nodes)):
        yield "freed"
    if any("checkpoint" in node.tags for node in nodes):
        yield "checkpoint"
    bad = sum(node.gradient is not None and node.gradient.nonfinite > 0 for node in (*nodes, *leaves))
    if bad:
        yield f"{bad:,} NaN or infinite gradient{'s' * (bad > 1)} inside"
    if dead := sum(leaf.gradient is not None and leaf.gradient.zeros == 1 for leaf in leaves):
        yield f"{dead:,} all-zero leaf gradient{'s' * (dead > 1)} inside"


def _classes(graph: Graph, nodes: Sequence[Node], calls: Sequence[Call]) -> set[str]:
    """The classes of the modules in a box."""
    outer = {call.inside for call in calls}
    known = graph.call
    numbers = {node.call for node in nodes} if calls else set()
    found = set()
    while numbers := {number for number in numbers if number in known} - outer:
        found |= {known[number].kind for number in numbers}
        numbers = {known[number].inside for number in numbers}
    return found


def _fact(node: Node, output: int) -> TensorFact:
    return node.outputs[output] if output < len(node.outputs) else TensorFact(None)


def _operations(nodes: Sequence[Node]) -> str:
    """`Sub, Pow, Mean`."""
    ops = dict.fromkeys([node.op for node in nodes])
    names = list(dict.fromkeys(op.rstrip("0123456789").removesuffix("Backward") for op in ops))
    return ", ".join(names[:3] + ["…"] * (len(names) > 3))


def _outside(stack: Stack, classes: Collection[str]) -> Stack:
    """The place outside of the `forward` of these classes."""
    at = 0
    while at + 1 < len(stack) and stack[at].in_module_call and f".{stack[at].function}".split(".")[-2] in classes:
        at += 1
    return stack[at:]


def _common(nodes: Sequence[Node]) -> Stack:
    """The innermost place that all nodes were made at, or were called from."""
    distinct = {id(node.stack): node.stack for node in nodes if node.stack}
    stacks = [stack[::-1] for stack in distinct.values()]
    if not stacks:
        return ()
    first, depth = stacks[0], min(map(len, stacks))
    same = 0
    while same < depth and len({stack[same].place for stack in stacks}) == 1:
        same += 1
    return first[:same][::-1] or nodes[-1].stack
