"""What the ledger keeps of a backward call, of a parameter's gradient, of an optimizer, and of a step."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import torch

from gradtrace.model.events import Fed
from gradtrace.model.site import Stack
from gradtrace.watcher.graph.group_links import Kinship

#: the optimizers that hold a leaf
Group = frozenset[int]


class Call:
    """One backward call, as long as its gradients are accounted for."""

    __slots__ = (
        "checked",
        "heard",
        "input_read",
        "kinship",
        "number",
        "reach",
        "read",
        "replaced",
        "root",
        "stack",
        "taken",
    )

    def __init__(self, number: int, stack: Stack, root: str) -> None:
        self.number = number
        self.stack = stack
        self.root = root
        #: the leaves it gave to, by their owners: some names, and how many
        self.reach: dict[Group, tuple[tuple[str, ...], int]] = {}
        #: by optimizer that used it: the number of the last backward call by then
        self.taken: dict[int, int] = {}
        self.read = False
        self.input_read = False
        self.heard = False
        self.replaced = False
        self.checked = False
        self.kinship: Kinship | None = None

    def is_like(self, other: Call) -> bool:
        """Whether it gave to the same leaves, of one group, and the same became of that."""
        if len(self.reach) != 1 or self.reach != other.reach or self.stack != other.stack or self.root != other.root:
            return False
        return self._fate == other._fate

    @property
    def _fate(self) -> tuple[bool, ...]:
        return self.read, self.input_read, self.heard, self.checked, self.replaced


@dataclass(slots=True)
class Purse:
    """The gradient of one parameter: the calls that it sums."""

    group: Group
    name: str
    calls: tuple[Call, ...] = ()
    #: calls summed, also those that are no longer remembered
    count: int = 0
    #: the gradient as last seen: id and version
    seen: tuple[int, int] | None = None
    #: set to zero since the last call
    zeroed: bool = False
    #: the user's code has looked at it
    read: bool = False
    #: pending clipping of it, see `Clips`
    clip: Any = None
    #: of a parameter in no optimizer: its first values, and whether they were seen to change
    mark: tuple[Any, ...] = ()
    written: bool = False

    @property
    def fresh(self) -> bool:
        """No step has used some of it."""
        return any(self.group.isdisjoint(call.taken) for call in self.calls)

    def spent(self, call: Call) -> bool:
        return not self.group.isdisjoint(call.taken)

    def empty(self) -> None:
        self.calls = ()
        self.count = 0
        self.seen = None
        self.read = False


@dataclass(slots=True)
class Account:
    """One optimizer."""

    name: str
    steps: int = 0
    #: number of the last backward call at its last step, and where that was
    calls: int = 0
    stack: Stack = ()
    #: calls cleared unused since its last step: the call, where, and whether some other step had used it by then
    lost: OrderedDict[int, tuple[Call, Stack, bool]] = field(default_factory=OrderedDict)
    clears: int = 0
    #: until its first step, by line: the last call, how many, and whether others used one of them
    waiting: dict[tuple[Stack, str], tuple[Call, int, bool]] = field(default_factory=dict)
    #: steps of all optimizers at its first gradient
    since: int = 0
    #: what was last told of a step, the only call that had fed it, and how many steps like it came after it
    fed: Fed | None = None
    source: Call | None = None
    times: int = 0

    def is_again(self, stack: Stack, calls: int, source: Call) -> bool:
        """Whether a step is like the last one that was told of."""
        fed = self.fed
        if fed is None or self.source is None or fed.stack != stack or fed.calls != calls:
            return False
        return source.is_like(self.source)


class Found:
    """What a step finds in its leaves."""

    def __init__(self) -> None:
        self.new: dict[int, Call] = {}
        self.old = False
        self.stale = False
        #: gradients of which we do not know where they come from
        self.unknown = False
        #: what the last leaf held, and which of these calls are new
        self._calls: tuple[Call, ...] = ()
        self._unused: list[Call] = []

    def add(self, purse: Purse, now: tuple[int, int], key: int) -> None:
        if purse.calls is not self._calls:
            self._calls = purse.calls
            self._unused = [call for call in purse.calls if key not in call.taken]
            self.new.update((call.number, call) for call in self._unused)
            self.stale |= 0 < len(self._unused) < len(purse.calls)
        if not self._unused:
            known = bool(purse.calls) and now == purse.seen
            self.old |= known
            self.unknown |= not known
        purse.seen = now


def state(grad: torch.Tensor | None) -> tuple[int, int] | None:
    """What tells a gradient from what it was before: its id and version counter."""
    return None if grad is None else (id(grad), grad._version)
