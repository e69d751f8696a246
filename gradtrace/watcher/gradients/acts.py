"""Enters into the book what the user's code does to gradients: it reads, replaces, scales and clears them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.watcher.code.reading import Readers
from gradtrace.watcher.core.book import Act, CallRecord, Leaf, state
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import Steps, parameters
from gradtrace.watcher.gradients.clips import Clips
from gradtrace.watcher.gradients.updates import Updates

if TYPE_CHECKING:
    from gradtrace.watcher.core.backward import BackwardCall

Tensor = torch.Tensor

#: writes by which updates are written by hand
_WRITES = (
    *(Tensor.sub_, Tensor.add_, Tensor.addcmul_, Tensor.addcdiv_, Tensor.copy_, Tensor.lerp_),
    *(Tensor.__isub__, Tensor.__iadd__, Tensor.__setitem__, Tensor.data.__set__),  # type: ignore[attr-defined]
    *(torch._foreach_add_, torch._foreach_sub_, torch._foreach_addcdiv_, torch._foreach_addcmul_),
)
_SCALES = (Tensor.clamp_, Tensor.clip_, Tensor.mul_, Tensor.div_)
_MODULE = torch.nn.modules.module.__file__


class Acts(Observer):
    def __init__(self, session: Session, steps: Steps, clips: Clips) -> None:
        super().__init__(session)
        self._steps = steps
        self._clips = clips
        self._updates = Updates(session)
        self._readers = Readers(session.frames)
        #: gradients that were read since the last call, by where their values lie
        self._aliases: dict[int, Leaf] = {}
        self._last: CallRecord | None = None

    def functions(self) -> Mapping[Any, Handler]:
        grad: Any = Tensor.grad
        return {
            grad.__get__: self._read,
            grad.__set__: self._set,
            grad.__delete__: self._deleted,
            **dict.fromkeys(_WRITES, self._write),
            **dict.fromkeys(_SCALES, self._scale),
            Tensor.zero_: self._zero,
            torch._foreach_zero_: self._zero,
            torch.tensor: lambda call: self._clips.nothing(call.frame),
        }

    # backward calls and steps

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if call.accumulates:
            self._clips.close()
            self._aliases.clear()
            self._updates.before_backward(call.leaves)

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if call.accumulates and error is None:
            self._last = call.record
            self._updates.after_backward(call.leaves)

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        self._clips.close()
        self._updates.settle()
        if self.session.book.running:
            return
        for tensor in parameters(optimizer):
            leaf = self.session.book.kept(tensor)
            if leaf is not None and leaf.clip is not None and not leaf.zeroed and tensor.grad is not None:
                self._clips.used(leaf)

    def after_unseen_step(self, optimizer: Optimizer) -> None:
        for tensor in parameters(optimizer):
            leaf = self.session.book.kept(tensor)
            if leaf is not None:
                self._clips.used(leaf)

    def at_end(self) -> None:
        self._clips.close()

    # reading

    def _read(self, call: TorchCall) -> None:
        tensor = call.args[0]
        leaf = self.session.book.known(tensor)
        # `module.half()` takes gradients along, and uses none
        if leaf is not None and call.frame.f_code.co_filename != _MODULE:
            self._updates.read(call, leaf)
        reader = self._readers.at(call.frame)
        kept = self.session.book.kept(tensor)
        if reader == "clip":
            if kept is not None or tensor.requires_grad:
                self._clips.touch(call.frame, self.session.ids.of(tensor), kept, given=call.out is not None)
        elif reader == "scaler":
            self._clips.unscale(call.frame, kept)
            _note(kept, Act.CHECKED)
        elif kept is not None:
            if kept.shares and type(call.out) is Tensor and call.out.layout is torch.strided:
                self._aliases[call.out.data_ptr()] = kept
            if reader == "user":
                self._mark_read(kept)
        elif reader == "user" and call.out is not None:
            self._read_input(leaf)

    def _mark_read(self, leaf: Leaf) -> None:
        leaf.read = True
        self._clips.used(leaf)
        _note(leaf, Act.READ)

    def _read_input(self, leaf: Leaf | None) -> None:
        """The gradient of an input was read, or of the result of an operation."""
        if leaf is not None and leaf.shares:
            call = leaf.shares[-1].call
            call.inputs.note(Act.READ)
        elif self._last is not None:
            call = self._last
            for portion in call.portions.values():
                portion.note(Act.READ)
        else:
            return
        call.hooked = True

    # replacing and clearing

    def _set(self, call: TorchCall) -> None:
        tensor, value = call.args
        self.session.book.replaced(tensor, value)
        leaf = self.session.book.kept(tensor)
        if value is None:
            self._deleted(call)
        elif leaf is not None and self._readers.at(call.frame) != "scaler":
            if not leaf.read:  # what comes in its place was not computed from it
                _note(leaf, Act.REPLACED)
            self._mark_read(leaf)
            leaf.zeroed = False

    def _deleted(self, call: TorchCall) -> None:
        self.session.book.replaced(call.args[0], None)
        leaf = self.session.book.kept(call.args[0])
        if leaf is not None and (leaf.shares or leaf.clip is not None):
            self._clear(leaf, call.frame)

    def after_zero_grad(self, tensors: Sequence[Tensor], frame: FrameType) -> None:
        self._clips.close()
        for tensor in tensors:
            leaf = self.session.book.kept(tensor)
            if leaf is None:
                self.session.book.replaced(tensor, None)
            elif leaf.clip is not None or leaf.fresh:
                self._clear(leaf, frame)
            else:
                leaf.empty()

    def _zero(self, call: TorchCall) -> None:
        for tensor in tensors_in(call.args[:1]):
            leaf = self._alias(tensor)
            if leaf is not None:
                self._clear(leaf, call.frame)
                leaf.zeroed = True

    def _clear(self, leaf: Leaf, frame: FrameType) -> None:
        book, running = self.session.book, self._steps.running
        lost = leaf.fresh and not running
        stack = self.session.frames.stack(frame) if lost or leaf.clip is not None else ()
        if running:  # an optimizer that clears gradients in its step has used them
            for share in leaf.shares:
                share.portion.use(leaf.owners, self.session.backward_calls)
            self._clips.used(leaf)
        self._clips.cleared(leaf, stack)
        book.clear(leaf, stack)

    # writing

    def _write(self, call: TorchCall) -> None:
        for tensor in tensors_in(call.args[:1]):
            self._updates.written(tensor, call.frame)

    def _scale(self, call: TorchCall) -> None:
        leaf = self._alias(call.args[0]) if self._aliases else None
        if leaf is not None and self.session.frames.is_user(call.frame.f_code.co_filename):
            self._clips.touch(call.frame, id(leaf), leaf)
            if leaf.seen is not None and leaf.seen[0] == id(call.args[0]):
                leaf.seen = state(call.args[0])
        if call.func is Tensor.mul_:
            self._updates.fade(call)

    def _alias(self, tensor: Tensor) -> Leaf | None:
        if not self._aliases or type(tensor) is not Tensor or tensor.layout is not torch.strided:
            return None
        return self._aliases.get(tensor.data_ptr())


def _note(leaf: Leaf | None, act: Act) -> None:
    for share in leaf.shares if leaf is not None else ():
        share.portion.note(act)
