"""Finds attributes that were meant to be `requires_grad`: misspelt on a tensor, or set on a module, which ignores it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from difflib import SequenceMatcher
from types import ModuleType

import torch
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.model.truths import IgnoredAttribute
from gradtrace.watcher.code import names
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session

_WANTED = "requires_grad"
#: how alike names must be
_ALIKE = 0.85
#: backward calls whose leaves are looked at, and steps of one optimizer at which modules are
_CALLS, _STEPS = frozenset((1, 2, 4, 8, 16, 32)), frozenset((1, 8))
_NAMES = 3


class Attributes(Observer):
    """Looks into the attribute dictionaries alone: nothing of the user's runs."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._reported: set[tuple[str, str]] = set()
        self._steps: Counter[TensorId] = Counter()

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if call.number not in _CALLS:
            return
        found: dict[str, list[torch.Tensor]] = {}
        for leaf in call.leaves:
            for key in vars(leaf):
                if key != _WANTED and _is_alike(key) and not vars(leaf)[key]:
                    found.setdefault(key, []).append(leaf)
        for key, leaves in found.items():
            self._report(key, "tensor", self.session.book.names(leaves[:_NAMES]), len(leaves))

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        key = self.session.ids.of(optimizer)
        self._steps[key] += 1
        if self._steps[key] not in _STEPS:
            return
        frame = self.session.running_frame()
        found: dict[str, list[str]] = {}
        for name, value in names.everything(frame, self.session.frames):
            if isinstance(value, torch.nn.Module):
                for attribute, held in vars(value).items():
                    if held is False and _is_alike(attribute) and any(one.requires_grad for one in value.parameters()):
                        found.setdefault(attribute, []).append(name)
        for attribute, holders in found.items():
            self._report(attribute, "module", tuple(holders[:_NAMES]), len(holders))

    def _report(self, key: str, kind: str, holders: tuple[str, ...], count: int) -> None:
        if (key, kind) not in self._reported:
            self._reported.add((key, kind))
            self.session.emit(IgnoredAttribute(key, kind, holders, count, self._files()))

    def _files(self) -> tuple[str, ...]:
        """The files of the user's code that are loaded."""
        files: set[str] = set()
        for module in list(sys.modules.values()):
            file = vars(module).get("__file__") if type(module) is ModuleType else None
            if isinstance(file, str) and self.session.frames.is_user(file):
                files.add(os.path.abspath(file))
        return tuple(sorted(files))


def _is_alike(key: str) -> bool:
    return key[:1] == _WANTED[0] and SequenceMatcher(None, key, _WANTED).ratio() >= _ALIKE
