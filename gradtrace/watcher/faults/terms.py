"""Terms of losses that reach no parameter of the optimizers that step, though they were computed from some.

Looked at in the first iterations, and in ever rarer ones later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.events import Cut, DeadTerm
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.gradient_places import GradientPlaces
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.lineage import Constant, Origins
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph import ops, query, walk
from gradtrace.watcher.graph.saved import place_of

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
#: samples that have no gradient whatever draws them
_DISCRETE = ("multinomial()", "bernoulli()", "poisson()")
#: cuts that no code uses to keep a term of a loss constant on purpose
_UNMEANT = ("no_grad", "not differentiable", "copied")


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
    #: it was computed of the values of parameters alone, which were detached: a penalty
    penalty: bool = False
    #: the optimizers that used its call, by identity, with their names; and which of these parameters they hold. Asked
    #: at the step: both may be gone when the term is judged
    stepped: dict[TensorId, str] = field(default_factory=dict)
    mine: set[TensorId] = field(default_factory=set)
    #: those of them to which the optimizer applies a weight decay: the loss only reports it
    decayed: set[TensorId] = field(default_factory=set)

    @property
    def place(self) -> tuple[Stack, str, Stack]:
        """Terms of one place are counted together."""
        return self.stack, self.kind, self.cut.stack if self.penalty else ()


class Terms(Observer):
    def __init__(self, session: Session, origins: Origins) -> None:
        super().__init__(session)
        self._origins = origins
        self._looking = True
        self._terms: list[_Term] = []
        #: sightings of terms, by place and kind, and the user's names for what is behind them
        self._sightings: dict[tuple[Stack, str, Stack], int] = {}
        self._names: dict[TensorId, str] = {}
        #: cuts seen so far at the places of penalties, by that place and where the penalty is added
        self._cuts: dict[tuple[Stack, Stack], int] = {}
        #: parameters of penalties, by where their values lie; and those of them that the code writes to itself
        self._penalized: dict[int, TensorId] = {}
        self._written: set[TensorId] = set()
        self._gradients = GradientPlaces(session)
        session.wake()
        origins.listen(self)

    def functions(self) -> Mapping[Any, Handler]:
        # a penalty that the code applies itself, by a proximal step, a decay of its own, or a gradient that it adds
        setters = (Tensor.data.__set__, Tensor.grad.__set__)  # type: ignore[attr-defined, union-attr]
        return dict.fromkeys((*ops.CHANGING_FUNCTIONS, *setters), self._note_write)

    def _note_write(self, call: TorchCall) -> None:
        if not self._penalized:
            return
        adds = call.func in ops.SUMMING_FUNCTIONS or call.func is Tensor.grad.__set__  # type: ignore[union-attr]
        for target in tensors_in(call.args[:1]):
            key = self._penalized.get(place_of(target), 0)
            self._written.add(key or (self._gradients.leaf_of(target) if adds else 0))

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if self._looking and call.accumulates and call.whole and len(call.nodes) <= _NODES:
            self._look_at_terms(call, outputs)

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        self._note_step(optimizer)
        looking = is_looked_at(self.session.steps)
        if looking != self._looking:
            self._looking = looking
            self._origins.listen(self, looking)

    def at_end(self) -> None:
        self._finish_terms(lambda term: True)

    def _look_at_terms(self, call: BackwardCall, outputs: Sequence[Any]) -> None:
        constants = self._origins.constants(call.nodes)
        rebuilt = self._rebuilt(call)
        if not (rebuilt or any(self._owned_behind(one) for one in constants)):
            return
        sums, terms = _terms(walk.roots_of(outputs), set(call.nodes))
        for leaf, cut in rebuilt:
            if query.takers_of(leaf, sums):
                self._suspect(call, "rebuilt", cut.stack, cut, set(), self._origins.leaves_behind(cut))
        for constant in self._origins.constants(sums):
            cut = constant.cuts[0]
            if constant.added and (cut.why in _UNMEANT or _is_number(cut)):
                self._suspect(call, "constant", constant.entered, cut, set(), self._origins.leaves_behind(cut))
            elif constant.added:
                self._look_at_penalty(call, constant, sums)
        if len(terms) + len(rebuilt) > 1:
            for node in terms[:_TERMS]:
                self._look_at_term(call, node)

    def _look_at_penalty(self, call: BackwardCall, constant: Constant, sums: Sequence[Any]) -> None:
        """A number that was computed of the values of parameters, and of nothing else that had a graph."""
        if not all(cut.behind == "leaf" and self._origins.leaves_behind(cut) for cut in constant.cuts):
            return
        trained = self.session.ids.of_all(query.leaf_inputs(*sums))
        for cut in constant.cuts:
            behind = self._origins.leaves_behind(cut) - trained
            # a parameter of one element is a weight of terms: a temperature, a multiplier
            if cut.why == "detached" and math.prod(cut.shape or ()) > 1 and self._is_cut_again(cut, constant.entered):
                self._suspect(call, "constant", constant.entered, cut, set(), behind, penalty=True)
                for leaf in call.leaves:
                    if self.session.ids.known(leaf) in behind:
                        self._penalized[place_of(leaf)] = self.session.ids.known(leaf)

    def _is_cut_again(self, cut: Cut, entered: Stack) -> bool:
        """Whether a value was cut off there since the last look: what was cut off long ago is what the parameter is compared
        with."""
        before = self._cuts.get((cut.stack, entered), 0)
        self._cuts[cut.stack, entered] = now = self._origins.count(cut)
        return now > before > 0

    def _rebuilt(self, call: BackwardCall) -> list[tuple[Tensor, Cut]]:
        """Leaves that were made of values without a graph, and require grad again."""
        scalars = [leaf for leaf in call.leaves if not isinstance(leaf, torch.nn.Parameter) and leaf.numel() == 1]
        found = [(leaf, self._origins.of_leaf(leaf)) for leaf in scalars if not self.session.owned(leaf)]
        return [(leaf, cuts[0]) for leaf, cuts in found if cuts]

    def _owned_behind(self, constant: Constant) -> bool:
        return any(map(self.session.is_owned, self._origins.leaves_behind(constant.cuts[0])))

    def _look_at_term(self, call: BackwardCall, node: Any) -> None:
        below = list(query.below([node]))
        reached = {self.session.ids.of(one.variable) for one in below if type(one) is walk.ACCUMULATE}
        inner = [one for one in below if type(one) is not walk.ACCUMULATE]
        for user in inner:
            for constant in self._origins.constants([user]):
                behind = self._origins.leaves_behind(constant.cuts[0])
                if behind - reached and not constant.straight_through:
                    stack = self.session.trail.find(node_number(node))
                    users = frozenset(self.session.ids.of_all(_users(user, inner)))
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
        penalty: bool = False,
    ) -> None:
        behind = frozenset(key for key in behind if self.session.is_owned(key))
        if behind and stack and len(self._terms) < _WAITING:
            owned = frozenset(key for key in reached if self.session.is_owned(key))
            found = _Term(call.number, call.stack, call.root, stack, kind, cut, owned, behind, users, penalty)
            self._terms.append(found)

    def _note_step(self, optimizer: Optimizer) -> None:
        """Which of the calls this step used, of which terms are in question."""
        if not self._terms:
            return
        wanted = {key for term in self._terms for key in term.behind}
        decayed = self._decayed(optimizer) if any(term.penalty for term in self._terms) else set()
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
                term.decayed |= decayed & term.behind
        self._finish_terms(lambda term: self.session.backward_calls - term.call >= _PATIENCE)

    def _decayed(self, optimizer: Optimizer) -> set[TensorId]:
        """The parameters to which an optimizer applies a weight decay."""
        groups = (group for group in optimizer.param_groups if group.get("weight_decay"))
        return {self.session.ids.known(parameter) for group in groups for parameter in group["params"]}

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
        chosen = term.reached & mine and not _enters_foreign(term, mine) and not _is_sample(term.cut)
        if not lost or (term.kind == "term" and chosen):
            return
        if term.penalty and lost & (term.decayed | self._written):
            return
        place = term.place
        self._sightings[place] = self._sightings.get(place, 0) + 1
        if self._sightings[place] == _SIGHTINGS:
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


def is_looked_at(steps: int) -> bool:
    """Whether the iteration after so many steps is one whose losses are looked at."""
    return steps < _FIRST or steps in _LATER


def _enters_foreign(term: _Term, mine: set[TensorId]) -> bool:
    """Whether a detached value goes straight into a network that no step updates with these gradients: the discriminator of
    a generator's loss. Within the own network a detach is a choice."""
    return term.cut.why == "detached" and bool(term.users) and not term.users & mine


def _is_sample(cut: Cut) -> bool:
    """Whether a sample was drawn that rsample() would draw with a gradient: `Normal(mean, std).sample()`."""
    drawn = cut.why == "no_grad" and cut.stack and questions.sample_call(cut.stack[0])
    return bool(drawn) and cut.op not in _DISCRETE


def _users(user: Any, nodes: Sequence[Any]) -> list[Tensor]:
    """The leaves with which operations from this node upwards compute."""
    above = [upper for upper, _ in query.above(user, query.users_of(nodes))]
    return [leaf for node in (user, *above) for leaf in _own_leaves(node)]


def _own_leaves(node: Any) -> list[Tensor]:
    """The leaves that an operation takes, itself or through a view: a weight that is transposed."""
    behind = [query.past(child, ops.VIEWS) for child in query.inputs(node)]
    return [one.variable for one in behind if one is not None and type(one) is walk.ACCUMULATE]


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
        if type(node).__name__ in ops.SUMS_OF_TERMS and _is_scalar(node):
            sums.append(node)
            waiting += query.inputs(node)
        else:
            terms.append(node)
    return sums, terms


def _is_scalar(node: Any) -> bool:
    """Whether the result is a single number, as far as its inputs show: a mean over many is a term."""
    return type(node).__name__ not in ops.FULL_REDUCTIONS or all(
        type(child).__name__ in ops.JOINS for child in query.inputs(node)
    )
