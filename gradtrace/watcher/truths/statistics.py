"""Sees batch norm of a frozen network that goes on to update its running statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from gradtrace.model.site import Stack
from gradtrace.model.truths import FrozenStatistics
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session

#: calls of one line before anything is said, and lines remembered
_ENOUGH, _MOST = 3, 1_024


@dataclass(slots=True)
class _BatchNormCalls:
    frozen: int = 0
    trained: bool = False


class Statistics(Observer):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._calls: dict[Stack, _BatchNormCalls] = {}

    def functions(self) -> Mapping[Any, Handler]:
        return {F.batch_norm: self._normalizes}

    def _normalizes(self, call: TorchCall) -> None:
        given = dict(
            zip(("input", "running_mean", "running_var", "weight", "bias", "training"), call.args, strict=False)
        )
        given |= call.kwargs
        weight = given.get("weight")
        if not given.get("training") or given.get("running_mean") is None or not isinstance(weight, torch.nn.Parameter):
            return
        if torch.is_grad_enabled() and len(self._calls) < _MOST:
            calls = self._calls.setdefault(self.session.frames.stack(call.frame), _BatchNormCalls())
            calls.frozen += not weight.requires_grad
            calls.trained |= weight.requires_grad

    def at_end(self) -> None:
        for stack, calls in self._calls.items():
            if calls.frozen >= _ENOUGH and not calls.trained and self.session.steps:
                self.session.emit(FrozenStatistics(stack, calls.frozen))
                return

    so_far = at_end
