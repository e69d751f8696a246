"""Losses and their terms: which are never backpropagated, and which reach no parameter of the optimizers that step.

Looked at in the first iterations, and in ever rarer ones later. A loss is a single number with a graph; that one is
never backpropagated is known when its node is gone and no backward call has run through it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.events import Cut, DeadTerm, UnusedLoss
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.lineage import Constant, Origins
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph import walk
from gradtrace.watcher.parameters.leaves import grad_fn
from gradtrace.watcher.parameters.unreached import Reach

Tensor = torch.Tensor

#: iterations that are looked at: the first ones, and two in a row ever more rarely
_FIRST = 8
_LATER = frozenset(2**power + more for power in range(4, 31) for more in (0, 1))
#: sightings before anything is said, and places that are remembered
_SIGHTINGS, _PLACES = 3, 256
#: backward calls after which a loss that is still alive is given up
_PATIENCE = 8
#: losses waiting for their end; terms of one loss; nodes of a graph whose terms are looked at
_WAITING, _TERMS, _NODES = 256, 16, 4_000
_NAMES = 6
#: operations that a sum of terms is made of
_LINEAR = frozenset(
    f"{name}Backward{number}"
    for name in "Add Sub Rsub Mul Div Neg Sum Mean Stack Cat Unsqueeze".split()
    for number in range(2)
)
#: what makes a single number of many: the losses of torch, and these
_REDUCING = ("Mean", "Sum")
_KEY = "gradtrace: loss"
#: cuts that no code uses to keep a term of a loss constant on purpose
_UNMEANT = ("no_grad", "not differentiable", "copied")


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
    kind: str = ""
    #: leaves in optimizers that it was computed from
    leaves: set[TensorId] = field(default_factory=set)
    walks: int = 0
    overwritten: Stack = ()


@dataclass(slots=True)
class _Term:
    """A term of a loss that some of the parameters behind its constants get nothing from."""

    call: int
    backward: Stack
    root: str
    #: where it was computed, or added
    stack: Stack
    kind: str
    cut: Cut
    #: parameters that it reaches, those whose values were cut off, and those that compute with the cut value, by identity
    reached: frozenset[TensorId]
    behind: frozenset[TensorId]
    users: frozenset[TensorId]
    #: the optimizers that used its call, by identity, with their names; and which of these parameters they hold. Asked
    #: at the step: both may be gone when the term is judged
    stepped: dict[TensorId, str] = field(default_factory=dict)
    mine: set[TensorId] = field(default_factory=set)


class Terms(Observer):
    def __init__(self, session: Session, origins: Origins, reach: Reach) -> None:
        super().__init__(session)
        self._origins = origins
        self._reach = reach
        self._looking = True
        self._waiting: list[_Loss] = []
        self._places: dict[Stack, _LossPlace] = {}
        self._terms: list[_Term] = []
        #: sightings of terms, by place and kind, and the user's names for what is behind them
        self._told: dict[tuple[Stack, str], int] = {}
        self._names: dict[TensorId, str] = {}
        session.wake()
        origins.listen(self)

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
        loss = _loss_of(call.args[0]) if self._waiting and call.args else None
        if loss is not None:
            loss.read = loss.used = True
            loss.left = self.session.frames.stack(call.frame)

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
        reduced = name.startswith(_REDUCING) or "Loss" in name or "CrossEntropy" in name or "KlDiv" in name
        if not reduced and not (parts and name in _LINEAR):
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
            place = self._places[stack] = _LossPlace(loss)
        if place is not None and not place.leaves and self.session.has_optimizer and place.walks < _SIGHTINGS:
            place.walks += 1
            place.leaves = {self.session.ids.of(leaf) for leaf in walk.leaves_of([out]) if self.session.owned(leaf)}

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
        if self._looking and call.accumulates and call.whole and len(call.nodes) <= _NODES:
            self._look_at_terms(call, outputs)

    # losses that are never backpropagated

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
        if not loss.used:
            later = next((other for other in others if _replaces(other, loss)), None)
            place.overwritten = place.overwritten or (later.stack if later is not None else ())
        kind = "overwritten" if place.overwritten and not loss.used else ""
        if not kind and loss.parts and any(part.ran for part in loss.parts) and _is_before(loss.stack, loss.passed_by):
            kind = "sum"
        if not kind and loss.reduced and _is_before(loss.stack, loss.passed_by):
            kind = "idle"
        place.kind = kind

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        self._note_step(optimizer)
        steps = self.session.steps
        looking = steps < _FIRST or steps in _LATER
        if looking != self._looking:
            self._looking = looking
            self._origins.listen(self, looking)
            if looking:
                self.session.wake()

    def at_end(self) -> None:
        self._finish_terms(lambda term: True)
        self._settle()
        for place in self._places.values():
            # what was used once may wait for its phase; to assign it over is no phase
            judged = place.kind == "overwritten" or (place.kind and not place.used)
            if judged and place.sightings >= _SIGHTINGS and place.leaves:
                self._tell(place)

    def _tell(self, place: _LossPlace) -> None:
        loss = place.loss
        idle = self._reach.names_of_idle(place.leaves) if place.kind == "idle" else ()
        if place.kind == "idle" and (not idle or self._reach.has_entered(loss.left)):
            return  # the cut is what to report
        missing = next((part.stack for part in loss.parts if not part.is_covered()), ())
        where = place.overwritten if place.kind == "overwritten" else missing
        self.session.emit(UnusedLoss(place.kind, loss.stack, loss.passed_by, where, idle, loss.read, place.sightings))

    # terms that reach no parameter of the optimizers that step

    def _look_at_terms(self, call: BackwardCall, outputs: Sequence[Any]) -> None:
        constants = self._origins.constants(call.nodes)
        rebuilt = self._rebuilt(call)
        if not (rebuilt or any(self._owned_behind(one) for one in constants)):
            return
        sums, terms = _terms(walk.roots_of(outputs), set(call.nodes))
        for leaf, cut in rebuilt:
            if any(leaf is child.variable for node in sums for child in _leaf_children(node)):
                self._suspect(call, "rebuilt", cut.stack, cut, set(), self._origins.leaves_behind(cut))
        for constant in self._origins.constants(sums):
            cut = constant.cuts[0]
            if constant.added and (cut.why in _UNMEANT or _is_number(cut)):
                self._suspect(call, "constant", constant.entered, cut, set(), self._origins.leaves_behind(cut))
        if len(terms) + len(rebuilt) > 1:
            for node in terms[:_TERMS]:
                self._look_at_term(call, node)

    def _rebuilt(self, call: BackwardCall) -> list[tuple[Tensor, Cut]]:
        """Leaves that were made of values without a graph, and require grad again."""
        loose = [leaf for leaf in call.leaves if not isinstance(leaf, torch.nn.Parameter) and leaf.numel() == 1]
        found = [(leaf, self._origins.of_leaf(leaf)) for leaf in loose if not self.session.owned(leaf)]
        return [(leaf, cuts[0]) for leaf, cuts in found if cuts]

    def _owned_behind(self, constant: Constant) -> bool:
        return any(map(self.session.is_owned, self._origins.leaves_behind(constant.cuts[0])))

    def _look_at_term(self, call: BackwardCall, node: Any) -> None:
        below = list(walk.below(node))
        reached = {self.session.ids.of(one.variable) for one in below if type(one) is walk.ACCUMULATE}
        inner = [one for one in below if type(one) is not walk.ACCUMULATE]
        for user in inner:
            for constant in self._origins.constants([user]):
                behind = self._origins.leaves_behind(constant.cuts[0])
                if behind - reached and not constant.straight_through:
                    stack = self.session.trail.find(node_number(node))
                    users = frozenset(map(self.session.ids.of, _users(user, inner)))
                    self._suspect(call, "term", stack, constant.cuts[0], reached, behind, users)

    def _suspect(
        self,
        call: BackwardCall,
        kind: str,
        stack: Stack,
        cut: Cut,
        reached: set[TensorId],
        behind: frozenset[TensorId],
        users: frozenset[TensorId] = frozenset(),
    ) -> None:
        behind = frozenset(key for key in behind if self.session.is_owned(key))
        if behind and stack and len(self._terms) < _WAITING:
            owned = frozenset(key for key in reached if self.session.is_owned(key))
            self._terms.append(_Term(call.number, call.stack, call.root, stack, kind, cut, owned, behind, users))

    def _note_step(self, optimizer: Optimizer) -> None:
        """Which of the calls this step used, of which terms are in question."""
        if not self._terms:
            return
        wanted = {key for term in self._terms for key in term.behind}
        used: set[int] = set()
        for leaf in parameters(optimizer):
            known = self.session.book.known(leaf)
            if known is not None and leaf.grad is not None:
                used.update(share.call.number for share in known.shares)
                if self.session.ids.known(leaf) in wanted:
                    self._names[self.session.ids.known(leaf)] = known.name
        for term in self._terms:
            if term.call in used:
                key = self.session.ids.of(optimizer)
                term.stepped[key] = self.session.optimizer_name(key)
                for leaf_key in (*term.reached, *term.behind, *term.users):
                    if key in self.session.owners_of(leaf_key):
                        term.mine.add(leaf_key)
        self._finish_terms(lambda term: self.session.backward_calls - term.call >= _PATIENCE)

    def _finish_terms(self, is_over: Callable[[_Term], bool]) -> None:
        waiting, self._terms = self._terms, []
        for term in waiting:
            if is_over(term):
                self._judge(term)
            else:
                self._terms.append(term)

    def _judge(self, term: _Term) -> None:
        """Emits a term that the optimizers which used its call get less of than its value depends on."""
        if not term.stepped:
            return
        mine = term.mine
        lost = (term.behind & mine) - term.reached
        if not lost or (term.kind == "term" and term.reached & mine and not _enters_foreign(term, mine)):
            return
        place = term.stack, term.kind
        self._told[place] = self._told.get(place, 0) + 1
        if self._told[place] == _SIGHTINGS:
            names = (self._names.get(key, "") for key in term.behind if key in lost)
            self.session.emit(
                DeadTerm(
                    term.kind,
                    term.stack,
                    term.backward,
                    term.root,
                    term.cut,
                    bool(term.reached & mine),
                    tuple(dict.fromkeys(name for name in sorted(names) if name))[:_NAMES],
                    len(lost),
                    tuple(term.stepped[key] for key in sorted(term.stepped)),
                )
            )


def _enters_foreign(term: _Term, mine: set[TensorId]) -> bool:
    """Whether a detached value goes straight into a network that no step updates with these gradients: the discriminator of
    a generator's loss. Within the own network a detach is a choice."""
    return term.cut.why == "detached" and bool(term.users) and not term.users & mine


def _users(user: Any, nodes: Sequence[Any]) -> list[Tensor]:
    """The leaves with which operations from this node upwards compute."""
    above = walk.users_of(nodes)
    seen = {user}
    waiting = [user]
    while waiting:
        for one in above.get(waiting.pop(), ()):
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return [leaf for node in seen for leaf in _own_leaves(node)]


def _own_leaves(node: Any) -> list[Tensor]:
    """The leaves that an operation takes, itself or through a view: a weight that is transposed."""
    found = []
    for child, _ in node.next_functions:
        while child is not None and type(child).__name__ in walk.VIEWS:
            child = child.next_functions[0][0]
        if type(child) is walk.ACCUMULATE:
            found.append(child.variable)
    return found


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


def _is_number(cut: Cut) -> bool:
    return cut.op not in ("detach()", ".data")


def _terms(roots: Sequence[Any], nodes: set[Any]) -> tuple[list[Any], list[Any]]:
    """The nodes that add up a loss, and those of its terms."""
    sums: list[Any] = []
    terms: list[Any] = []
    waiting = list(roots)
    seen: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node in seen or node not in nodes:
            continue
        seen.add(node)
        if type(node).__name__ in _LINEAR and _is_scalar(node):
            sums.append(node)
            waiting += [child for child, _ in node.next_functions if child is not None]
        else:
            terms.append(node)
    return sums, terms


def _is_scalar(node: Any) -> bool:
    """Whether the result is a single number, as far as its inputs show: a mean over many is a term."""
    return type(node).__name__ not in ("SumBackward0", "MeanBackward0") or all(
        type(child).__name__.startswith(("Stack", "Cat")) for child, _ in node.next_functions
    )


def _leaf_children(node: Any) -> list[Any]:
    return [child for child, _ in node.next_functions if type(child) is walk.ACCUMULATE]
