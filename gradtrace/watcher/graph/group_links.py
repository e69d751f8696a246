"""How the leaves of different optimizers are related in one graph: whose results go into whose operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from gradtrace.model.site import Stack
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.graph import goals, ops, query
from gradtrace.watcher.graph.walk import ACCUMULATE

Group = frozenset[int]


class _GroupGoal(NamedTuple):
    """Where the loss drives something, the groups whose leaves compute it, and those of its last layer."""

    goal: str
    outright: bool
    groups: frozenset[Group]
    last: frozenset[Group]


class GroupLinks:
    """Plain values only: it outlives the graph."""

    def __init__(self) -> None:
        #: pairs: what the first computes goes into an operation that has a leaf of the second
        self._feeds: set[tuple[Group, Group]] = set()
        #: pairs whose results are multiplied with each other
        self._weighs: set[frozenset[Group]] = set()
        #: pairs: an operation with a leaf of the first took in a value that was cut off from leaves of the second
        self._kept_from: set[tuple[Group, Group]] = set()
        self._goals: list[_GroupGoal] = []
        self._entries: dict[Group, Stack] = {}
        self._shapes: dict[Group, Counter[tuple[int, ...]]] = {}

    @classmethod
    def of(
        cls,
        nodes: Sequence[Any],
        group_of: Callable[[Any], Group],
        find: Callable[[int], Stack],
        cut_off: Callable[[Any], frozenset[Group]],
    ) -> GroupLinks:
        """`group_of` gives the owners of a leaf, `find` where the node of a number was made, `cut_off` the owners of the
        leaves behind the constants that a node took in."""
        made = cls()
        below: dict[Any, frozenset[Group]] = {}
        #: nodes that are a leaf as it is
        direct: dict[Any, Group] = {}
        first: dict[Group, int] = {}
        leaves: dict[Any, Any] = {}
        used: set[Any] = set()
        for node in sorted(nodes, key=node_number):
            parts = []
            for child in query.inputs(node):
                used.add(child)
                if type(child) is ACCUMULATE:
                    leaves[child] = child.variable
                    direct[child] = group_of(child.variable)
                    below[child] = frozenset([direct[child]])
                if below.get(child):
                    parts.append(child)
            below[node] = frozenset(group for child in parts for group in below[child])
            made._join(node, parts, below, direct, first)
            held = {direct[part] for part in parts if part in direct}
            made._kept_from |= {(mine, other) for mine in held for other in cut_off(node)}
        for goal in goals.goals(node for node in nodes if node not in used):
            last = frozenset(direct[part] for part in query.inputs(goal.node) if part in direct)
            made._goals.append(_GroupGoal(goal.goal, goal.outright, below.get(goal.node, frozenset()), last))
        made._entries = {group: find(number) for group, number in first.items()}
        for leaf in leaves.values():
            group = group_of(leaf)
            made._shapes.setdefault(group, Counter())[tuple(leaf.shape)] += 1
        return made

    def _join(
        self,
        node: Any,
        parts: list[Any],
        below: dict[Any, frozenset[Group]],
        direct: dict[Any, Group],
        first: dict[Group, int],
    ) -> None:
        name = type(node).__name__
        if name in ops.SAME_VALUES and len(parts) == 1 and parts[0] in direct:
            direct[node] = direct[parts[0]]
            return
        held = {direct[part] for part in parts if part in direct}
        for group in held:
            first.setdefault(group, node_number(node))
            self._feeds |= {(other, group) for part in parts for other in below[part] if other != group}
        if not held and len(parts) == 2 and name.startswith("MulBackward"):
            left, right = (below[part] for part in parts)
            if left.isdisjoint(right):
                self._weighs |= {frozenset((one, other)) for one in left for other in right}

    def feeds(self, mine: Iterable[Group], others: Iterable[Group]) -> bool:
        others = tuple(others)
        return any((one, other) in self._feeds for one in mine for other in others)

    def weighs(self, mine: Iterable[Group], others: Iterable[Group]) -> bool:
        others = tuple(others)
        return any(frozenset((one, other)) in self._weighs for one in mine for other in others)

    def kept_from(self, mine: Iterable[Group]) -> frozenset[Group]:
        """Those whose results enter networks of these as constants."""
        groups = frozenset(mine)
        return frozenset(other for one, other in self._kept_from if one in groups)

    def outright(self, mine: Iterable[Group]) -> bool:
        """Whether the loss is a plain sum of what these compute last, which has no minimum."""
        groups = frozenset(mine)
        return any(one.outright and not groups.isdisjoint(one.last) for one in self._goals)

    def goals(self, mine: Iterable[Group], others: Iterable[Group]) -> frozenset[str]:
        """Where the loss drives what these and the others compute together."""
        groups, beside = frozenset(mine), frozenset(others)
        both = (one for one in self._goals if not groups.isdisjoint(one.groups) and not beside.isdisjoint(one.groups))
        return frozenset(one.goal for one in both)

    def apart(self, mine: Iterable[Group], others: Iterable[Group]) -> bool:
        """Whether the loss also drives something that the others compute without these."""
        groups, beside = frozenset(mine), frozenset(others)
        return any(groups.isdisjoint(one.groups) and not beside.isdisjoint(one.groups) for one in self._goals)

    def entry(self, groups: Iterable[Group]) -> Stack:
        """Where leaves of these were first used."""
        return next((self._entries[group] for group in groups if group in self._entries), ())

    def twin(self, group: Group) -> bool:
        """Whether others' leaves have the same shapes, at least two of them."""
        mine = self._shapes.get(group, Counter())
        return mine.total() > 1 and any(not mine - theirs for other, theirs in self._shapes.items() if other != group)
