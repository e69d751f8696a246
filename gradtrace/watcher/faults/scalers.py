"""Errors that a GradScaler raises, since its methods were called in the wrong order."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.amp import grad_scaler
from torch.optim import Optimizer

from gradtrace.errors import first_line
from gradtrace.host.tracebacks import frames_of
from gradtrace.model.events import ScalerMisused
from gradtrace.model.site import Stack
from gradtrace.watcher.code.names import variables
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import NO_CHECKS, NO_SCALE, parameters
from gradtrace.watcher.parameters.births import Births

if TYPE_CHECKING:
    from gradtrace.watcher.core.backward import BackwardCall

Tensor = torch.Tensor

#: words of torch's errors, and what they are about; the first that fits counts
_KINDS = {
    "unscale_() has already been called": "unscaled",
    "unscale_() is being called after step()": "after step",
    "step() has already been called since": "stepped",
    f"{NO_CHECKS} for this optimizer": "empty",
    f"{NO_CHECKS} prior to update": "unchecked",
    NO_SCALE: "unscaled loss",
    "Attempting to unscale FP16 gradients": "half",
    "Closure use is not currently supported if GradScaler": "closure",
}
_NAMES = 4


class _Sighted(NamedTuple):
    """Where something was done to an optimizer, and how many backward calls there had been."""

    stack: Stack
    calls: int


class Scalers(Observer):
    def __init__(self, session: Session, births: Births) -> None:
        super().__init__(session)
        self._births = births
        #: by optimizer, where its gradients were last unscaled, and where its last step was
        self._unscaled: dict[TensorId, _Sighted] = {}
        self._stepped: dict[TensorId, _Sighted] = {}
        #: the last backward call, and the leaves that it gave gradients to: their names, and how many
        self._backward: Stack = ()
        self._fed: tuple[tuple[str, ...], int] = ((), 0)
        #: where parameters were converted to float16, the first time
        self._halved: Stack = ()

    def functions(self) -> Mapping[Any, Handler]:
        return {
            torch._amp_foreach_non_finite_check_and_unscale_: self._unscales,
            Tensor.half: self._converts,
            Tensor.to: self._converts,
        }

    def _unscales(self, call: TorchCall) -> None:
        optimizer = variables(call.frame).get("optimizer")
        if isinstance(optimizer, Optimizer):
            sighted = _Sighted(self.session.frames.stack(call.frame), self.session.backward_calls)
            self._unscaled[self.session.ids.of(optimizer)] = sighted

    def _converts(self, call: TorchCall) -> None:
        if self._halved or not isinstance(call.args[0], torch.nn.Parameter):
            return
        if isinstance(call.out, Tensor) and call.out.dtype is torch.float16:
            self._halved = self.session.frames.stack(call.frame)

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        self._stepped[self.session.ids.of(optimizer)] = _Sighted(stack, self.session.backward_calls)

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if error is None and call.accumulates:
            self._backward = call.stack
            names = tuple(leaf.name for _, leaf in call.given[:_NAMES] if leaf.name)
            self._fed = names, len(call.given)

    def crashed(self, error: BaseException, stack: Stack) -> None:
        text = str(error)
        kind = next((kind for words, kind in _KINDS.items() if words in text), "")
        frame = _scalers_frame(error.__traceback__)
        if not kind or frame is None or not stack:
            return
        optimizer = variables(frame).get("optimizer")
        if not isinstance(optimizer, Optimizer):
            optimizer = None
        if kind == "empty" and (optimizer is None or self._is_explained(optimizer)):
            return
        self._report(kind, first_line(error), stack, optimizer)

    def _is_explained(self, optimizer: Optimizer) -> bool:
        """Whether its gradients were cleared, or it had no backward call: other rules say so."""
        key = self.session.ids.known(optimizer)
        return bool(self.session.book.lost_by(key)) or not self._backward

    def _report(self, kind: str, error: str, stack: Stack, optimizer: Optimizer | None) -> None:
        key = self.session.ids.known(optimizer) if optimizer is not None else 0
        created = self._births.optimizer(key)
        before = [one for one in (self._unscaled.get(key), self._stepped.get(key)) if one is not None]
        earlier = before[0 if kind == "unscaled" else -1] if before else _Sighted((), self.session.backward_calls)
        names, count = self._fed
        made: Stack = ()
        frozen = optimizer is not None and not any(one.requires_grad for one in parameters(optimizer))
        if kind == "half" and optimizer is not None:
            names, count, made = self._half(optimizer)
        self.session.emit(
            ScalerMisused(
                kind,
                stack,
                error,
                type(optimizer).__name__ if optimizer is not None else "",
                created.stack if created is not None else (),
                earlier.stack,
                self._backward,
                self.session.backward_calls > earlier.calls,
                frozen,
                names,
                count,
                made,
            )
        )

    def _half(self, optimizer: Optimizer) -> tuple[tuple[str, ...], int, Stack]:
        """The float16 parameters of an optimizer: names, how many, and where they became so."""
        leaves = [leaf for leaf in parameters(optimizer) if leaf.dtype is torch.float16]
        names = tuple(filter(None, self.session.book.names(leaves)))[:_NAMES]
        born = next((birth.stack for leaf in leaves if (birth := self._births.of(leaf)) is not None), ())
        return names, len(leaves), self._halved or born


def _scalers_frame(traceback: TracebackType | None) -> FrameType | None:
    """The outermost frame of the GradScaler that raised an error."""
    return next((frame for frame in frames_of(traceback) if frame.f_code.co_filename == grad_scaler.__file__), None)
