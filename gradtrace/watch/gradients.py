"""What each leaf's .grad is made of: which backward calls it sums, and whether a step has used it already.

Judged by state, not by calls, since gradients are cleared in a dozen ways: the same `.grad` object at the same
version as after the last step is a used gradient; one that is None, or all zero, is a cleared one.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gradtrace.model.events import Contribution, Use
from gradtrace.model.site import Stack

#: contributions remembered for one leaf: a gradient that nobody ever clears must not grow the memory
_MOST = 64
#: names given in one event
_NAMES = 6


class Leaf:
    """The state of one leaf's gradient."""

    __slots__ = "contributions data grad_read moved name named seen updated used used_stack".split()

    def __init__(self, name: str | None, shape: list[int]) -> None:
        self.named = name is not None
        self.name = name or f"a leaf of shape {shape}"
        self.contributions: list[Contribution] = []
        #: how many of the contributions a step has used, and where
        self.used = 0
        self.used_stack: Stack = ()
        #: the gradient as last seen: id and version
        self.seen: tuple[int, int] | None = None
        #: the user's code has read .grad since the last backward call
        self.grad_read = False
        #: where its values lie, and where the user's code has written to them through an alias
        self.data = 0
        self.updated: Stack = ()
        #: `used` and `used_stack` before an update by hand that may still be taken back
        self.moved: tuple[int, Stack] | None = None

    def clear(self) -> None:
        self.contributions.clear()
        self.used = 0
        self.moved = None
        # a new gradient may come to lie at the old one's address
        self.seen = None


class Gradients:
    """The leaves that backward calls have reached. Keyed by identity: tensors can neither be compared nor, if they are
    parameters, weakly referenced (`module.to()` refuses to swap those)."""

    def __init__(self) -> None:
        self._leaves: dict[int, Leaf] = {}
        #: leaves whose .grad was read since the last backward call, by where their values lie
        self._reading: dict[int, Leaf] = {}
        #: leaves of optimizers that were updated by hand, by where their values lie
        self._moved: dict[int, Leaf] = {}

    def known(self, tensor: torch.Tensor) -> Leaf | None:
        leaf = self._leaves.get(id(tensor))
        # anything may lie where a leaf that is gone has lain
        return leaf if leaf is not None and tensor.is_leaf else None

    def add(self, tensor: torch.Tensor, name: str | None) -> None:
        self._leaves[id(tensor)] = Leaf(name, list(tensor.shape))

    def read(self, leaf: Leaf) -> None:
        """The user's code read the leaf's .grad."""
        leaf.grad_read = True
        self._reading[leaf.data] = leaf

    def alias_of(self, tensor: torch.Tensor) -> Leaf | None:
        """The leaf whose .grad was read, or that was updated by hand, and whose values `tensor` shares."""
        if not (self._reading or self._moved) or tensor.layout is not torch.strided:
            return None
        where = tensor.data_ptr()
        return self._reading.get(where) or self._moved.get(where)

    def move(self, tensor: torch.Tensor, leaf: Leaf, stack: Stack) -> None:
        """An update by hand of what an optimizer holds: an attack on the weights, which is taken back before the step."""
        before = leaf.moved or (leaf.used, leaf.used_stack)
        self.mark_used([tensor], stack)
        leaf.moved = before
        if tensor.layout is torch.strided:
            self._moved[tensor.data_ptr()] = leaf

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

    def forget(self, tensors: Iterable[torch.Tensor]) -> None:
        """Of these gradients it is not known any more what they are made of."""
        for tensor in tensors:
            if leaf := self.known(tensor):
                leaf.clear()

    def before_backward(self, tensor: torch.Tensor, leaf: Leaf) -> None:
        """Forgets the contributions where the gradient was cleared since."""
        if leaf.contributions and _cleared(tensor.grad, leaf):
            leaf.clear()

    def after_backward(self, tensor: torch.Tensor, leaf: Leaf, contribution: Contribution) -> None:
        grad = tensor.grad
        if grad is None or _seen(grad) == leaf.seen:
            return
        leaf.seen = _seen(grad)
        leaf.grad_read = False
        self._reading.pop(leaf.data, None)
        leaf.data = 0 if tensor.layout is not torch.strided else tensor.data_ptr()
        leaf.contributions.append(contribution)
        if len(leaf.contributions) > _MOST:
            del leaf.contributions[1]
            leaf.used = max(leaf.used - 1, min(leaf.used, 1))

    def uses(self, tensors: Iterable[torch.Tensor]) -> tuple[Use, ...]:
        """What the gradients of these leaves are made of at a step, leaves with the same history in one `Use`."""
        groups: dict[tuple[tuple[int, ...], int], list[Leaf]] = {}
        for tensor in tensors:
            leaf = self.known(tensor)
            if leaf is None or tensor.grad is None or not leaf.contributions:
                continue
            if len(leaf.contributions) > 1 and _cleared(tensor.grad, leaf):
                leaf.clear()
                continue
            key = tuple(one.call for one in leaf.contributions), leaf.used
            groups.setdefault(key, []).append(leaf)
        return tuple(_use(leaves) for leaves in groups.values())

    def mark_used(self, tensors: Iterable[torch.Tensor], stack: Stack) -> None:
        """A step used these gradients as they are now."""
        for tensor in tensors:
            leaf = self.known(tensor)
            if leaf is None:
                continue
            if tensor.grad is None:
                leaf.clear()
            elif leaf.contributions:
                leaf.used, leaf.used_stack, leaf.moved = len(leaf.contributions), stack, None
                leaf.seen = _seen(tensor.grad)


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
    return bool(suspicious) and not bool((grad._values() if grad.is_sparse else grad).any())


def _use(leaves: list[Leaf]) -> Use:
    first = leaves[0]
    names = tuple(leaf.name for leaf in leaves[:_NAMES])
    return Use(tuple(first.contributions), first.used, first.used_stack, names, len(leaves))
