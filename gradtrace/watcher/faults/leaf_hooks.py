"""Sees hooks that are registered on the same leaf in iteration after iteration, and never removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gradtrace.model.events import HooksGrew
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import leaf_hooks
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session

Tensor = torch.Tensor

#: iterations in a row in which a leaf must have more hooks, and leaves that are followed
_ITERATIONS, _LEAVES = 6, 4_096


class _LeafHookCount:
    """The hooks of one leaf."""

    __slots__ = ("calls", "hooks", "rises")

    def __init__(self) -> None:
        self.hooks = self.rises = 0
        #: backward calls before the last rise
        self.calls = -1


class LeafHooks(Observer):
    """Counts at each registration: a script without hooks pays nothing."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._leaves = session.ids.table(dict[TensorId, _LeafHookCount]())
        #: lines that register, and were reported
        self._reported: set[Stack] = set()

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys((Tensor.register_hook, Tensor.register_post_accumulate_grad_hook), self._registered)

    def _registered(self, call: TorchCall) -> None:
        leaf = call.args[0]
        if not leaf.is_leaf or not leaf.requires_grad or len(self._leaves) >= _LEAVES:
            return
        growth = self._leaves.setdefault(self.session.ids.of(leaf), _LeafHookCount())
        hooks, calls = leaf_hooks(leaf), self.session.backward_calls
        if hooks <= growth.hooks:
            growth.rises = 0
        elif calls > growth.calls:
            growth.rises += 1
            growth.calls = calls
        growth.hooks = hooks
        if growth.rises >= _ITERATIONS:
            self._report(leaf, call, hooks)

    def _report(self, leaf: Tensor, call: TorchCall, hooks: int) -> None:
        stack = self.session.frames.stack(call.frame)
        if not stack or stack[:1] in self._reported:
            return
        self._reported.add(stack[:1])
        name = next((known.name for _, known in self.session.leaves([leaf], call.frame)), "")
        self.session.emit(HooksGrew(name or "this leaf", call.func.__name__, hooks, stack, ()))
