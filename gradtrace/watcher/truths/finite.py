"""Whether losses and the gradients at a step are finite, and which operation outside of any graph made them otherwise.

`Values` follows NaN through graphs. What is written into `.grad` by hand has none: of the operations between a backward
call and the step those that can make NaN are looked at, and the gradients themselves where one did. A NaN that slips
through shows in the next loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.model.truths import NonFiniteLoss, NonFiniteStep, Truth
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.faults import flaws
from gradtrace.watcher.graph import ops, reads

Tensor = torch.Tensor

#: elements of a result that is looked at, and flaws remembered between two steps
_SIZE, _FLAWS = 1 << 16, 4
#: steps and calls after which gradients and losses are looked at in any case
_LOOKS = frozenset(2**power for power in range(31))
_NAMES = 3


class _NonFiniteOperation(NamedTuple):
    """An operation without a graph that gave NaN or infinity."""

    op: str
    stack: Stack


class Finite(Observer):
    """Looks closely only where something is suspicious: values on a GPU are read rarely."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: what was seen since the last step, and before that since the one before
        self._flaws: list[_NonFiniteOperation] = []
        self._older_flaws: list[_NonFiniteOperation] = []
        self._written: Stack = ()
        self._between = False
        self._suspicious = False
        #: the first value that was not finite since the last step: the user's expression, and where; with the step of the
        #: first one, and how many steps there were of such
        self._lost: tuple[str, Stack] | None = None
        self._reported_loss: tuple[str, Stack, Stack] | None = None
        self._lost_steps = 0
        self._scaled = False
        self._last_step: tuple[str, Stack] = ("", ())
        self._reported_step = False
        #: how many losses and steps were looked at, and how many were not finite
        self._losses = self._lost_losses = 0
        self._gradients = self._lost_gradients = 0

    def functions(self) -> Mapping[Any, Handler]:
        grad: Any = Tensor.grad
        return {
            **dict.fromkeys(ops.functions(ops.NON_FINITE_FUNCTIONS), self._computed),
            grad.__set__: self._set,
            torch._amp_foreach_non_finite_check_and_unscale_: self._unscales,
        }

    def _unscales(self, call: TorchCall) -> None:
        self._scaled = True

    def _computed(self, call: TorchCall) -> None:
        if not self._between or len(self._flaws) >= _FLAWS or type(call.out) is not Tensor:
            return
        out = call.out
        if out.requires_grad or reads.waits([out]) or out.numel() > _SIZE or flaws.finite(out):
            return
        fresh = [one for one in call.inputs if one is not out]
        if all(map(flaws.finite, fresh)):
            self._flaws.append(_NonFiniteOperation(call.func.__name__, self.session.frames.stack(call.frame)))
            self._suspicious = True

    def _set(self, call: TorchCall) -> None:
        value = call.args[1] if len(call.args) > 1 else None
        if value is not None and self.session.frames.is_user(call.frame.f_code.co_filename):
            self._written = self.session.frames.stack(call.frame)

    # losses

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        self._between = False
        self._written = ()
        if not call.accumulates:
            return
        tensors = [one for one in outputs if isinstance(one, Tensor)]
        if call.number not in _LOOKS and reads.waits(tensors):
            return
        self._losses += 1
        if all(map(flaws.finite, tensors)):
            return
        self._lost_losses += 1
        self._suspicious = True
        self._lost = self._lost or (call.root, call.stack)
        if not self._reported_step and not all(map(flaws.finite, call.leaves)):
            self._report_spoiled([leaf for leaf in call.leaves if not flaws.finite(leaf)])

    def _report_spoiled(self, leaves: list[Tensor]) -> None:
        """The last step has made parameters NaN, and nothing was seen of it then."""
        owned = [leaf for leaf in leaves if self.session.owned(leaf)]
        name, stack = self._last_step
        if owned and stack:
            self._report_step(name, stack, owned, True, self._older_flaws)

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        self._between = True

    # steps

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        self._between = False
        self._last_step = type(optimizer).__name__, stack
        self._gradients += 1
        if self._suspicious or self._gradients in _LOOKS:
            self._look(optimizer, stack)
        if self._lost is not None and not self._scaled:  # a GradScaler skips the step of a loss that overflows
            self._lost_steps += 1
            self._reported_loss = self._reported_loss or (*self._lost, stack)
        self._lost = None
        self._older_flaws, self._flaws = self._flaws, []
        self._suspicious = False

    def _look(self, optimizer: Optimizer, stack: Stack) -> None:
        held = [one for one in parameters(optimizer) if one.grad is not None]
        if flaws.all_finite([one.grad for one in held if one.grad is not None]):
            return
        bad = [one for one in held if one.grad is not None and not flaws.finite(one.grad)]
        self._lost_gradients += 1
        if not self._reported_step:
            spoiled = not all(map(flaws.finite, bad))
            self._report_step(type(optimizer).__name__, stack, bad, spoiled, self._flaws)

    def _report_step(
        self, name: str, stack: Stack, bad: list[Tensor], spoiled: bool, seen: list[_NonFiniteOperation]
    ) -> None:
        self._reported_step = True
        names = self.session.book.names(bad[:_NAMES])
        flaw = seen[-1] if seen else _NonFiniteOperation("", ())
        self.session.emit(NonFiniteStep(name, stack, names, len(bad), spoiled, flaw.op, flaw.stack, self._written))

    def at_end(self) -> None:
        if self._reported_loss is not None:
            self.session.emit(NonFiniteLoss(*self._reported_loss, self._lost_steps))
        self.session.emit(Truth("losses are finite", self._losses, self._lost_losses))
        self.session.emit(Truth("gradients are finite", self._gradients, self._lost_gradients))

    so_far = at_end
