"""Reports of each optimizer what its steps were fed with, what was cleared before, and what it never used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.amp import grad_scaler
from torch.optim import Optimizer

from gradtrace.errors import first_line
from gradtrace.model.events import Collected, Given, OptimizerStep, Unstepped
from gradtrace.model.site import Stack
from gradtrace.watcher.core.book import Act, CallRecord, Leaf, Lost
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import NO_CHECKS, parameters
from gradtrace.watcher.gradients.acts import Acts
from gradtrace.watcher.graph import saved, walk
from gradtrace.watcher.graph.group_links import Group, GroupLinks
from gradtrace.watcher.parameters.births import Births
from gradtrace.watcher.parameters.unoptimized import Unowned
from gradtrace.watcher.parameters.unreached import LOOKS, fingerprint

if TYPE_CHECKING:
    from gradtrace.watcher.core.backward import BackwardCall

Tensor = torch.Tensor

#: optimizers followed before those that are gone are dropped
_ACCOUNTS = 256
#: names given in one event
_NAMES = 4
#: calls of one line whose graph is looked at for links, and calls after which a gradient counts as collected for ever
_STUDIED, _COLLECTED = 2, 5
_HOOKS = ("register_hook", "retain_grad", "register_post_accumulate_grad_hook")
_NO_OWNER: Group = frozenset()


@dataclass(slots=True)
class _UnsteppedCalls:
    """The calls of one line that give to an optimizer which has made no step so far."""

    last: CallRecord
    calls: int = 0
    #: others used one of them
    used: bool = False


@dataclass(slots=True)
class _OptimizerAccount:
    """One optimizer."""

    name: str
    steps: int = 0
    #: number of the last backward call at its last step, and where that was
    calls: int = 0
    stack: Stack = ()
    #: until its first step, by line
    waiting: dict[tuple[Stack, str], _UnsteppedCalls] = field(default_factory=dict)
    #: steps of all optimizers at its first gradient
    since: int = 0
    #: what was last reported of a step, the only call that had fed it, and how many steps like it came after it
    fed: OptimizerStep | None = None
    source: CallRecord | None = None
    times: int = 0

    def is_again(self, stack: Stack, calls: int, source: CallRecord) -> bool:
        """Whether a step is like the last one that was reported."""
        fed = self.fed
        if fed is None or self.source is None or fed.stack != stack or fed.calls != calls:
            return False
        return source.is_like(self.source)


class Accounts(Observer):
    # what the user's code did to a gradient is known before a step is accounted for
    comes_after = (Acts,)

    def __init__(self, session: Session, births: Births, origins: Origins, unowned: Unowned) -> None:
        super().__init__(session)
        self._births = births
        self._unowned = unowned
        self._origins = origins
        self._accounts: defaultdict[TensorId, _OptimizerAccount] = defaultdict(lambda: _OptimizerAccount(""))
        self._studied: defaultdict[tuple[Any, ...], list[GroupLinks]] = defaultdict(list)
        self._hooked = False
        #: the scales that GradScalers have made
        self._scales: set[TensorId] = set()

    def functions(self) -> Mapping[Any, Handler]:
        return {**{getattr(Tensor, name): self._hook for name in _HOOKS}, torch.full: self._full}

    def _full(self, call: TorchCall) -> None:
        if call.frame.f_code.co_filename == grad_scaler.__file__:
            self._scales.add(self.session.ids.of(call.out))

    def _hook(self, call: TorchCall) -> None:
        self._hooked = True

    # backward calls

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        own = call.record
        if own is None:
            return
        own.hooked, self._hooked = self._hooked or any(map(_is_hook, call.kinds)), False
        own.origin.evaluating = self._births.evaluating(call.leaves)
        own.origin.scaled = bool(self._scales) and any(map(self._is_scaled, walk.roots_of(outputs)))
        groups = {self.session.owned_by(leaf) for leaf in call.leaves}
        if len(groups) > 1 or (groups != {_NO_OWNER} and self.session.has_several_optimizers):
            own.links = self._study((call.stack, call.root, frozenset(groups)), call)

    def _is_scaled(self, root: Any) -> bool:
        """Whether it is the product of a loss with a scale."""
        if not type(root).__name__.startswith("MulBackward"):
            return False
        return any(self.session.ids.known(tensor) in self._scales for _, tensor in saved.tensors(root))

    def _study(self, site: tuple[Any, ...], call: BackwardCall) -> GroupLinks:
        known = self._studied[site]
        if len(known) < _STUDIED:
            owned_by, find = self.session.owned_by, self.session.trail.find
            known.append(GroupLinks.of(call.nodes, owned_by, find, self._cut_off))
        return known[-1]

    def _cut_off(self, node: Any) -> frozenset[Group]:
        """The owners of the leaves behind the constants that a node took in."""
        cuts = [cut for constant in self._origins.constants([node]) for cut in constant.cuts]
        leaves = {leaf for cut in cuts for leaf in self._origins.leaves_behind(cut)}
        return frozenset(self.session.owners_of(leaf) for leaf in leaves) - {_NO_OWNER}

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        own = call.record
        if own is None or error is not None:
            return
        for tensor, leaf in call.given:
            if not leaf.owners and not leaf.written and leaf.count in LOOKS and isinstance(tensor, torch.nn.Parameter):
                mark = fingerprint(tensor)
                leaf.written = bool(leaf.mark) and leaf.mark != mark
                leaf.mark = mark
        for key in {key for owners in own.portions for key in owners}:
            self._wait(self._account(key), own)

    def _wait(self, account: _OptimizerAccount, call: CallRecord) -> None:
        """Counts the calls that give to an optimizer that has made no step yet."""
        if account.steps:
            return
        if not account.waiting:
            account.since = self.session.steps
        waiting = account.waiting.setdefault((call.stack, call.origin.root), _UnsteppedCalls(call))
        for act in (Act.READ, Act.CHECKED):
            for portion in call.portions.values() if waiting.last.had(act) else ():
                portion.note(act)
        waiting.used |= bool(waiting.last.users())
        waiting.calls += 1
        waiting.last = call

    def _account(self, key: TensorId) -> _OptimizerAccount:
        if len(self._accounts) >= _ACCOUNTS and key not in self._accounts:
            self._close_dead()
        account = self._accounts[key]
        account.name = account.name or self.session.optimizer_name(key)
        return account

    def _close_dead(self) -> None:
        """Drops the optimizers that are gone and of which all is reported."""
        gone = [key for key, one in self._accounts.items() if one.steps and not self.session.is_alive(key)]
        for key in gone:
            self._report_times(self._accounts.pop(key))

    # steps

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        key = self.session.ids.of(optimizer)
        account = self._account(key)
        account.steps += 1
        account.waiting.clear()
        if self.session.book.running:
            return
        found = self.session.book.stepped
        new = found.new
        calls = self.session.backward_calls - account.calls
        single = next(iter(new.values())) if len(new) == 1 and not found.stale and not found.lost else None
        if single is not None and account.is_again(stack, calls, single):
            account.times += 1
        else:
            self._report_times(account)
            account.source = single
            account.fed = OptimizerStep(
                optimizer=account.name,
                key=key,
                stack=stack,
                given=tuple(self._given(call, key) for _, call in sorted(new.items())),
                lost=tuple(self._lost(one, key) for one in found.lost),
                stale=found.stale,
                again=account.stack if found.old and not new and not found.unknown else (),
                empty=not (found.old or new or found.unknown),
                frozen=not any(one.requires_grad for one in parameters(optimizer)),
                frozen_at=next((cut.stack for cut in self._origins.frozen_by(optimizer)), ()),
                calls=calls,
            )
            self.session.emit(account.fed)
        account.calls, account.stack = self.session.backward_calls, stack

    def _report_times(self, account: _OptimizerAccount) -> None:
        if account.fed is not None and account.times:
            self.session.emit(replace(account.fed, times=account.times))
            account.times = 0

    def crashed(self, error: BaseException, stack: Stack) -> None:
        """A GradScaler that finds no gradients fails, so that no step is seen."""
        if NO_CHECKS not in str(error):
            return
        text = first_line(error)
        for key in self._accounts:
            lost = tuple(self._lost(one, key) for one in self.session.book.lost_by(key))
            if lost:
                name = self.session.optimizer_name(key)
                self.session.emit(OptimizerStep(name, key, stack, (), lost, empty=True, error=text))

    def after_unseen_step(self, optimizer: Optimizer) -> None:
        key = self.session.ids.of(optimizer)
        account = self._account(key)
        account.steps += 1
        account.waiting.clear()
        account.calls = self.session.backward_calls
        self.session.book.forgive(key)

    # what is reported of a call

    def _lost(self, one: Lost, key: TensorId) -> Given:
        return self._given(one.share.call, key, one.stack, one.elsewhere)

    def _given(self, call: CallRecord, key: TensorId, cleared: Stack = (), elsewhere: bool = False) -> Given:
        mine = [owners for owners in call.portions if key in owners]
        others = [owners for owners in call.portions if owners and all(map(owners.isdisjoint, mine))]
        foreign = frozenset(chain.from_iterable(others))
        names, count = _names(call, mine)
        kin = call.links
        return Given(
            call=call.number,
            stack=call.stack,
            root=call.origin.root,
            leaves=names,
            count=count,
            foreign=foreign,
            taken=tuple((other, number) for other, number in call.users().items() if other in foreign),
            read=call.had(Act.READ),
            input_read=call.inputs.had(Act.READ),
            checked=call.had(Act.CHECKED),
            scaled=call.origin.scaled and not any(call.portions[owners].had(Act.CHECKED) for owners in mine),
            heard=call.hooked,
            replaced=call.had(Act.REPLACED),
            entry=kin.entry(mine) if kin is not None and others else (),
            feeds=kin is not None and kin.feeds(mine, others),
            weighs=kin is not None and kin.weighs(mine, others),
            outright=kin is not None and kin.outright(mine),
            goals=tuple(sorted(kin.goals(mine, others))) if kin is not None else (),
            apart=kin is not None and kin.apart(mine, others),
            kept_from=frozenset(chain.from_iterable(kin.kept_from(mine))) if kin is not None else frozenset(),
            cleared=cleared,
            elsewhere=elsewhere,
        )

    # the end

    def at_end(self) -> None:
        for account in self._accounts.values():
            self._report_times(account)
        self._report_rest()

    def so_far(self) -> None:
        for account in self._accounts.values():
            if account.fed is not None and account.times:
                self.session.emit(replace(account.fed, times=account.times))
        self._report_rest()

    def _report_rest(self) -> None:
        """The optimizers that have made no step, and the gradients that no optimizer uses."""
        stepped = {key for key, account in self._accounts.items() if account.steps}
        for key, account in self._accounts.items():
            if not account.steps and account.waiting:
                self._report_unstepped(key, account, stepped)
        self._report_collected()

    def _report_unstepped(self, key: TensorId, account: _OptimizerAccount, stepped: set[TensorId]) -> None:
        own = [one for one in account.waiting.values() if stepped.isdisjoint(_sharing(one.last, key))]
        given = [(self._given(one.last, key), one.calls, one.used or bool(one.last.users())) for one in own]
        given.sort(key=lambda one: (bool(one[0].foreign), -one[1]))
        if given:
            first, calls, used = given[0]
            others, clears = self.session.steps - account.since, self.session.book.clears[key]
            self.session.emit(Unstepped(account.name, first, calls, used, others, clears))

    def _report_collected(self) -> None:
        kept: defaultdict[int, dict[TensorId, Leaf]] = defaultdict(dict)
        for key, leaf in self.session.book.leaves():
            unowned = leaf.shares and not leaf.owners and leaf.shares[-1].portion is not leaf.shares[-1].call.inputs
            if unowned and not leaf.read and leaf.count >= _COLLECTED:
                kept[leaf.shares[-1].call.number][key] = leaf
        for leaves in kept.values():
            self._report_kept(leaves)

    def _report_kept(self, leaves: Mapping[TensorId, Leaf]) -> None:
        call = next(iter(leaves.values())).shares[-1].call
        users = [key for key in call.users() if key in self._accounts and self._accounts[key].steps]
        if not users or call.had(Act.READ):
            return
        account = self._accounts[users[0]]
        self.session.emit(
            Collected(
                stray(call),
                calls=max(leaf.count for leaf in leaves.values()),
                twin=call.links is not None and call.links.twin(_NO_OWNER),
                written=any(leaf.written for leaf in leaves.values()),
                optimizer=account.name,
                step=account.stack,
                compared=any(map(self._unowned.is_reference, leaves)),
            )
        )


def stray(call: CallRecord) -> Given:
    """What a call gave to parameters that no optimizer holds."""
    names, count = _names(call, [_NO_OWNER])
    entry = call.links.entry([_NO_OWNER]) if call.links is not None else ()
    return Given(call.number, call.stack, call.origin.root, names, count, entry=entry)


def _names(call: CallRecord, groups: Iterable[Group]) -> tuple[tuple[str, ...], int]:
    found = [call.portions[group] for group in groups if group in call.portions]
    names = tuple(name for portion in found for name in portion.names)
    return names[:_NAMES], sum(portion.count for portion in found)


def _sharing(call: CallRecord, key: TensorId) -> set[TensorId]:
    """The optimizers that hold leaves which this one holds too, of those that the call gave to."""
    return {other for owners in call.portions if key in owners for other in owners}


@cache
def _is_hook(kind: type) -> bool:
    """Whether nodes of this type run full backward hooks of modules."""
    return kind.__name__.startswith("BackwardHook")
