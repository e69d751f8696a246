"""Losses that are computed in each iteration, and through which no backward call runs.

Every single number with a graph that a reduction or a loss function gives may be a loss, and so may sums of such ones. What
became of each is noted by the place that computes it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.errors import first_line
from gradtrace.model.events import UnusedLoss
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import NO_CHECKS, NO_SCALE, parameters
from gradtrace.watcher.faults.terms import is_looked_at
from gradtrace.watcher.graph import ops, query
from gradtrace.watcher.parameters.leaves import grad_fn
from gradtrace.watcher.parameters.unreached import Reach

Tensor = torch.Tensor

#: sightings before anything is said, and places that are remembered
_SIGHTINGS, _PLACES = 3, 256
#: backward calls after which a loss that is still alive is given up
_PATIENCE = 8
#: losses waiting for their end
_WAITING = 256
_KEY = "gradtrace: loss"


class _LossLifetime:
    """Lives in the metadata of a loss's node, and as long as that."""

    __slots__ = ("__weakref__", "loss")

    def __init__(self, loss: _Loss) -> None:
        self.loss = loss


@dataclass(eq=False, slots=True)
class _Loss:
    """A single number with a graph."""

    stack: Stack
    #: it is a reduction or a loss function's result, and no sum of such ones
    reduced: bool
    #: the losses that it is a linear combination of
    parts: list[_Loss]
    call: int
    ran: bool = False
    #: some operation used it, or its value was read
    used: bool = False
    read: bool = False
    #: where its value was read last
    left: Stack = ()
    #: the backward call at which it was alive, and was not run through
    passed_by: Stack = ()
    #: the step that found no gradient while it was there; a backward call may come too late
    missed: Stack = ()
    life: weakref.ref[_LossLifetime] | None = None

    def is_covered(self, depth: int = 32) -> bool:
        """Whether it was backpropagated, or all that it is a sum of was."""
        if self.ran or not self.parts or not depth:
            return self.ran
        return all(part.is_covered(depth - 1) for part in self.parts)


@dataclass(slots=True)
class _LossPlace:
    """What became of the losses made at one place."""

    loss: _Loss
    sightings: int = 0
    #: one was backpropagated: the place is not judged
    used: bool = False
    #: the operation that gives it
    node: str = ""
    #: one went into an operation, or was read
    noticed: bool = False
    kind: str = ""
    #: leaves in optimizers that it was computed from
    leaves: set[TensorId] = field(default_factory=set)
    walks: int = 0
    overwritten: Stack = ()
    #: steps that found no gradient though this loss was there for it, and the last of these
    starved: int = 0
    step: Stack = ()


class IdleLosses(Observer):
    def __init__(self, session: Session, reach: Reach) -> None:
        super().__init__(session)
        self._reach = reach
        self._looking = True
        #: so many steps: in between one found no gradient, which is to be explained
        self._looking_until = 0
        self._waiting: list[_Loss] = []
        #: operations whose results were read in between, as by a printout after every 100 steps
        self._read_unseen: set[str] = set()
        self._places: dict[Stack, _LossPlace] = {}
        #: optimizers of which a step found a gradient
        self._fed: set[TensorId] = set()
        session.wake()

    def functions(self) -> Mapping[Any, Handler]:
        reading = (Tensor.item, Tensor.detach, Tensor.__format__, Tensor.__repr__, Tensor.__float__, Tensor.tolist)
        more = (Tensor.cpu, Tensor.numpy, Tensor.data.__get__, Tensor.backward, torch.isnan, torch.isfinite)  # type: ignore[attr-defined]
        return dict.fromkeys((*reading, *more), self._reads)

    def woken(self) -> Handler:
        return self._made

    def made_plain(self) -> Handler:
        return self._uses

    def _uses(self, call: TorchCall) -> None:
        for tensor in call.inputs if self._waiting else ():
            loss = _loss_of(tensor)
            if loss is not None:
                loss.used = True

    def _reads(self, call: TorchCall) -> None:
        if not self._looking and call.args:
            self._note_unseen(call.args[0])
        loss = _loss_of(call.args[0]) if self._waiting and call.args else None
        if loss is not None:
            loss.read = loss.used = True
            loss.left = self.session.frames.stack(call.frame)

    def _note_unseen(self, tensor: Any) -> None:
        """A number is read in an iteration whose losses are not noted: it may be any that the same operation gives."""
        if isinstance(tensor, Tensor) and not tensor.dim() and tensor.requires_grad:
            self._read_unseen.add(type(grad_fn(tensor)).__name__)

    def _made(self, call: TorchCall) -> None:
        """Notes each single number that may be a loss, and of which others it is made."""
        if not self._looking:
            return
        self.session.wake()
        inputs = call.inputs
        parts = [loss for tensor in inputs if (loss := _loss_of(tensor)) is not None]
        for part in parts:
            part.used = True
        out = call.out
        if not isinstance(out, Tensor) or out.dim() or not out.is_floating_point() or out.grad_fn is None:
            return
        name = type(out.grad_fn).__name__
        reduced = ops.is_reduction(name)
        if not reduced and not (parts and name in ops.SUMS_OF_TERMS):
            return
        stack = self.session.frames.stack(call.frame)
        if stack and len(self._waiting) < _WAITING:
            self._note(out, stack, reduced, parts)

    def _note(self, out: Tensor, stack: Stack, reduced: bool, parts: list[_Loss]) -> None:
        loss = _Loss(stack, reduced, [] if reduced else parts, self.session.backward_calls)
        life = _LossLifetime(loss)
        loss.life = weakref.ref(life)
        node: Any = out.grad_fn
        node.metadata[_KEY] = life
        self._waiting.append(loss)
        place = self._places.get(stack)
        if place is None and len(self._places) < _PLACES:
            place = self._places[stack] = _LossPlace(loss, node=type(node).__name__)
        if place is not None and not place.leaves and self.session.has_optimizer and place.walks < _SIGHTINGS:
            place.walks += 1
            place.leaves = {self.session.ids.of(leaf) for leaf in query.leaves_of([out]) if self.session.owned(leaf)}

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if self._waiting:
            for node in call.nodes:
                life = node.metadata.get(_KEY)
                if life is not None:
                    life.loss.ran = True
            if not call.whole:  # what lies deeper is not known to be left out
                self._waiting.clear()
            for loss in self._waiting if call.accumulates else ():
                if not loss.ran and not loss.passed_by and loss.life is not None and loss.life() is not None:
                    loss.passed_by = call.stack
            self._settle()

    def _settle(self) -> None:
        """Judges the losses that are gone, and gives up those that live on."""
        waiting, self._waiting = self._waiting, []
        for loss in waiting:
            alive = loss.life is not None and loss.life() is not None
            if alive and not loss.ran and self.session.backward_calls - loss.call < _PATIENCE:
                self._waiting.append(loss)
            elif loss.ran or alive:
                self._acquit(loss)
            else:
                self._count(loss, waiting)

    def _acquit(self, loss: _Loss) -> None:
        place = self._places.get(loss.stack)
        if place is not None:
            place.used, place.sightings, place.kind = True, 0, ""
            place.overwritten = ()

    def _count(self, loss: _Loss, others: Iterable[_Loss]) -> None:
        place = self._places.get(loss.stack)
        if place is None or loss.is_covered():
            return
        place.loss = loss
        place.sightings += 1
        place.noticed |= loss.used
        if loss.missed:
            place.starved += 1
            place.step = loss.missed
        if not loss.used:
            later = next((other for other in others if _replaces(other, loss)), None)
            place.overwritten = place.overwritten or (later.stack if later is not None else ())
        kind = "overwritten" if place.overwritten and not loss.used else ""
        if not kind and loss.parts and any(part.ran for part in loss.parts) and _is_before(loss.stack, loss.passed_by):
            kind = "sum"
        # printed now and then, it is a metric
        if not kind and not loss.used and not place.noticed:
            kind = "unread"
        if not kind and loss.reduced and _is_before(loss.stack, loss.passed_by):
            kind = "idle"
        place.kind = kind

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        self._note_step(optimizer, stack)
        looking = is_looked_at(self.session.steps) or self.session.steps < self._looking_until
        if looking != self._looking:
            self._looking = looking
            if looking:
                self.session.wake()

    def _note_step(self, optimizer: Optimizer, stack: Stack) -> None:
        """Which loss this step waited for in vain: the last one that depends on what the optimizer holds."""
        used, key = self.session.book.stepped, self.session.ids.of(optimizer)
        if key in self._fed:
            return
        # with a new optimizer a stage may begin that has its own losses
        self._looking_until = self.session.steps + _SIGHTINGS
        if used.old or used.new or used.unknown:
            self._fed.add(key)
            return
        loss = self._missed_by(optimizer)
        if loss is not None:
            loss.missed = stack
        if len(self._waiting) > _WAITING // 2:
            self._settle()

    def _missed_by(self, optimizer: Optimizer) -> _Loss | None:
        """The last loss that depends on what this optimizer holds, if no backward call ran through it."""
        held = {self.session.ids.known(parameter) for parameter in parameters(optimizer)}
        for loss in reversed(self._waiting):
            place = self._places.get(loss.stack)
            if place is None or loss.is_covered() or place.leaves.isdisjoint(held):
                continue
            while len(loss.parts) == 1:  # scaled, or divided
                loss = loss.parts[0]
            return loss if loss.stack in self._places else None
        return None

    def crashed(self, error: BaseException, stack: Stack) -> None:
        """A GradScaler that finds no gradients fails, so that no step is seen."""
        if not any(text in str(error) for text in (NO_CHECKS, NO_SCALE)):
            return
        for optimizer in self.session.optimizers():
            loss = self._missed_by(optimizer)
            if loss is not None and self.session.ids.known(optimizer) not in self._fed:
                text = first_line(error)
                self.session.emit(UnusedLoss("starved", loss.stack, (), stack, (), loss.read, 1, text))
                return

    def at_end(self) -> None:
        self._settle()
        # the line of a function that several stages call is used by one of them
        used = {place.loss.stack[0] for place in self._places.values() if place.used}
        for place in self._places.values():
            loss = place.loss
            waits = place.used or (place.kind == "unread" and (place.noticed or loss.stack[0] in used))
            # what was used once may wait for its phase; to assign it over is no phase
            judged = place.kind == "overwritten" or (place.kind and not waits)
            if place.starved >= _SIGHTINGS and not place.used:
                self.session.emit(UnusedLoss("starved", loss.stack, (), place.step, (), loss.read, place.starved))
            elif judged and place.sightings >= _SIGHTINGS and place.leaves:
                self._report(place)

    def _report(self, place: _LossPlace) -> None:
        loss = place.loss
        idle = self._reach.names_of_idle(place.leaves) if place.kind == "idle" else ()
        if place.kind == "idle" and (not idle or self._reach.has_entered(loss.left)):
            return  # the cut is what to report
        missing = next((part.stack for part in loss.parts if not part.is_covered()), ())
        where = place.overwritten if place.kind == "overwritten" else missing
        read = loss.read or (place.kind == "unread" and place.node in self._read_unseen)
        self.session.emit(UnusedLoss(place.kind, loss.stack, loss.passed_by, where, idle, read, place.sightings))


def _loss_of(tensor: Any) -> _Loss | None:
    """The loss that this tensor is, if it was noted as one."""
    if not isinstance(tensor, Tensor) or tensor.dim() or not tensor.requires_grad:
        return None
    node = grad_fn(tensor)
    life = node.metadata.get(_KEY) if node is not None else None
    return life.loss if life is not None else None


def _replaces(later: _Loss, loss: _Loss) -> bool:
    """Whether it was assigned to the variable that held the other one, by a later line of the same function."""
    new, old = later.stack[0], loss.stack[0]
    if not later.ran or (new.path, new.function) != (old.path, old.function) or new.line <= old.line:
        return False
    return later.stack[1:] == loss.stack[1:] and bool(set(questions.assigned(new)) & set(questions.assigned(old)))


def _is_before(made: Stack, backward: Stack) -> bool:
    """Whether a line is above that of a backward call, where both were reached from one function."""
    for mine, theirs in zip(reversed(made), reversed(backward), strict=False):
        if mine != theirs:
            return (mine.path, mine.function) == (theirs.path, theirs.function) and mine.line < theirs.line
    return False
