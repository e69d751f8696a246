"""Updates written by hand: the user's code reads a leaf's .grad, and then writes to the leaf."""

from __future__ import annotations

from collections.abc import Iterable
from types import FrameType

import torch

from gradtrace.model.events import Step, Use
from gradtrace.model.site import Stack
from gradtrace.watcher.core.book import Leaf
from gradtrace.watcher.core.observer import TorchCall
from gradtrace.watcher.core.session import Session

Tensor = torch.Tensor


class Updates:
    """Gets reads and writes from `Acts`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: leaves whose .grad was read since the last backward call, by where their values lie
        self._reading: dict[int, Leaf] = {}
        #: leaves of optimizers that were updated by hand, by where their values lie
        self._moved: dict[int, Leaf] = {}
        #: the leaf whose .grad was read last, and where that gradient's values lie
        self._last: tuple[Leaf, int] | None = None

    def read(self, call: TorchCall, leaf: Leaf) -> None:
        """The user's code read the leaf's .grad."""
        tensor = call.args[0]
        leaf.grad_read = True
        if tensor.layout is torch.strided:
            self._reading[tensor.data_ptr()] = leaf
        plain = type(call.out) is Tensor and call.out.layout is torch.strided
        self._last = (leaf, call.out.data_ptr()) if plain and leaf.used else None

    def fade(self, call: TorchCall) -> None:
        """Of a gradient that was used a part is kept on purpose: it is a trace of the past, not a forgotten rest."""
        target, user = call.args[0], self._session.frames.is_user(call.frame.f_code.co_filename)
        if self._last is not None and user and type(target) is Tensor and target.layout is torch.strided:
            leaf, where = self._last
            if where == target.data_ptr():
                leaf.empty()

    def written(self, tensor: Tensor, frame: FrameType) -> None:
        """The user's code wrote to a tensor: to a leaf whose .grad it has read, that is an update by hand, and the next
        write takes it back."""
        known = self._session.book.known(tensor)
        leaf = known or self._alias_of(tensor)
        if leaf is None:
            return
        if not leaf.grad_read:
            _take_back(leaf)
            return
        self._session.manual_updates += 1
        if known is None:
            # the leaf itself is not at hand, only an alias: judged at the next backward call
            leaf.updated = self._session.frames.stack(frame)
        else:
            self._update(tensor, leaf, self._session.frames.stack(frame))

    def before_backward(self, leaves: Iterable[Tensor]) -> None:
        """Judges the updates that were made through aliases."""
        for tensor in leaves if self._reading else ():
            leaf = self._session.book.known(tensor)
            if leaf is not None and leaf.updated:
                stack, leaf.updated = leaf.updated, ()
                self._update(tensor, leaf, stack)

    def after_backward(self, leaves: Iterable[Tensor]) -> None:
        """These leaves have other gradients now than those that were read."""
        if self._reading:
            reached = [self._session.book.known(tensor) for tensor in leaves]
            self._reading = {
                where: leaf for where, leaf in self._reading.items() if all(leaf is not other for other in reached)
            }

    def settle(self) -> None:
        """An optimizer made its step: what has been updated by hand stays so."""
        self._moved.clear()

    def _alias_of(self, tensor: Tensor) -> Leaf | None:
        """The leaf whose .grad was read, or that was updated by hand, and whose values `tensor` shares."""
        if not (self._reading or self._moved) or tensor.layout is not torch.strided:
            return None
        where = tensor.data_ptr()
        return self._reading.get(where) or self._moved.get(where)

    def _update(self, tensor: Tensor, leaf: Leaf, stack: Stack) -> None:
        session = self._session
        leaf.grad_read = False
        owned = bool(session.owned_by(tensor))
        uses = self._move(tensor, leaf, stack) if owned else session.book.use([tensor], stack)
        session.emit(Step(session.steps, "", session.ids.of(tensor), stack, uses))

    def _move(self, tensor: Tensor, leaf: Leaf, stack: Stack) -> tuple[Use, ...]:
        """An update by hand of what an optimizer holds: an attack on the weights, which is taken back before the step."""
        before = leaf.moved or (leaf.used, leaf.used_stack)
        uses = self._session.book.use([tensor], stack)
        leaf.moved = before if leaf.shares else None
        if tensor.layout is torch.strided:
            self._moved[tensor.data_ptr()] = leaf
        return uses


def _take_back(leaf: Leaf) -> None:
    """The values that were there before an update by hand are put back: it has used no gradient."""
    if leaf.moved is not None:
        leaf.used, leaf.used_stack = leaf.moved
        leaf.moved = None
