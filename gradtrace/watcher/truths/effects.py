"""Whether the steps of each optimizer change its parameters: a learning rate of 0, frozen parameters and updates that
are lost to rounding leave them as they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.model.truths import NoEffect, Truth
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph import reads
from gradtrace.watcher.parameters.births import Births

Tensor = torch.Tensor

#: steps of one optimizer before anything is said of it, and those at which values are compared
_ENOUGH = 3
_COMPARED = 64
_NAMES = 3


@dataclass(slots=True)
class _StepEffects:
    """What the steps of one optimizer did."""

    optimizer: str
    stack: Stack = ()
    made: Stack = ()
    count: int = 0
    #: steps with a learning rate of 0 in all groups: at the start, at the end so far, and all of them
    leading: int = 0
    trailing: int = 0
    zero: int = 0
    #: steps that found no gradient
    empty: int = 0
    #: the values after the last step; some step is known to have changed them; and steps that did not though there was
    #: a gradient
    digest: int | None = None
    changed: bool = False
    lost: int = 0
    dtype: str = ""


class Effects(Observer):
    """Learning rates are read at each step, values only until a step is known to have changed them."""

    def __init__(self, session: Session, births: Births) -> None:
        super().__init__(session)
        self._births = births
        self._steps: dict[TensorId, _StepEffects] = {}

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        key = self.session.ids.of(optimizer)
        steps = self._steps.get(key)
        if steps is None:
            made = self._births.optimizer(key)
            steps = self._steps[key] = _StepEffects(type(optimizer).__name__, made=made.stack if made else ())
        steps.stack = stack
        steps.count += 1
        idle = _has_no_rate(optimizer)
        steps.zero += idle
        steps.empty += all(one.grad is None for one in parameters(optimizer))
        steps.trailing = steps.trailing + 1 if idle else 0
        if idle and steps.leading == steps.count - 1:
            steps.leading += 1
        if not steps.changed and steps.count <= _COMPARED:
            self._compare(steps, optimizer, idle)

    def _compare(self, steps: _StepEffects, optimizer: Optimizer, idle: bool) -> None:
        held = list(parameters(optimizer))
        digest = _digest(held)
        if digest is None or (steps.digest is not None and digest != steps.digest):
            steps.changed = True
        elif steps.digest is not None and not idle and _has_gradient(held):
            steps.lost += 1
            steps.dtype = str(held[0].dtype)
        steps.digest = digest

    def at_end(self) -> None:
        checked = broken = empty = 0
        for steps in self._steps.values():
            checked += steps.count
            empty += steps.empty
            broken += max(steps.zero, steps.lost)
            self._report(steps)
        self.session.emit(Truth("steps find gradients", checked, empty))
        self.session.emit(Truth("steps change parameters", checked, broken))

    so_far = at_end

    def _report(self, steps: _StepEffects) -> None:
        if steps.count < _ENOUGH:
            return
        if steps.lost >= _ENOUGH and not steps.changed:
            self._report_row(steps, "precision", "always", steps.count)
        elif steps.zero == steps.count:
            self._report_row(steps, "rate", "always", steps.count)
        elif steps.trailing >= _ENOUGH:
            self._report_row(steps, "rate", "end", steps.trailing)
        elif steps.leading >= _ENOUGH:
            self._report_row(steps, "rate", "start", steps.leading)

    def _report_row(self, steps: _StepEffects, why: str, when: str, number: int) -> None:
        self.session.emit(
            NoEffect(
                optimizer=steps.optimizer,
                stack=steps.stack,
                why=why,
                when=when,
                steps=number,
                of=steps.count,
                made=steps.made,
                dtype=steps.dtype,
            )
        )


def _has_no_rate(optimizer: Optimizer) -> bool:
    """Whether the learning rate is 0 in all groups that have parameters."""
    rates = [group.get("lr") for group in optimizer.param_groups if group["params"]]
    return bool(rates) and all(_is_zero(rate) for rate in rates)


def _is_zero(rate: Any) -> bool:
    if isinstance(rate, Tensor):
        return not reads.waits([rate]) and rate.numel() == 1 and not rate.item()
    return isinstance(rate, (int, float)) and rate == 0


def _digest(held: Iterable[Tensor]) -> int | None:
    """A number that changes when any bit of these values does; None where they cannot be read without waiting."""
    total = 0
    for one in held:
        if one.layout is not torch.strided or reads.waits([one]) or type(one.data) is not Tensor:
            return None
        total = total * 31 + int(one.detach().contiguous().reshape(-1).view(torch.uint8).sum(dtype=torch.int64))
    return total


def _has_gradient(held: Iterable[Tensor]) -> bool:
    return any(reads.have_values([one.grad for one in held if one.grad is not None]))
