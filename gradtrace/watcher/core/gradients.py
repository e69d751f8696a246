"""What each leaf's .grad is made of: which backward calls it sums, and whether a step has used it already.

Judged by state, not by calls, since gradients are cleared in a dozen ways: the same `.grad` object at the same
version as after the last step is a used gradient; one that is None, or all zero, is a cleared one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from gradtrace.model.events import Contribution, Use
from gradtrace.model.site import Stack
from gradtrace.watcher.core.history import Longer
from gradtrace.watcher.core.identity import Identities, TensorId

#: names given in one event
_NAMES = 6


class Leaf:
    """The state of one leaf's gradient."""

    __slots__ = "contributions fed grad_read moved name named seen updated used used_stack".split()

    def __init__(self, name: str | None, shape: list[int]) -> None:
        self.named = name is not None
        self.name = name or f"a leaf of shape {shape}"
        self.contributions: tuple[Contribution, ...] = ()
        #: some backward call has given it a gradient
        self.fed = False
        #: how many of the contributions a step has used, and where
        self.used = 0
        self.used_stack: Stack = ()
        #: the gradient as last seen: id and version
        self.seen: tuple[int, int] | None = None
        #: the user's code has read .grad since the last backward call
        self.grad_read = False
        #: where the user's code has written to its values through an alias
        self.updated: Stack = ()
        #: `used` and `used_stack` before an update by hand that may still be taken back
        self.moved: tuple[int, Stack] | None = None

    def clear(self) -> None:
        self.contributions = ()
        self.used = 0
        self.moved = None
        # a new gradient may come to lie at the old one's address
        self.seen = None


class Gradients:
    """The leaves that backward calls have reached."""

    def __init__(self, ids: Identities) -> None:
        self._ids = ids
        self._leaves = ids.table(dict[TensorId, Leaf]())
        #: leaves whose .grad was read since the last backward call, by where their values lie
        self._reading: dict[int, Leaf] = {}
        #: leaves of optimizers that were updated by hand, by where their values lie
        self._moved: dict[int, Leaf] = {}

    def known(self, tensor: torch.Tensor) -> Leaf | None:
        leaf = self._leaves.get(self._ids.known(tensor))
        # an operation in place may have made it the result of something
        return leaf if leaf is not None and tensor.is_leaf else None

    def add(self, tensor: torch.Tensor, name: str | None) -> None:
        self._leaves[self._ids.of(tensor)] = Leaf(name, list(tensor.shape))

    def read(self, tensor: torch.Tensor, leaf: Leaf) -> None:
        """The user's code read the leaf's .grad."""
        leaf.grad_read = True
        if tensor.layout is torch.strided:
            self._reading[tensor.data_ptr()] = leaf

    def alias_of(self, tensor: torch.Tensor) -> Leaf | None:
        """The leaf whose .grad was read, or that was updated by hand, and whose values `tensor` shares."""
        if not (self._reading or self._moved) or tensor.layout is not torch.strided:
            return None
        where = tensor.data_ptr()
        return self._reading.get(where) or self._moved.get(where)

    def move(self, tensor: torch.Tensor, leaf: Leaf, stack: Stack) -> tuple[Use, ...]:
        """An update by hand of what an optimizer holds: an attack on the weights, which is taken back before the step."""
        before = leaf.moved or (leaf.used, leaf.used_stack)
        uses = self.use([tensor], stack)
        leaf.moved = before if leaf.contributions else None
        if tensor.layout is torch.strided:
            self._moved[tensor.data_ptr()] = leaf
        return uses

    def take_back(self, leaf: Leaf) -> None:
        """The values that were there before an update by hand are put back: it has used no gradient."""
        if leaf.moved is not None:
            leaf.used, leaf.used_stack = leaf.moved
            leaf.moved = None

    def settle(self) -> None:
        """An optimizer made its step: what has been updated by hand stays so."""
        self._moved.clear()

    def replaced(self, tensor: torch.Tensor, value: torch.Tensor | None) -> None:
        """Another gradient, or none, was put in place. One that is made later may come to lie at the old one's address:
        state alone would not tell them apart."""
        leaf = self.known(tensor)
        if leaf is not None and leaf.seen is not None and leaf.seen[0] != id(value):
            leaf.seen = None

    def cleared(self, tensors: Iterable[torch.Tensor]) -> None:
        """`zero_grad()` has set these gradients to None. What they were made of is known until the next backward call."""
        for tensor in tensors:
            leaf = self.known(tensor)
            if leaf is not None:
                leaf.seen = None

    def forget(self, tensors: Iterable[torch.Tensor]) -> None:
        """Of these gradients it is not known any more what they are made of."""
        for tensor in tensors:
            if leaf := self.known(tensor):
                leaf.clear()

    def before_backward(self, tensor: torch.Tensor, leaf: Leaf) -> None:
        """Forgets the contributions where the gradient was cleared since."""
        if leaf.contributions and _cleared(tensor.grad, leaf):
            leaf.clear()

    def after_backward(self, leaves: Sequence[tuple[torch.Tensor, Leaf]], contribution: Contribution) -> None:
        """A backward call ran through to these leaves."""
        longer = Longer(contribution)
        if self._reading:
            reached = {id(leaf) for _, leaf in leaves}
            self._reading = {where: leaf for where, leaf in self._reading.items() if id(leaf) not in reached}
        for tensor, leaf in leaves:
            grad = tensor.grad
            if grad is None or (seen := _seen(grad)) == leaf.seen:
                continue
            leaf.seen = seen
            leaf.fed = True
            leaf.grad_read = False
            before = leaf.contributions
            leaf.contributions = longer(before)
            if len(leaf.contributions) == len(before):
                leaf.used = max(leaf.used - 1, min(leaf.used, 1))

    def use(self, tensors: Iterable[torch.Tensor], stack: Stack) -> tuple[Use, ...]:
        """A step uses these gradients as they are now: what they are made of, leaves with the same history in one
        `Use`."""
        groups: dict[tuple[int, int], list[Leaf]] = {}
        for tensor in tensors:
            leaf = self.known(tensor)
            if leaf is None:
                continue
            grad = tensor.grad
            if grad is None or (len(leaf.contributions) > 1 and _cleared(grad, leaf)):
                leaf.clear()
            elif leaf.contributions:
                leaf.seen = _seen(grad)
                groups.setdefault((id(leaf.contributions), leaf.used), []).append(leaf)
        uses = tuple(map(_use, groups.values()))
        for leaves in groups.values():
            for leaf in leaves:
                leaf.used, leaf.used_stack, leaf.moved = len(leaf.contributions), stack, None
        return uses


def _seen(grad: torch.Tensor) -> tuple[int, int]:
    return id(grad), grad._version


def _cleared(grad: torch.Tensor | None, leaf: Leaf) -> bool:
    """None or all zero. Values are looked at only where a fault is in question: the gradient is used, or was written
    to."""
    if grad is None:
        return True
    if id(grad) != (leaf.seen or (0, 0))[0]:
        return True
    # a write through .grad.data does not show in the version
    suspicious = leaf.used or leaf.grad_read or _seen(grad) != leaf.seen
    return bool(suspicious) and not has_values(grad)


def has_values(grad: torch.Tensor) -> bool:
    """Whether a gradient is more than zeros."""
    return bool((grad._values() if grad.is_sparse else grad).any())


def _use(leaves: list[Leaf]) -> Use:
    first = leaves[0]
    names = tuple(leaf.name for leaf in leaves[:_NAMES])
    return Use(first.contributions, first.used, first.used_stack, names, len(leaves))
