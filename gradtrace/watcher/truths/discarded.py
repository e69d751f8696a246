"""Sees results of detach() that nothing takes, and statements of the user's files that do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gradtrace.model.site import Site, Stack
from gradtrace.model.truths import DiscardedResult
from gradtrace.source import discarding
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session

#: lines that call detach() and are looked at
_LINES = 512


class DiscardedResults(Observer):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known: set[tuple[str, int]] = set()

    def functions(self) -> Mapping[Any, Handler]:
        return {torch.Tensor.detach: self._detached}

    def _detached(self, call: TorchCall) -> None:
        stack = self.session.frames.stack(call.frame)
        if not stack or stack[0].place in self._known or len(self._known) >= _LINES or not call.args[0].requires_grad:
            return
        self._known.add(stack[0].place)
        text = discarding.discarded_call(stack[0], "detach")
        if text:
            self.session.emit(DiscardedResult(text, stack, "detach"))

    def at_end(self) -> None:
        for path in self.session.frames.user_files():
            for line, text in discarding.idle_statements(path):
                place: Stack = (Site(path, line, ""),)
                self.session.emit(DiscardedResult(text, place, "context" if text.endswith(")") else "uncalled"))
