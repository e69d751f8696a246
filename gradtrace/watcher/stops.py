"""Sees the moments at which a debugger may stop the script: before backward calls and steps, and where NaN appears."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from gradtrace.model.moments import Halt, Moment
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import local_part
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session, out_of_reach

#: leaves that are named
_NAMES = 3
#: rules learn of it after the call, when it is known whether a GradScaler takes care of it
_NEXT = "; `until finding` runs on until it is known which operation did"


class Stops(Observer):
    """Hands each moment to `reached`. `wanted` are the moments wanted now: values are read for these alone."""

    serves_rules = False
    in_every_check = False

    def __init__(
        self, wanted: Callable[[], Collection[Moment]], reached: Callable[[Halt], None], in_child: Callable[[], None]
    ) -> None:
        self._wanted = wanted
        self._reached = reached
        self._in_child = in_child

    def attach(self, session: Session) -> None:
        """Says of which run."""
        self.session = session

    @contextmanager
    def watched(self) -> Iterator[None]:
        handle = register_optimizer_step_pre_hook(self._before_step)
        try:
            yield
        finally:
            handle.remove()

    def abandoned(self) -> None:
        self._in_child()

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        what = f"{call.root}.backward()" if call.accumulates and call.root else f"{call.request}()"
        if Moment.BACKWARD in self._wanted():
            self._reached(Halt(Moment.BACKWARD, f"before `{what}`, backward call {call.number}"))
        elif Moment.NAN in self._wanted() and not all(map(_is_finite, tensors_in(outputs))):
            self._reached(Halt(Moment.NAN, f"before `{what}`: `{call.root or 'its root'}` is not finite"))

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if Moment.NAN not in self._wanted() or not call.accumulates:
            return
        leaves = [leaf for leaf in call.leaves if leaf.grad is not None and not _is_finite(leaf.grad)]
        if leaves:
            named = [leaf.name for _, leaf in self.session.leaves(leaves[:_NAMES], None)]
            names = ", ".join(f"`{name}`" for name in named)
            more = f" and {len(leaves) - len(named)} more" if len(leaves) > len(named) else ""
            self._reached(
                Halt(Moment.NAN, f"`{call.root}.backward()` made the gradient of {names}{more} not finite{_NEXT}")
            )

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self.session.in_watched_thread() and Moment.STEP in self._wanted():
            self.session.guarded(self._step, optimizer)

    def _step(self, optimizer: Optimizer) -> None:
        number = self.session.steps + 1
        self._reached(Halt(Moment.STEP, f"before the step of {type(optimizer).__name__}, step {number}"))

    def made_nodes(self) -> Handler:
        return self._made

    def _made(self, call: TorchCall) -> None:
        """A mask of infinities is meant; NaN in a result whose inputs had none is not."""
        if Moment.NAN not in self._wanted() or out_of_reach():
            return
        made = any(map(_has_nan, tensors_in([call.out])))
        if made and not any(map(_has_nan, call.inputs)):
            name = getattr(call.func, "__name__", "a call").strip("_")
            ranges = f": {', '.join(self._ranges(call))}" if call.inputs else ""
            self._reached(Halt(Moment.NAN, f"`{name}` made NaN out of values that had none{ranges}"))

    def _ranges(self, call: TorchCall) -> list[str]:
        """`logp` from -inf to -0.5: the values that went in, by name where they have one."""
        named = names.find(call.frame, self.session.frames)
        found = []
        for number, tensor in enumerate(call.inputs, start=1):
            values = local_part(tensor).detach()
            if values.numel() and not values.is_sparse and values.is_floating_point():
                name = f"`{named[id(tensor)]}`" if id(tensor) in named else f"input {number}"
                found.append(f"{name} from {values.min().item():.3g} to {values.max().item():.3g}")
        return found


def _is_finite(tensor: torch.Tensor) -> bool:
    values = local_part(tensor).detach()
    values = values.coalesce().values() if values.is_sparse else values
    return bool(torch.isfinite(values).all())


def _has_nan(tensor: torch.Tensor) -> bool:
    values = local_part(tensor).detach()
    if values.is_sparse or not (values.is_floating_point() or values.is_complex()):
        return False
    return bool(torch.isnan(values).any())
