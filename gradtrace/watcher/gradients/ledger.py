"""Keeps account of gradients: which backward calls put them into which optimizers' leaves, and what became of them.

A gradient is used by a step, or cleared, clipped, read by the user's code. Told at each step, and at the end.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from gradtrace.model.events import Collected, Fed, Given, Unstepped
from gradtrace.model.site import Stack
from gradtrace.watcher.code.reading import Readers
from gradtrace.watcher.core.history import Longer
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import Steps, parameters
from gradtrace.watcher.gradients.accounts import Account, Call, Found, Group, Purse, state
from gradtrace.watcher.graph.group_links import Kinship
from gradtrace.watcher.parameters.unreached import LOOKS, fingerprint

if TYPE_CHECKING:
    from gradtrace.watcher.core.backward import BackwardCall
    from gradtrace.watcher.gradients.clips import Clips

Tensor = torch.Tensor

#: calls whose loss is remembered for one optimizer, and calls whose inputs are known
_LOST, _INPUTS = 64, 8
#: names given in one event
_NAMES = 4
#: calls of one line whose graph is looked at for kinship, and calls after which a gradient counts as collected for ever
_STUDIED, _COLLECTED = 2, 5
_HEARS = ("register_hook", "retain_grad", "register_post_accumulate_grad_hook")
#: in the error of a GradScaler
_NO_CHECKS = "No inf checks were recorded"


class Ledger(Observer):
    def __init__(self, session: Session, steps: Steps, clips: Clips) -> None:
        super().__init__(session)
        self._steps = steps
        self._clips = clips
        self._readers = Readers(session.frames)
        self._purses = session.ids.table(dict[TensorId, Purse]())
        #: inputs of recent calls: leaves that are no parameters, by id
        self._inputs: OrderedDict[TensorId, Call] = OrderedDict()
        #: gradients that were read since the last call, by where their values lie
        self._aliases: dict[int, Purse] = {}
        self._accounts: defaultdict[TensorId, Account] = defaultdict(lambda: Account(""))
        self._studied: defaultdict[tuple[Any, ...], list[Kinship]] = defaultdict(list)
        #: the call that runs, and the state of the gradients before it
        self._before: list[tuple[Tensor, Group, tuple[int, int] | None]] | None = None
        self._current: Call | None = None
        self._last: Call | None = None
        self._hooked = False

    def functions(self) -> Mapping[Any, Handler]:
        grad: Any = Tensor.grad
        return {
            grad.__get__: self._read,
            grad.__set__: self._set,
            grad.__delete__: self._cleared,
            Tensor.zero_: self._zeroed,
            torch._foreach_zero_: self._zeroed,
            torch.tensor: lambda call: self._clips.nothing(call.frame),
            Tensor.clamp_: self._scaled,
            Tensor.clip_: self._scaled,
            Tensor.mul_: self._scaled,
            Tensor.div_: self._scaled,
            **{getattr(Tensor, name): self._hear for name in _HEARS},
        }

    # backward calls

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not call.accumulates:
            return
        self._clips.close()
        self._aliases.clear()
        group_of = self.session.owned_by
        self._before = [(leaf, group_of(leaf), state(leaf.grad)) for leaf in call.leaves]
        self._current = own = Call(call.number, call.stack, call.root)
        own.heard, self._hooked = self._hooked or any(map(_is_hook, call.kinds)), False
        groups = {group for _, group, _ in self._before}
        if len(groups) > 1:
            own.kinship = self._study((call.stack, call.root, frozenset(groups)), call)

    def _study(self, site: tuple[Any, ...], call: BackwardCall) -> Kinship:
        known = self._studied[site]
        if len(known) < _STUDIED:
            known.append(Kinship.of(call.nodes, self.session.owned_by, self.session.trail.find))
        return known[-1]

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        own, before = self._current, self._before
        self._current = self._before = None
        if own is None or before is None or error is not None:
            return
        self._last = own
        longer = Longer(own)
        found: defaultdict[Group, list[str]] = defaultdict(list)
        for leaf, group, was in before:
            grad = leaf.grad
            if grad is None or (now := (id(grad), grad._version)) == was:
                continue
            purse = self._held(leaf) or self._open(leaf, group)
            if purse is None:
                self._remember_input(leaf, own)
                continue
            if purse.calls and (was is None or purse.seen is None or was[0] != purse.seen[0]):
                self._lose(purse, ())
            purse.group = group
            purse.zeroed = False
            purse.seen = now
            purse.count += 1
            purse.calls = longer(purse.calls)
            found[group].append(purse.name)
            if not group and not purse.written and purse.count in LOOKS:
                purse.written = purse.mark != (mark := fingerprint(leaf)) and bool(purse.mark)
                purse.mark = mark
        own.reach = {group: (tuple(names[:_NAMES]), len(names)) for group, names in found.items()}
        self._wait(own)

    def _held(self, leaf: Tensor) -> Purse | None:
        purse = self._purses.get(self.session.ids.known(leaf))
        if purse is None or isinstance(leaf, torch.nn.Parameter) or self.session.owned_by(leaf):
            return purse
        del self._purses[self.session.ids.of(leaf)]  # its optimizer is gone: an input from now on
        return None

    def _open(self, leaf: Tensor, group: Group) -> Purse | None:
        if not group and not isinstance(leaf, torch.nn.Parameter):
            return None
        known = self.session.gradients.known(leaf)
        purse = self._purses[self.session.ids.of(leaf)] = Purse(group, known.name if known is not None else "")
        return purse

    def _remember_input(self, leaf: Tensor, call: Call) -> None:
        self._inputs[self.session.ids.of(leaf)] = call
        if len(self._inputs) > _INPUTS:
            self._inputs.popitem(last=False)

    def _wait(self, call: Call) -> None:
        """Counts the calls that give to optimizers that have made no step yet."""
        for key in {key for group in call.reach for key in group}:
            account = self._account(key)
            if account.steps:
                continue
            if not account.waiting:
                account.since = self.session.steps
            site = call.stack, call.root
            last, count, taken = account.waiting.get(site, (call, 0, False))
            call.read |= last.read
            call.checked |= last.checked
            account.waiting[site] = call, count + 1, taken or bool(last.taken)

    def _account(self, key: int) -> Account:
        account = self._accounts[key]
        account.name = account.name or self.session.optimizer_name(key)
        return account

    # what the user's code does to gradients

    def _read(self, call: TorchCall) -> None:
        tensor = call.args[0]
        reader = self._readers.at(call.frame)
        purse = self._held(tensor)
        if reader == "clip":
            if purse is not None or tensor.requires_grad:
                self._clips.touch(
                    call.frame, self.session.ids.of(tensor), purse, self._account, given=call.out is not None
                )
        elif reader == "scaler":
            self._clips.unscale(call.frame, purse)
            for one in purse.calls if purse is not None else ():
                one.checked = True
        elif purse is not None:
            if purse.calls and type(call.out) is Tensor and call.out.layout is torch.strided:
                self._aliases[call.out.data_ptr()] = purse
            if reader == "user":
                self._mark_read(purse)
        elif reader == "user" and call.out is not None:
            self._read_input(tensor)

    def _mark_read(self, purse: Purse) -> None:
        purse.read = True
        self._clips.used(purse)
        for call in purse.calls:
            call.read = True

    def _read_input(self, tensor: Tensor) -> None:
        call = self._inputs.get(self.session.ids.known(tensor), self._last)
        if call is not None:
            call.read = call.heard = True
            call.input_read |= self.session.ids.known(tensor) in self._inputs

    def _hear(self, call: TorchCall) -> None:
        self._hooked = True

    def _set(self, call: TorchCall) -> None:
        tensor, value = call.args
        purse = self._held(tensor)
        if value is None:
            self._cleared(call)
        elif purse is not None and self._readers.at(call.frame) != "scaler":
            if not purse.read:  # what comes in its place was not computed from it
                for one in purse.calls:
                    one.replaced = True
            self._mark_read(purse)
            purse.zeroed = False

    def _cleared(self, call: TorchCall) -> None:
        purse = self._held(call.args[0])
        if purse is not None and (purse.calls or purse.clip is not None):
            self._clear(purse, call.frame)

    def after_zero_grad(self, tensors: Sequence[Tensor], frame: FrameType) -> None:
        self._clips.close()
        for tensor in tensors:
            purse = self._held(tensor)
            if purse is None or not (purse.calls or purse.clip is not None):
                continue
            if purse.clip is None and not purse.fresh:
                purse.empty()
            else:
                self._clear(purse, frame)

    def _zeroed(self, call: TorchCall) -> None:
        for tensor in tensors_in(call.args[:1]):
            purse = self._alias(tensor)
            if purse is not None:
                self._clear(purse, call.frame)
                purse.zeroed = True

    def _scaled(self, call: TorchCall) -> None:
        purse = self._alias(call.args[0]) if self._aliases else None
        if purse is None or not self.session.frames.is_user(call.frame.f_code.co_filename):
            return
        self._clips.touch(call.frame, id(purse), purse, self._account)
        if purse.seen is not None and purse.seen[0] == id(call.args[0]):
            purse.seen = state(call.args[0])

    def _alias(self, tensor: Tensor) -> Purse | None:
        if not self._aliases or type(tensor) is not Tensor or tensor.layout is not torch.strided:
            return None
        return self._aliases.get(tensor.data_ptr())

    def _clear(self, purse: Purse, frame: FrameType) -> None:
        lost = purse.fresh and not self._steps.running
        stack = self.session.frames.stack(frame) if lost or purse.clip is not None else ()
        if self._steps.running:
            self._take(purse.calls, purse.group)
            self._clips.used(purse)
        self._clips.cleared(purse, stack)
        self._lose(purse, stack)

    def _lose(self, purse: Purse, stack: Stack) -> None:
        for call in purse.calls:
            if not purse.spent(call):
                for key in purse.group:
                    self._note_loss(self._account(key), call, stack)
        purse.empty()

    def _note_loss(self, account: Account, call: Call, stack: Stack) -> None:
        if call.number not in account.lost:
            account.clears += 1
            account.lost[call.number] = call, stack, bool(call.taken)
            if len(account.lost) > _LOST:
                account.lost.popitem(last=False)

    # steps

    def after_step(self, optimizer: torch.optim.Optimizer, stack: Stack) -> None:
        self._clips.close()
        key = self.session.ids.of(optimizer)
        self.session.meet(optimizer)
        account = self._account(key)
        account.steps += 1
        account.waiting.clear()
        if self._current is not None:  # within a backward call, of which nothing is known yet
            account.lost.clear()
            return
        found = self._found(parameters(optimizer), key)
        new = found.new
        lost = [one for number, one in account.lost.items() if number not in new and key not in one[0].taken]
        calls = self.session.backward_calls - account.calls
        single = next(iter(new.values())) if len(new) == 1 and not found.stale and not lost else None
        if single is not None and account.is_again(stack, calls, single):
            account.times += 1
        else:
            self._tell_times(account)
            account.source = single
            account.fed = Fed(
                optimizer=account.name,
                key=key,
                stack=stack,
                given=tuple(self._given(call, key) for _, call in sorted(new.items())),
                lost=tuple(self._given(call, key, at, elsewhere) for call, at, elsewhere in lost),
                stale=found.stale,
                again=account.stack if found.old and not new and not found.unknown else (),
                empty=not (found.old or new or found.unknown),
                calls=calls,
            )
            self.session.emit(account.fed)
        account.lost.clear()
        account.calls, account.stack = self.session.backward_calls, stack
        self._take(new.values(), (key,))

    def _tell_times(self, account: Account) -> None:
        if account.fed is not None and account.times:
            self.session.emit(replace(account.fed, times=account.times))
            account.times = 0

    def crashed(self, error: BaseException, stack: Stack) -> None:
        """A GradScaler that finds no gradients fails, so that no step is seen."""
        if _NO_CHECKS not in str(error):
            return
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        for key, account in self._accounts.items():
            lost = tuple(self._given(call, key, at, elsewhere) for call, at, elsewhere in account.lost.values())
            if lost:
                name = self.session.optimizer_name(key)
                self.session.emit(Fed(name, key, stack, (), lost, empty=True, error=text))

    def after_unseen_step(self, optimizer: torch.optim.Optimizer) -> None:
        account = self._account(self.session.ids.of(optimizer))
        account.steps += 1
        account.waiting.clear()
        account.lost.clear()
        account.calls = self.session.backward_calls
        for leaf in parameters(optimizer):
            purse = self._purses.get(self.session.ids.of(leaf))
            if purse is not None:
                self._clips.used(purse)
                self._take(purse.calls, purse.group)
                purse.empty()

    def _found(self, leaves: Iterable[Tensor], key: int) -> Found:
        found = Found()
        for leaf in leaves:
            grad = leaf.grad
            purse = self._purses.get(self.session.ids.of(leaf))
            if grad is None:
                if purse is not None and purse.calls:
                    self._lose(purse, ())
            elif purse is None or (purse.zeroed and bool(grad.any())):
                found.unknown = True
            elif not purse.zeroed:
                found.add(purse, (id(grad), grad._version), key)
                if purse.clip is not None:
                    self._clips.used(purse)
        return found

    def _take(self, calls: Iterable[Call], keys: Iterable[int]) -> None:
        for call in calls:
            for key in keys:
                call.taken.setdefault(key, self.session.backward_calls)

    def _given(self, call: Call, key: int, cleared: Stack = (), elsewhere: bool = False) -> Given:
        mine = [group for group in call.reach if key in group]
        others = [group for group in call.reach if group and all(map(group.isdisjoint, mine))]
        foreign = frozenset(chain.from_iterable(others))
        names, count = self._names(call, mine)
        kin = call.kinship
        return Given(
            call=call.number,
            stack=call.stack,
            root=call.root,
            leaves=names,
            count=count,
            foreign=foreign,
            taken=tuple((other, number) for other, number in call.taken.items() if other in foreign),
            read=call.read,
            input_read=call.input_read,
            checked=call.checked,
            heard=call.heard,
            replaced=call.replaced,
            entry=kin.entry(mine) if kin is not None else (),
            feeds=kin is not None and kin.feeds(mine, others),
            weighs=kin is not None and kin.weighs(mine, others),
            cleared=cleared,
            elsewhere=elsewhere,
        )

    @staticmethod
    def _names(call: Call, groups: Iterable[Group]) -> tuple[tuple[str, ...], int]:
        found = [call.reach[group] for group in groups if group in call.reach]
        names = tuple(name for some, _ in found for name in some)
        return names[:_NAMES], sum(count for _, count in found)

    # the end

    def at_end(self) -> None:
        self._clips.close()
        for account in self._accounts.values():
            self._tell_times(account)
        stepped = {key for key, account in self._accounts.items() if account.steps}
        for key, account in self._accounts.items():
            if not account.steps and account.waiting:
                self._tell_unstepped(key, account, stepped)
        self._tell_collected()

    def _tell_unstepped(self, key: int, account: Account, stepped: set[int]) -> None:
        own = [
            (call, count, taken)
            for call, count, taken in account.waiting.values()
            if stepped.isdisjoint(other for group in call.reach if key in group for other in group)
        ]
        given = [(self._given(call, key), count, taken or bool(call.taken)) for call, count, taken in own]
        given.sort(key=lambda one: (bool(one[0].foreign), -one[1]))
        if given:
            first, count, taken = given[0]
            others = self.session.steps - account.since
            self.session.emit(Unstepped(account.name, first, count, taken, others, account.clears))

    def _tell_collected(self) -> None:
        nobody: Group = frozenset()
        kept: defaultdict[int, list[Purse]] = defaultdict(list)
        for purse in self._purses.values():
            if not purse.group and not purse.read and purse.count >= _COLLECTED and purse.calls:
                kept[purse.calls[-1].number].append(purse)
        for purses in kept.values():
            call = purses[0].calls[-1]
            users = [key for key in call.taken if self._accounts[key].steps]
            if users and not call.read:
                given, count = self._stray(call, nobody), max(purse.count for purse in purses)
                twin = call.kinship is not None and call.kinship.twin(nobody)
                written = any(purse.written for purse in purses)
                account = self._accounts[users[0]]
                self.session.emit(Collected(given, count, twin, written, account.name, account.stack))

    def _stray(self, call: Call, nobody: Group) -> Given:
        names, count = self._names(call, [nobody])
        entry = call.kinship.entry([nobody]) if call.kinship is not None else ()
        return Given(call.number, call.stack, call.root, names, count, entry=entry)


@cache
def _is_hook(kind: type) -> bool:
    """Whether nodes of this type run full backward hooks of modules."""
    return kind.__name__.startswith("BackwardHook")
