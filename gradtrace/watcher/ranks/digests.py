"""Sums up the parameters and gradients of each optimizer after some of its steps, to be compared with those of the other
ranks. Nothing is looked at where there is no process group of several processes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.ranks import Digests
from gradtrace.model.site import Stack
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.parameters.births import Births
from gradtrace.watcher.ranks.checksums import LOOKS, checksum
from gradtrace.watcher.ranks.groups import in_job
from gradtrace.watcher.ranks.replicas import Replicas

#: numbers of one look: further parameters share them; and optimizers that are followed
_MOST, _OPTIMIZERS = 128, 8


@dataclass(slots=True)
class _Sums:
    """The looks at one optimizer so far."""

    order: int
    kind: str
    made: Stack
    total: int = 0
    step: Stack = ()
    names: tuple[str, ...] = ()
    layout: str = ""
    replicated: tuple[int, ...] = ()
    sharded: bool = False
    elements: int = 0
    born: Stack = ()
    parameters: list[tuple[int, torch.Tensor]] = field(default_factory=list)
    gradients: list[tuple[int, torch.Tensor]] = field(default_factory=list)


class ParameterDigests(Observer):
    """A look costs one reduction for each parameter; a run of a million steps has twenty looks."""

    def __init__(self, session: Session, births: Births, replicas: Replicas) -> None:
        super().__init__(session)
        self._births = births
        self._replicas = replicas
        self._known: dict[TensorId, _Sums] = {}

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if len(self._known) >= _OPTIMIZERS or not in_job():
            return
        for optimizer in self.session.optimizers():
            if self.session.ids.of(optimizer) not in self._known:
                self._look(self._meet(optimizer), optimizer)

    def _meet(self, optimizer: Optimizer) -> _Sums:
        key = self.session.ids.of(optimizer)
        made = self._births.optimizer(key)
        stack = made.stack if made is not None else ()
        sums = self._known[key] = _Sums(len(self._known), type(optimizer).__name__, stack)
        return sums

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        sums = self._known.get(self.session.ids.of(optimizer))
        if sums is None or not in_job():
            return
        sums.total += 1
        sums.step = stack
        if sums.total in LOOKS:
            self._look(sums, optimizer)

    def _look(self, sums: _Sums, optimizer: Optimizer) -> None:
        held = list(parameters(optimizer))
        if any(type(one) not in (torch.Tensor, torch.nn.Parameter) for one in held):
            sums.sharded = True
            return
        if sums.total <= 1:
            self._name(sums, held)
        sums.parameters.append((sums.total, _grouped([checksum(one) for one in held])))
        if sums.total:
            sums.gradients.append((sums.total, _grouped([checksum(one.grad) for one in held])))

    def _name(self, sums: _Sums, held: list[torch.Tensor]) -> None:
        names = []
        for one in held:
            leaf = self.session.book.known(one)
            names.append(leaf.name if leaf is not None else "")
        sums.elements = sum(one.numel() for one in held)
        birth = self._births.of(held[0]) if held else None
        sums.born = birth.stack if birth is not None else ()
        kinds = repr([(tuple(one.shape), str(one.dtype)) for one in held])
        sums.layout = hashlib.blake2b(kinds.encode(), digest_size=8).hexdigest()
        groups = [names[at : at + _width(len(names))] for at in range(0, len(names), _width(len(names)))]
        sums.names = tuple(group[0] if len(group) == 1 else f"{group[0]} to {group[-1]}" for group in groups)
        replicated = self._replicas.replicated
        width = _width(len(held))
        inside = {at // width for at, one in enumerate(held) if self.session.ids.known(one) in replicated}
        sums.replicated = tuple(sorted(inside))

    def at_end(self) -> None:
        for sums in self._known.values():
            for what, looks in (("parameters", sums.parameters), ("gradients", sums.gradients)):
                self.session.emit(
                    Digests(
                        what,
                        sums.order,
                        sums.kind,
                        sums.step,
                        sums.made,
                        sums.names,
                        sums.layout,
                        tuple(step for step, _ in looks),
                        tuple(",".join(map(str, values.tolist())) for _, values in looks),
                        sums.replicated,
                        sums.sharded,
                        sums.total,
                        sums.elements,
                        sums.born,
                    )
                )


def _width(count: int) -> int:
    return -(-count // _MOST) or 1


def _grouped(sums: list[torch.Tensor]) -> torch.Tensor:
    """One number for each group of neighbors, on the device of the first."""
    if not sums:
        return torch.zeros(0, dtype=torch.int64)
    device = sums[0].device
    for one in sums:
        if one.device.type != "cpu":
            device = one.device
    row = torch.stack([one.to(device, non_blocking=True) for one in sums])
    width = _width(len(sums))
    if width == 1:
        return row
    return torch.nn.functional.pad(row, (0, -len(sums) % width)).view(-1, width).sum(1)
