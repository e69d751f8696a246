"""Optimizers that never make a step, though gradients are computed for what they hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.site import Stack
from gradtrace.model.truths import NeverStepped, Truth
from gradtrace.watcher.code.reading import Readers
from gradtrace.watcher.compat import local_part
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.parameters.births import Births
from gradtrace.watcher.parameters.unreached import LOOKS

Tensor = torch.Tensor

_NAMES = 4


@dataclass(slots=True)
class _UnsteppedOptimizer:
    """The backward calls that gave gradients to an optimizer which has made no step so far."""

    optimizer: str
    made: Stack
    calls: int = 0
    #: calls that gave gradients to an optimizer that makes steps as well: those since the last step, and how many of them
    #: that optimizer has used
    passing: set[int] = field(default_factory=set)
    by_the_way: int = 0
    places: Counter[tuple[Stack, str]] = field(default_factory=Counter)
    names: tuple[str, ...] = ()
    count: int = 0
    #: steps of others by the first of these calls
    since: int = 0
    #: values of a parameter at the first call, and whether they changed since: the user's code may update by hand
    values: tuple[int, list[float]] = (0, [])
    moved: bool = False
    read: bool = False


class IdleOptimizers(Observer):
    """Once each optimizer has made a step, nothing is looked at any more."""

    def __init__(self, session: Session, births: Births) -> None:
        super().__init__(session)
        self._births = births
        self._readers = Readers(session.frames)
        self._stepped: set[TensorId] = set()
        self._waiting: dict[TensorId, _UnsteppedOptimizer] = {}
        self._scaled, self._complete = False, True

    def functions(self) -> Mapping[Any, Handler]:
        grad: Any = Tensor.grad
        return {torch._amp_foreach_non_finite_check_and_unscale_: self._unscales, grad.__get__: self._reads}

    def _unscales(self, call: TorchCall) -> None:
        self._scaled = True

    def _reads(self, call: TorchCall) -> None:
        if not self._waiting or self._readers.at(call.frame) != "user":
            return
        for key in self.session.owned_by(call.args[0]):
            if key in self._waiting:
                self._waiting[key].read = True

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if error is not None or not call.accumulates or len(self._stepped) >= len(self._births.optimizers()):
            return
        found: dict[TensorId, list[Tensor]] = {}
        passes_by = False
        for leaf in call.leaves:
            owners = self.session.owned_by(leaf)
            if not owners.isdisjoint(self._stepped):
                passes_by = True
                continue
            for key in owners:
                found.setdefault(key, []).append(leaf)
        for key, leaves in found.items():
            waiting = self._waiting.get(key) or self._wait(key)
            if passes_by or len(found) > 1:
                waiting.passing.add(call.number)
            self._count(waiting, call, leaves)

    def _wait(self, key: TensorId) -> _UnsteppedOptimizer:
        made = self._births.optimizer(key)
        stack = made.stack if made is not None else ()
        waiting = self._waiting[key] = _UnsteppedOptimizer(
            self.session.optimizer_name(key), stack, since=self.session.steps
        )
        return waiting

    def _count(self, waiting: _UnsteppedOptimizer, call: BackwardCall, leaves: list[Tensor]) -> None:
        waiting.calls += 1
        waiting.places[call.stack, call.root] += 1
        if waiting.calls not in LOOKS:
            return
        waiting.names = self.session.book.names(leaves[:_NAMES])
        waiting.count = max(waiting.count, len(leaves))
        first = leaves[0]
        values = [] if first.layout is not torch.strided else local_part(first).detach().reshape(-1)[:4].tolist()
        number = self.session.ids.of(first)
        same = waiting.values[0] == number
        waiting.moved |= same and values != waiting.values[1]
        waiting.values = number, values

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        if any(one.passing for one in self._waiting.values()):
            known = [self.session.book.known(parameter) for parameter in parameters(optimizer)]
            used = {share.call.number for leaf in known if leaf is not None for share in leaf.shares}
            for waiting in self._waiting.values():
                waiting.by_the_way += len(waiting.passing & used)
                waiting.passing.clear()
        self.after_unseen_step(optimizer)

    def after_unseen_step(self, optimizer: Optimizer) -> None:
        key = self.session.ids.of(optimizer)
        if key in self._stepped:
            return
        self._stepped.add(key)
        # whoever holds the same parameters is counted again, for those that this one does not move
        for parameter in parameters(optimizer):
            for other in self.session.owned_by(parameter):
                self._waiting.pop(other, None)

    def crashed(self, error: BaseException, stack: Stack) -> None:
        self._complete = isinstance(error, SystemExit) and not error.code

    def at_end(self) -> None:
        made = self._births.optimizers()
        waiting = {key: one for key, one in self._waiting.items() if not one.moved}
        names = tuple(one.optimizer for one in waiting.values())
        self.session.emit(Truth("optimizers step", len(made), len(waiting), names))
        for one in waiting.values() if self._complete else ():
            self._report(one)

    def _report(self, waiting: _UnsteppedOptimizer) -> None:
        (backward, root), _ = waiting.places.most_common(1)[0]
        self.session.emit(
            NeverStepped(
                optimizer=waiting.optimizer,
                made=waiting.made,
                names=waiting.names,
                count=waiting.count,
                calls=waiting.calls,
                by_the_way=waiting.by_the_way,
                backward=backward,
                root=root,
                others=self.session.steps - waiting.since,
                scaled=self._scaled,
                read=waiting.read,
                files=tuple(dict.fromkeys(site.path for site in backward)),
            )
        )
