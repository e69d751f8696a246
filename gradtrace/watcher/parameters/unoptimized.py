"""Parameters that receive gradients in iteration after iteration while optimizers step, and belong to none of them."""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.events import Unoptimized
from gradtrace.model.site import Stack
from gradtrace.source import questions, syntax
from gradtrace.watcher.code.holders import Holders, at_line, look
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph import query
from gradtrace.watcher.parameters.births import Birth, Births, CreatedOptimizer
from gradtrace.watcher.parameters.reference_networks import comparison_networks
from gradtrace.watcher.parameters.unreached import LOOKS, Reach, fingerprint

Tensor = torch.Tensor

_ITERATIONS = 3
#: candidates at once, searches for names and for what a graph does with them, names reported
_MANY = 4_096
_SEARCHES = 6
_NAMES = 6
_LEAVES = (torch.nn.Parameter, Tensor)
#: reasons that count only where less is left out than the optimizer holds
_BY_SIZE = ("left out", "part")
#: reasons that lie with what holds the parameter
_HELD = ("hidden", "plain")


class _UnownedParameter:
    """A parameter without an optimizer; or all that are made at one line within forward."""

    __slots__ = (
        *("alias", "alone", "backward", "birth", "converted", "first", "key", "last", "made", "mark", "name", "numel"),
        *("owned", "passing", "plain", "renewed", "root", "seen", "training", "iterations"),
    )

    def __init__(self, key: TensorId, leaf: Tensor, birth: Birth | None, call: BackwardCall) -> None:
        self.key = key
        self.birth = birth
        self.mark = fingerprint(leaf)
        self.numel = leaf.numel()
        self.plain = not isinstance(leaf, torch.nn.Parameter)
        self.backward = call.stack
        #: numbers of the first and the last call that reached it
        self.first = self.last = call.number
        self.iterations = 0
        #: an optimizer that holds its values under another name, one that requires no grad
        self.alias: CreatedOptimizer | None = None
        #: a backward call reached it since the last step
        self.seen = True
        #: made again each time
        self.passing = False
        #: another one took its place in the module
        self.renewed = False
        #: number and place of the operation that takes it in, if that is the same one each time
        self.converted: tuple[int, Stack] | None = None
        #: the optimizer of the other parameters that the same call reached, and how many numbers these hold
        self.made: CreatedOptimizer | None = None
        self.owned = 0
        #: the call reached no parameter of any optimizer
        self.alone = False
        #: what was found when the user's frames were searched
        self.name = ""
        self.root = ""
        self.training = True


class _Passing:
    """Parameters that are made at one line, others each time: alone, used by the line, or with a module made there."""

    __slots__ = "backward call keys kind last made stays iterations".split()

    def __init__(self, call: BackwardCall, made: CreatedOptimizer | None, kind: str) -> None:
        self.backward = call.stack
        self.made = made
        #: the class of the module; empty where there is none
        self.kind = kind
        self.iterations = 0
        #: number of the last call, and what it reached: the parameter or its module, and identities of the parameters
        self.call = 0
        self.last: weakref.ref[Any] | None = None
        self.keys: set[TensorId] = set()
        #: one outlived its call, or its gradient was read
        self.stays = False


class Unowned(Observer):
    def __init__(self, session: Session, births: Births, reach: Reach) -> None:
        super().__init__(session)
        self._births = births
        self._reach = reach
        self._candidates: dict[Hashable, _UnownedParameter] = {}
        #: parameters that others take care of
        self._meant: set[Hashable] = set()
        self._frozen: set[TensorId] = set()
        #: what is judged is the whole run, not what there is of it so far
        self._ends = True
        self._unfrozen: dict[TensorId, Stack] = {}
        #: parameters of networks whose results others are compared with
        self._measuring: set[TensorId] = set()
        #: those of them that run on data alone
        self._references: set[TensorId] = set()
        self._passing: dict[Stack, _Passing] = {}
        #: optimizers that a later one has taken the place of; and those that made a step, with their order
        self._replaced: set[TensorId] = set()
        self._met: dict[TensorId, int] = {}
        #: by optimizer: the last backward call that reached parameters of it
        self._reached: dict[TensorId, int] = {}
        self._holders = Holders()
        #: the user's variables, by what some of the parameters behind them are
        self._owned_roots: set[str] = set()
        self._frozen_roots: set[str] = set()
        self._measuring_roots: set[str] = set()
        self._searches_left = self._studies_left = _SEARCHES

    def functions(self) -> Mapping[Any, Handler]:
        switching = (Tensor.requires_grad.__set__, Tensor.requires_grad_)  # type: ignore[attr-defined]
        return {
            Tensor.grad.__get__: self._read,  # type: ignore[union-attr]
            **dict.fromkeys(switching, self._switched),
        }

    def _switched(self, call: TorchCall) -> None:
        """Notes what is trained from here on, and was frozen when the optimizer was made."""
        key, on = self.session.ids.of(call.args[0]), (*call.args[1:], *call.kwargs.values(), True)[0]
        if not on and len(self._frozen) < 64 * _MANY:
            self._frozen.add(key)
        elif on and key in self._frozen and self._births.any_optimizer:
            self._unfrozen[key] = self.session.frames.stack(call.frame)

    def _read(self, call: TorchCall) -> None:
        """The user's own code takes the gradient: an update by hand, a log."""
        if call.out is None or not (self._candidates or self._passing):
            return
        number = self.session.ids.known(call.args[0])
        for one in self._passing.values():
            one.stays |= number in one.keys
        found = next((key for key, one in self._candidates.items() if one.key == number), None)
        if found is not None and self.session.frames.is_user(call.frame.f_code.co_filename):
            text = syntax.line_text(call.frame.f_code.co_filename, call.frame.f_lineno)
            if "None" not in text and "zero_" not in text:
                self._leave(found)

    def _leave(self, key: Hashable) -> None:
        self._candidates.pop(key, None)
        if len(self._meant) < 64 * _MANY:
            self._meant.add(key)

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if not call.accumulates:
            # what autograd.grad computes gradients of is an input
            for leaf in call.leaves:
                if not isinstance(leaf, torch.nn.Parameter):
                    self._leave(self.session.ids.of(leaf))
            return
        if error is not None or not self._births.any_optimizer:
            return
        self._met_again(call)
        owned, free = self._sorted(call.leaves)
        self._reached.update(dict.fromkeys(self.session.owners(owned), call.number))
        if not free or (owned and not any(isinstance(leaf, torch.nn.Parameter) for leaf in owned)):
            return  # what is optimized is no parameter: an input, a latent code
        keys = self.session.owners(owned) - self._replaced
        if self._studies_left and any(self.session.ids.of(leaf) not in self._candidates for leaf in free):
            self._studies_left -= 1
            ids = self.session.ids
            compared = comparison_networks(call.nodes, frozenset(map(ids.of, free)), frozenset(map(ids.of, owned)), ids)
            self._measuring |= compared.networks
            self._references |= compared.references
        for leaf in free:
            candidate = None if self._passes(leaf, call, keys) else self._candidate(leaf, call)
            if candidate is None:
                continue
            candidate.seen = True
            candidate.last = call.number
            candidate.alone = not owned
            candidate.made = self._births.optimizer(min(keys)) if keys else None
            candidate.owned = candidate.owned or sum(one.numel() for one in owned)

    def _met_again(self, call: BackwardCall) -> None:
        """What was converted once is part of a graph that was run through before: the walk ends there."""
        places = {entry.built for entry in call.reentries}
        for candidate in self._candidates.values() if places else ():
            candidate.seen |= candidate.converted is not None and candidate.converted[1] in places

    def _passes(self, leaf: Tensor, call: BackwardCall, keys: frozenset[TensorId]) -> bool:
        """Whether this parameter takes the place of one that was made at the same line, and is gone."""
        birth = self._births.of(leaf)
        if not isinstance(leaf, torch.nn.Parameter) or not keys or len(self._passing) >= _MANY:
            return False
        gone = None
        if birth is None:
            _, stack = self._taken_in(leaf, call) or (0, ())
            gone = self._births.of_gone_module(leaf)
        else:
            stack = () if birth.in_forward or birth.instead else birth.stack
        if len(stack) < 2:  # at the top of the script it is kept
            return False
        made_with = birth or gone
        place = gone.stack if gone is not None else stack
        one = self._passing.get(place)
        if one is None:
            made = self._births.optimizer(min(keys))
            one = self._passing[place] = _Passing(call, made, made_with.kind if made_with is not None else "")
        if one.call != call.number:
            one.stays |= one.last is not None and one.last() is not None
            one.iterations += 1
            one.call, one.keys = call.number, set()
            one.last = birth.owner if birth is not None else weakref.ref(leaf)
        one.keys.add(self.session.ids.of(leaf))
        return not one.stays and one.iterations > 1

    def _sorted(self, leaves: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        owned: list[Tensor] = []
        free: list[Tensor] = []
        for leaf in leaves:
            if self.session.owned(leaf) and not self._is_left_by_all(leaf):
                owned.append(leaf)
            elif type(leaf) in _LEAVES and self.session.ids.of(leaf) not in self._meant and leaf.grad is not None:
                free.append(leaf)
        return owned, free

    def _is_left_by_all(self, leaf: Tensor) -> bool:
        """Whether every optimizer that holds the leaf has been replaced by a later one that does not."""
        return bool(self._replaced) and self._replaced.issuperset(self.session.owners([leaf]))

    def _candidate(self, leaf: Tensor, call: BackwardCall) -> _UnownedParameter | None:
        birth = self._births.of(leaf)
        key: Hashable = (
            birth.stack[:1] if birth is not None and (birth.in_forward or birth.instead) else self.session.ids.of(leaf)
        )
        known = self._candidates.get(key)
        if known is None:
            if len(self._candidates) >= _MANY or key in self._meant:
                return None
            known = self._candidates[key] = _UnownedParameter(self.session.ids.of(leaf), leaf, birth, call)
            if birth is None and not known.plain:
                known.converted = self._taken_in(leaf, call)
            return known
        if birth is not known.birth:
            # one that stays is kept for later calls
            known.passing |= known.birth is None or known.birth.owner() is None
            known.renewed = True
            known.birth, known.key = birth, self.session.ids.of(leaf)
        elif (known.plain or known.iterations in LOOKS) and fingerprint(leaf) != known.mark:
            if not known.plain:  # another input may lie at this address next
                self._leave(self.session.ids.of(leaf))
            self._candidates.pop(key, None)
            return None
        if known.converted and known.iterations < _ITERATIONS and self._taken_in(leaf, call) != known.converted:
            known.converted = None
        return known

    def _taken_in(self, leaf: Tensor, call: BackwardCall) -> tuple[int, Stack] | None:
        """The operation that takes the leaf in, if it is a single one."""
        users = query.takers_of(leaf, call.nodes)
        if len(users) != 1:
            return None
        number = node_number(users[0])
        return number, self.session.trail.find(number)

    def _note_replaced(self, optimizer: Optimizer) -> None:
        """An optimizer that was made before this one, for some of the same parameters, is replaced by it until it steps
        again."""
        ids, made = self.session.ids, self._births.optimizer(self.session.ids.known(optimizer))
        self._replaced.discard(ids.of(optimizer))
        if made is None or made.order < 2 or self._met.get(ids.of(optimizer)) == made.order:
            return
        self._met[ids.of(optimizer)] = made.order
        for key in self.session.owners(parameters(optimizer)):
            earlier = self._births.optimizer(key)
            if earlier is not None and earlier.order < made.order:
                self._replaced.add(key)

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        self._note_replaced(optimizer)
        if not self._candidates:
            return
        held = self.session.ids.of_all(parameters(optimizer))
        self._candidates = {key: one for key, one in self._candidates.items() if one.key not in held}
        fresh = False
        for candidate in self._candidates.values():
            if candidate.seen:
                candidate.seen = False
                candidate.iterations += 1
                fresh |= candidate.iterations == 2 and not candidate.passing
        if fresh:
            self._look_for_aliases(optimizer)
        if fresh and self._searches_left:
            self._searches_left -= 1
            self._search()

    def _look_for_aliases(self, optimizer: Optimizer) -> None:
        held = {one.data_ptr() for one in parameters(optimizer) if not one.requires_grad and one.numel()}
        for candidate in self._candidates.values() if held else ():
            if candidate.mark[1] in held:
                candidate.alias = self._births.optimizer(self.session.ids.of(optimizer))

    def _search(self) -> None:
        found = self._holders = look(self.session.frames, self.session.ids.known)
        for candidate in self._candidates.values():
            candidate.name = found.names.get(candidate.key, candidate.name)
            candidate.root = found.roots.get(candidate.key, candidate.root)
            above = found.above(candidate.name)
            candidate.training = not above or found.modules[above[-1]].training

    def is_reference(self, key: TensorId) -> bool:
        """Whether what the network of this leaf makes of data alone is compared with trained results."""
        return key in self._references

    # what it comes to

    def at_end(self) -> None:
        self._sort_roots()
        groups_found: dict[tuple[str, Stack, str], list[_UnownedParameter]] = {}
        for candidate in self._candidates.values():
            why = self._why(candidate) if candidate.iterations >= _ITERATIONS else ""
            if why:
                place, container = self._container(candidate) if why in _HELD else ((), "")
                born = candidate.converted[1] if candidate.converted else self._born(candidate)
                group = place or (born[:1] if why in ("forward", "replaced", "converted", "late") else ())
                groups_found.setdefault((why, group, container or candidate.root), []).append(candidate)
        for (why, _, container), found in groups_found.items():
            if why not in _BY_SIZE or sum(one.numel for one in found) <= max(one.owned for one in found):
                self._report(why, container, found)
        for stack, one in self._passing.items():
            if one.iterations >= _ITERATIONS and not one.stays:
                self._report_passing(stack, one)

    def so_far(self) -> None:
        self._ends = False
        try:
            self.at_end()
        finally:
            self._ends = True

    def _why(self, one: _UnownedParameter) -> str:
        birth, name = one.birth, one.name
        if one.plain:
            return "plain" if one.training and not one.alone and self._container(one)[0] else ""
        if one.alias:
            return "alias"
        if birth is not None and birth.in_forward:
            return "forward" if one.passing else "late"
        if birth is not None and birth.instead and one.renewed:
            return "replaced"
        if one.alone:
            return "copied" if self._replaced_by(one) else ""
        if not one.training:
            return ""
        if not name:
            return "converted" if one.converted and one.converted[1] else ""
        if one.key in self._unfrozen and one.made and birth:
            return "unfrozen"
        if one.made and one.made.used_up:
            return "empty group"
        partly = one.root in self._owned_roots
        if partly and birth and one.made and birth.optimizers >= one.made.order:
            return "late"
        # the network, or a part of it, is what the results of others are compared with
        measures = one.key in self._measuring or one.root in self._measuring_roots
        if self._births.is_loaded(one.key) or measures:
            return ""
        if partly:
            return "part" if birth is not None and birth.own else ""
        if not one.root and self._holders.above(name):
            return "hidden"
        if one.made and one.made.empty:
            return "empty group"
        # frozen in part, and in no optimizer: there to judge, as the network of a perceptual loss is
        if not one.root or birth is None or not birth.own or one.root in self._frozen_roots:
            return ""
        return "left out"

    def _sort_roots(self) -> None:
        """Of which of the user's variables some parameters are in an optimizer, frozen, or compared with."""
        roots = {key: root for key, root in self._holders.roots.items() if root}
        self._owned_roots = {root for key, root in roots.items() if self.session.is_owned(key)}
        self._frozen_roots = {root for key, root in roots.items() if key in self._frozen}
        self._measuring_roots = {root for key, root in roots.items() if key in self._measuring}

    def _replaced_by(self, one: _UnownedParameter) -> bool:
        """Whether an optimizer steps without finding a gradient, ever or since these parameters get theirs."""
        keys = [key for key, _ in self._births.optimizers()]
        key = next((key for key in keys if self._reach.idle(key) or self._left_behind(key, one)), None)
        if key is None:
            return False
        one.made = self._births.optimizer(key)
        if self._ends:
            self._reach.excuse(key)
        return True

    def _left_behind(self, key: TensorId, one: _UnownedParameter) -> bool:
        """Whether no call has reached what this optimizer holds since the candidate got its first gradient, and the
        optimizer has gone on stepping."""
        last = self._reached.get(key)
        return last is not None and last < one.first and key in self.session.stepped_since(one.last)

    def _born(self, one: _UnownedParameter) -> Stack:
        if one.birth is None:
            return ()
        stack = one.birth.stack
        at = next((at for at, site in enumerate(stack) if not site.function.endswith("__init__")), 0)
        if one.birth.in_forward or one.birth.instead:
            return stack[at:]
        above = self._holders.above(one.name)
        return self._holders.born(stack, above[-1]) if above else stack

    def _container(self, one: _UnownedParameter) -> tuple[Stack, str]:
        """The statement that assigns the attribute through which the parameter is held, and the user's name for it."""
        holders = self._holders
        owner = next((name for name in reversed(holders.above(one.name)) if name in holders.registered), "")
        attribute = one.name[len(owner) + 1 :].partition("[")[0].partition(".")[0]
        holder = holders.modules.get(owner)
        if holder is None or not holder.path:
            return (), f"{owner}.{attribute}"
        for constructor in holder.constructors:
            kind = constructor.rpartition(".")[0].rpartition(".")[2]
            found = questions.attribute_set(holder.path, kind, attribute)
            if found is not None and (not one.plain or questions.is_in(holder.path, found, "__init__")):
                return at_line(holder.path, found.lineno, found.end_lineno, constructor), f"{owner}.{attribute}"
        return (), f"{owner}.{attribute}"

    def _report_passing(self, stack: Stack, one: _Passing) -> None:
        line = None if one.kind else questions.called_around(stack[0], "Parameter")
        born = stack if line is None else (stack[0]._replace(line=line, column=None, end_column=None), *stack[1:])
        kind, where = (one.made.kind, one.made.stack) if one.made else ("", ())
        self.session.emit(
            Unoptimized("passing", (), 1, one.iterations, born, one.kind, (), "", kind, where, one.backward)
        )

    def _report(self, why: str, container: str, found: list[_UnownedParameter]) -> None:
        first = found[0]
        place, _ = self._container(first) if why in _HELD else (self._unfrozen.get(first.key, ()), "")
        made, birth = first.alias or first.made, first.birth
        names = [one.name or (f"{one.birth.kind}.{one.birth.name}" if one.birth else "") for one in found]
        self.session.emit(
            Unoptimized(
                why,
                tuple(dict.fromkeys(name for name in names if name))[:_NAMES],
                len(found),
                first.iterations,
                first.converted[1] if why == "converted" and first.converted else self._born(first),
                birth.kind if birth else "",
                place,
                container,
                made.kind if made else "",
                made.stack if made else (),
                first.backward,
            )
        )
