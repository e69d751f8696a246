"""The one book of gradients: which backward calls each leaf's `.grad` sums, and what became of these sums.

A backward call puts a `Share` of its gradient into the leaves that it reaches; what happens to it is noted once for each
group of leaves with the same owners, in its `Portion`. Leaves with the same history hold the same tuple of shares, so that
identity says which these are.

Judged by state, not by calls, since gradients are cleared in a dozen ways: the same `.grad` object at the same version as
after the last step is a used gradient; one that is None, or all zero, or another object, is a cleared one.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

import torch

from gradtrace.model.events import Contribution, Use
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import local_part
from gradtrace.watcher.core.identity import Identities, TensorId
from gradtrace.watcher.graph.group_links import Group, GroupLinks
from gradtrace.watcher.graph.reads import have_values

#: names given in one `Use`, and in one share
_NAMES, _FEW = 6, 4
#: shares remembered for one leaf: a gradient that nothing ever clears must not grow the memory
_MOST = 64
#: cleared shares remembered for one optimizer until its next step
_LOST = 64


class Act(Enum):
    """What can happen to a portion of a gradient."""

    #: a step of an optimizer used it
    USED = auto()
    #: the user's code looked at it
    READ = auto()
    #: a GradScaler looked for infinite values in it, and skips the step where it finds some
    CHECKED = auto()
    #: the user's code put a gradient of its own in the place of it, without looking at it
    REPLACED = auto()


class Fate(NamedTuple):
    """One thing that happened to it: `by` which optimizer, when there had been `clock` backward calls."""

    act: Act
    clock: int
    by: TensorId = 0


class Portion:
    """What one backward call put into the leaves of one group of owners."""

    __slots__ = ("count", "fates", "names", "owners")

    def __init__(self, owners: Group) -> None:
        self.owners = owners
        #: some of the leaves' names, and how many leaves
        self.names: list[str] = []
        self.count = 0
        #: in order of time; of one act by one optimizer the first
        self.fates: list[Fate] = []

    def note(self, act: Act, clock: int = 0, by: TensorId = 0) -> None:
        if not any(fate.act is act and fate.by == by for fate in self.fates):
            self.fates.append(Fate(act, clock, by))

    def use(self, optimizers: Iterable[TensorId], clock: int) -> None:
        for optimizer in optimizers:
            self.note(Act.USED, clock, optimizer)

    def had(self, act: Act) -> bool:
        return any(fate.act is act for fate in self.fates)

    def used_by(self, optimizer: TensorId) -> bool:
        return any(fate.act is Act.USED and fate.by == optimizer for fate in self.fates)

    @property
    def used(self) -> bool:
        """An optimizer that holds these leaves has used it."""
        return any(fate.act is Act.USED and fate.by in self.owners for fate in self.fates)

    @property
    def outcome(self) -> tuple[Any, ...]:
        """What it was and what happened to it, apart from steps."""
        acts = frozenset(fate.act for fate in self.fates if fate.act is not Act.USED)
        return self.owners, tuple(self.names), self.count, acts


class CallRecord:
    """One backward call that accumulates, as long as shares of it are accounted for."""

    __slots__ = ("__weakref__", "hooked", "inputs", "links", "origin", "portions")

    def __init__(self, origin: Contribution) -> None:
        self.origin = origin
        #: by owners of the leaves
        self.portions: dict[Group, Portion] = {}
        #: its portion in leaves that are no parameters, and that no optimizer holds
        self.inputs = Portion(frozenset())
        #: the user's code listens to gradients of this call: hooks, retain_grad
        self.hooked = False
        #: how the leaves of different owners are related in its graph
        self.links: GroupLinks | None = None

    @property
    def number(self) -> int:
        return self.origin.call

    @property
    def stack(self) -> Stack:
        return self.origin.stack

    def had(self, act: Act) -> bool:
        """Whether this happened to some portion of it."""
        return self.inputs.had(act) or any(portion.had(act) for portion in self.portions.values())

    def users(self) -> dict[TensorId, int]:
        """The optimizers that used portions of it, with the number of backward calls by then."""
        fates = (fate for portion in self.portions.values() for fate in portion.fates if fate.act is Act.USED)
        return {fate.by: fate.clock for fate in fates}

    def is_like(self, other: CallRecord) -> bool:
        """Whether it gave to the same leaves, of one group, and the same became of that."""
        mine, theirs = [*self.portions.values()], [*other.portions.values()]
        if len(mine) != 1 or len(theirs) != 1 or self.stack != other.stack or self.origin.root != other.origin.root:
            return False
        same = mine[0].outcome == theirs[0].outcome and self.hooked == other.hooked
        return same and self.inputs.had(Act.READ) == other.inputs.had(Act.READ)


class Share(NamedTuple):
    """What a leaf holds of a backward call. The call does not know its shares: a cycle would live until it is collected."""

    call: CallRecord
    portion: Portion


History = tuple[Share, ...]


class Leaf:
    """The state of one leaf's gradient."""

    __slots__ = (
        "clip",
        "count",
        "fed",
        "grad_read",
        "mark",
        "moved",
        "name",
        "named",
        "owners",
        "read",
        "seen",
        "shares",
        "updated",
        "used",
        "used_stack",
        "wasted",
        "written",
        "zeroed",
    )

    def __init__(self, name: str | None, shape: list[int]) -> None:
        self.named = name is not None
        self.name = name or f"a leaf of shape {shape}"
        self.owners: Group = frozenset()
        self.shares: History = ()
        #: shares summed, also those that are no longer remembered
        self.count = 0
        #: some backward call has given it a gradient
        self.fed = False
        #: how many of the shares a step has used, and where
        self.used = 0
        self.used_stack: Stack = ()
        #: the gradient as last seen: id and version
        self.seen: tuple[int, int] | None = None
        #: set to zero since the last call
        self.zeroed = False
        #: cleared since the last call, before a step had used all of it
        self.wasted = False
        #: the user's code has read .grad since it was last cleared, and since the last backward call
        self.read = False
        self.grad_read = False
        #: where the user's code has written to its values through an alias
        self.updated: Stack = ()
        #: `used` and `used_stack` before an update by hand that may still be taken back
        self.moved: tuple[int, Stack] | None = None
        #: pending clipping of it, see `Clips`
        self.clip: Any = None
        #: of a parameter in no optimizer: its first values, and whether they were seen to change
        self.mark: tuple[Any, ...] = ()
        self.written = False

    @property
    def fresh(self) -> bool:
        """The optimizers that hold it have not used all of it."""
        return any(not share.portion.used for share in self.shares)

    @property
    def unused(self) -> bool:
        """No step or update by hand has used all of it."""
        return self.used < len(self.shares)

    def empty(self) -> None:
        self.wasted |= self.unused
        self.shares = ()
        self.count = 0
        self.used = 0
        self.moved = None
        self.read = False
        # a new gradient may come to lie at the old one's address
        self.seen = None


class Lost(NamedTuple):
    """A share that was cleared before the optimizer used it: where, and whether some other step had used the call."""

    share: Share
    stack: Stack
    elsewhere: bool


@dataclass(slots=True)
class StepUse:
    """What a step finds in the leaves of its optimizer."""

    #: leaves with the same history in one `Use`
    uses: tuple[Use, ...] = ()
    #: the calls that it uses for the first time, by number
    new: dict[int, CallRecord] = field(default_factory=dict)
    #: calls of which everything was cleared since its last step
    lost: list[Lost] = field(default_factory=list)
    #: some leaf holds only what this optimizer has used; only part of what it holds; a gradient of unknown origin
    old: bool = False
    stale: bool = False
    unknown: bool = False
    #: the history of the last leaf, which most others share, and whether it holds something new
    _last: History = ()
    _is_new: bool = False

    def add(self, leaf: Leaf, now: tuple[int, int], key: TensorId) -> None:
        if leaf.shares is not self._last:
            unused = [share for share in leaf.shares if not share.portion.used_by(key)]
            self.new.update((share.call.number, share.call) for share in unused)
            self.stale |= 0 < len(unused) < len(leaf.shares)
            self._last, self._is_new = leaf.shares, bool(unused)
        if not self._is_new:
            known = bool(leaf.shares) and now == leaf.seen
            self.old |= known
            self.unknown |= not known


class Book:
    """The leaves that backward calls have reached."""

    def __init__(self, ids: Identities, owners_of: Callable[[torch.Tensor], Group]) -> None:
        self._ids = ids
        self._owners_of = owners_of
        self._leaves = ids.table(dict[TensorId, Leaf]())
        #: by optimizer, its shares that were cleared unused since its last step, by call
        self._lost: defaultdict[TensorId, OrderedDict[int, Lost]] = defaultdict(OrderedDict)
        #: how often this happened to each
        self.clears: defaultdict[TensorId, int] = defaultdict(int)
        #: a backward call that accumulates is under way
        self.running = False
        #: what the last step found
        self.stepped = StepUse()

    # leaves

    def known(self, tensor: torch.Tensor) -> Leaf | None:
        leaf = self._leaves.get(self._ids.known(tensor))
        # an operation in place may have made it the result of something
        return leaf if leaf is not None and tensor.is_leaf else None

    def names(self, tensors: Iterable[torch.Tensor]) -> tuple[str, ...]:
        """The user's names for those of these leaves that it knows; empty ones where there is no name."""
        return tuple(leaf.name for tensor in tensors if (leaf := self.known(tensor)) is not None)

    def name_of(self, number: TensorId) -> str:
        """The user's name for the leaf of this number; empty where there is none."""
        leaf = self._leaves.get(number)
        return leaf.name if leaf is not None else ""

    def kept(self, tensor: torch.Tensor) -> Leaf | None:
        """The leaf, if it has had a gradient and is a parameter, or an optimizer holds it."""
        leaf = self._leaves.get(self._ids.known(tensor))
        if leaf is None or not leaf.fed:
            return None
        return leaf if isinstance(tensor, torch.nn.Parameter) or self._owners_of(tensor) else None

    def add(self, tensor: torch.Tensor, name: str | None) -> None:
        self._leaves[self._ids.of(tensor)] = Leaf(name, list(tensor.shape))

    def leaves(self) -> Iterator[tuple[TensorId, Leaf]]:
        """All that are alive, with their identities."""
        return iter(list(self._leaves.items()))

    # backward calls

    def before_backward(self, leaves: Iterable[tuple[torch.Tensor, Leaf]]) -> None:
        """Takes note of clearings that were not seen."""
        for leaf in _cleared([(tensor.grad, leaf) for tensor, leaf in leaves if leaf.shares]):
            self.clear(leaf)

    def after_backward(
        self, leaves: Iterable[tuple[torch.Tensor, Leaf, tuple[int, int] | None]], call: CallRecord
    ) -> list[tuple[torch.Tensor, Leaf]]:
        """A backward call ran through to these leaves, whose gradients had these states before it. Returns those to which
        it gave something."""
        longer = _Longer(call)
        given = []
        for tensor, leaf, before in leaves:
            now = state(tensor.grad)
            if now is None or now == before:
                continue
            given.append((tensor, leaf))
            leaf.owners = self._owners_of(tensor)
            leaf.seen = now
            leaf.fed = True
            leaf.zeroed = leaf.grad_read = leaf.wasted = False
            leaf.count += 1
            portion = call.inputs
            if leaf.owners or isinstance(tensor, torch.nn.Parameter):
                portion = call.portions.get(leaf.owners) or call.portions.setdefault(leaf.owners, Portion(leaf.owners))
            portion.count += 1
            if len(portion.names) < _FEW:
                portion.names.append(leaf.name)
            known = len(leaf.shares)
            leaf.shares = longer(leaf.shares, portion)
            if len(leaf.shares) == known:
                leaf.used = max(leaf.used - 1, min(leaf.used, 1))
        return given

    # what becomes of gradients

    def use(self, tensors: Iterable[torch.Tensor], stack: Stack) -> tuple[Use, ...]:
        """A step, or an update by hand, uses these gradients as they are now."""
        groups: dict[tuple[int, int], list[Leaf]] = {}
        known = [(tensor.grad, leaf) for tensor in tensors if (leaf := self.known(tensor)) is not None]
        for leaf in _cleared([(grad, leaf) for grad, leaf in known if grad is None or len(leaf.shares) > 1]):
            self.clear(leaf)
        for grad, leaf in known:
            if grad is not None and leaf.shares:
                leaf.seen = state(grad)
                groups.setdefault((id(leaf.shares), leaf.used), []).append(leaf)
        uses = tuple(map(_use, groups.values()))
        for leaves in groups.values():
            for leaf in leaves:
                leaf.used, leaf.used_stack, leaf.moved = len(leaf.shares), stack, None
        return uses

    def step(self, tensors: Sequence[torch.Tensor], key: TensorId, stack: Stack, clock: int) -> StepUse:
        """An optimizer makes its step, after `clock` backward calls."""
        found = self.stepped = StepUse()
        if self.running:  # of a call that is under way it is not known yet to which leaves it gives
            self.forgive(key)
            found.uses = self.use(tensors, stack)
            return found
        for tensor in tensors:
            grad = tensor.grad
            leaf = self._leaves.get(self._ids.known(tensor))
            if grad is None:
                if leaf is not None and leaf.shares:
                    self.clear(leaf)
            elif leaf is None or not leaf.fed or (leaf.zeroed and bool(local_part(grad).any())):
                found.unknown = True
            elif not leaf.zeroed:
                found.add(leaf, (id(grad), grad._version), key)
        for number, lost in self._lost.pop(key, {}).items():
            if number not in found.new and key not in lost.share.call.users():
                found.lost.append(lost)
        found.uses = self.use(tensors, stack)
        for call in found.new.values():
            for portion in call.portions.values():
                portion.use([key], clock)
        return found

    def lost_by(self, key: TensorId) -> list[Lost]:
        """The shares of an optimizer that were cleared unused since its last step."""
        return [*self._lost.get(key, {}).values()]

    def forgive(self, key: TensorId) -> None:
        """What was cleared since this optimizer's last step is not to be counted."""
        self._lost.pop(key, None)

    def clear(self, leaf: Leaf, stack: Stack = ()) -> None:
        """The gradient was cleared, at `stack` if that is known."""
        for share in leaf.shares if leaf.owners else ():
            if not share.portion.used:
                for key in leaf.owners:
                    self._lose(key, Lost(share, stack, bool(share.call.users())))
        leaf.empty()

    def _lose(self, key: TensorId, lost: Lost) -> None:
        cleared = self._lost[key]
        if lost.share.call.number not in cleared:
            self.clears[key] += 1
            cleared[lost.share.call.number] = lost
            if len(cleared) > _LOST:
                cleared.popitem(last=False)

    def step_unseen(self, tensors: Iterable[torch.Tensor], clock: int) -> None:
        """A step was made where it could not be seen: it used these gradients, of which nothing more is known."""
        for tensor in tensors:
            leaf = self.known(tensor)
            if leaf is None:
                continue
            for share in leaf.shares:
                share.portion.use(leaf.owners, clock)
            leaf.empty()

    def replaced(self, tensor: torch.Tensor, value: torch.Tensor | None) -> None:
        """Another gradient, or none, was put in place. One that is made later may come to lie at the old one's address:
        state alone would not distinguish them."""
        leaf = self.known(tensor)
        if leaf is not None and leaf.seen is not None and leaf.seen[0] != id(value):
            leaf.seen = None


class _Longer:
    """Adds one share to histories. Leaves that shared a history share the longer one."""

    def __init__(self, call: CallRecord) -> None:
        self._call = call
        #: by the ids of history and portion: the history, to keep it alive, and the longer one
        self._known: dict[tuple[int, int], tuple[History, History]] = {}

    def __call__(self, history: History, portion: Portion) -> History:
        """One share more; of very many the second is dropped."""
        key = id(history), id(portion)
        known = self._known.get(key)
        if known is None:
            kept = history if len(history) < _MOST else (history[0], *history[2:])
            known = self._known[key] = history, (*kept, Share(self._call, portion))
        return known[1]


def state(grad: torch.Tensor | None) -> tuple[int, int] | None:
    """What distinguishes a gradient from what it was before: its id and version counter."""
    return None if grad is None else (id(grad), grad._version)


def _cleared(leaves: Iterable[tuple[torch.Tensor | None, Leaf]]) -> list[Leaf]:
    """The leaves whose gradient is None, another object, or all zero. Values are looked at only where a fault is in
    question: the gradient is used, or was written to."""
    found: list[Leaf] = []
    in_question: list[tuple[torch.Tensor, Leaf]] = []
    for grad, leaf in leaves:
        if grad is None or leaf.seen is None or id(grad) != leaf.seen[0]:
            found.append(leaf)
        # a write through .grad.data does not show in the version
        elif leaf.used or leaf.grad_read or state(grad) != leaf.seen:
            in_question.append((grad, leaf))
    filled = have_values([grad for grad, _ in in_question])
    found += [leaf for (_, leaf), values in zip(in_question, filled, strict=True) if not values]
    return found


def _use(leaves: list[Leaf]) -> Use:
    first = leaves[0]
    origins = tuple(share.call.origin for share in first.shares)
    names = tuple(leaf.name for leaf in leaves[:_NAMES])
    return Use(origins, first.used, first.used_stack, names, len(leaves))
