"""Sees how DistributedDataParallel modules are used: which backward calls reduce their gradients, and which do not."""

from __future__ import annotations

import functools
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from gradtrace.model.ranks import InputDigests, ReplicaUse, UnfinishedReduction
from gradtrace.model.site import Stack
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Observer, tensors_in
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.parameters.births import Births
from gradtrace.watcher.ranks.checksums import LOOKS, checksum, numbers

#: wrappers that are followed, calls whose inputs are summed in any case, and names that are told
_MOST, _FIRST_CALLS, _NAMES = 16, 32, 4
_UNFINISHED = "Expected to have finished reduction in the prior iteration"


@dataclass(slots=True)
class _Replica:
    """What is known of one wrapper, beside the wrapper itself."""

    kind: str
    made: Stack
    ids: frozenset[TensorId]
    bytes: int
    finds_unused: bool
    static: bool
    whole: bool
    called: Stack = ()
    #: forward calls that prepared a reduction, since the last backward call; and whether the last one was in no_sync
    armed: int = 0
    forwarded: bool = False
    silent: bool = False
    calls: int = 0
    reduced: int = 0
    unreduced: Counter[tuple[Stack, str]] = field(default_factory=Counter)
    unused: int = 0
    #: parameters that the last backward call gave no gradient
    missing: frozenset[TensorId] = frozenset()
    #: since the last step: reductions by place, and whether the last backward call was none
    window: Counter[Stack] = field(default_factory=Counter)
    is_local: bool = False
    steps: int = 0
    local_steps: int = 0
    step: Stack = ()
    windows: int = 0
    crowded: int = 0
    most: int = 0
    backward: Stack = ()
    #: forward calls in training, and sums of the inputs of some of them
    inputs: int = 0
    looked: list[tuple[int, torch.Tensor]] = field(default_factory=list)


class Replicas(Observer):
    """Wrappers are known weakly. Nothing happens in a script without one."""

    def __init__(self, session: Session, births: Births, origins: Origins) -> None:
        super().__init__(session)
        self._births = births
        self._origins = origins
        self._known: weakref.WeakKeyDictionary[Any, _Replica] = weakref.WeakKeyDictionary()
        self._all: list[_Replica] = []
        self._owned: dict[TensorId, list[_Replica]] = {}
        self._failed: _Replica | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        with ExitStack() as opened:
            opened.enter_context(patched(DistributedDataParallel, "__init__", self._making))
            opened.enter_context(patched(DistributedDataParallel, "forward", self._calling))
            yield

    @property
    def replicated(self) -> frozenset[TensorId]:
        """The parameters that some wrapper holds."""
        return frozenset(number for one in self._all for number in one.ids)

    def _making(self, init: Callable[..., None]) -> Callable[..., None]:
        @compiled.around
        @functools.wraps(init)
        def make(module: Any, *args: Any, **kwargs: Any) -> None:
            init(module, *args, **kwargs)
            if self.session.in_watched_thread() and len(self._all) < _MOST:
                self.session.guarded(self._made, module, sys._getframe(1))

        return make

    def _made(self, module: Any, frame: FrameType) -> None:
        held = [one for one in module.parameters() if one.requires_grad]
        size = dist.get_world_size(module.process_group)
        replica = _Replica(
            type(module.module).__name__,
            self.session.frames.stack(frame),
            frozenset(self.session.ids.of(one) for one in held),
            sum(one.numel() * one.element_size() for one in held),
            bool(module.find_unused_parameters),
            bool(module.static_graph),
            size == dist.get_world_size(),
        )
        self._known[module] = replica
        self._all.append(replica)
        self._owned.clear()

    def _calling(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        @compiled.around
        @functools.wraps(forward)
        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            replica = self._known.get(module)
            if replica is None or not torch.is_grad_enabled() or not self.session.in_watched_thread():
                return forward(module, *args, **kwargs)
            self.session.guarded(self._called, replica, module, args, kwargs, sys._getframe(1))
            self._failed = replica
            result = forward(module, *args, **kwargs)
            self._failed = None
            return result

        return call

    def _called(self, replica: _Replica, module: Any, args: Any, kwargs: Any, frame: FrameType) -> None:
        replica.called = self.session.frames.stack(frame)
        replica.silent = not module.require_backward_grad_sync
        replica.armed += not replica.silent
        replica.forwarded = True
        if module.training:
            replica.inputs += 1
            if replica.inputs <= _FIRST_CALLS or replica.inputs in LOOKS:
                given = tensors_in([*args, *kwargs.values()])
                # what another module has computed is no data, and may be gathered from all ranks
                data = [one for one in given if not one.requires_grad and not self._origins.of(one)]
                sums = [checksum(one) for one in data]
                if sums:
                    device = sums[0].device
                    replica.looked.append((replica.inputs, torch.stack([one.to(device) for one in sums]).sum()))

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if not self._all or error is not None or not call.accumulates:
            return
        reached = {self.session.ids.known(leaf) for leaf in call.leaves}
        for replica in self._all:
            if not reached.isdisjoint(replica.ids):
                self._ran_through(replica, call, reached)

    def _ran_through(self, replica: _Replica, call: BackwardCall, reached: set[TensorId]) -> None:
        replica.calls += 1
        replica.backward = call.stack
        replica.is_local = not replica.armed
        if call.whole:
            replica.missing = replica.ids - reached
            replica.unused += bool(replica.missing)
        if replica.armed:
            replica.reduced += 1
            replica.window[call.stack] += 1
        else:
            replica.unreduced[call.stack, "no_sync" if replica.silent and replica.forwarded else "bypassed"] += 1
        replica.armed, replica.forwarded = 0, False

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        if not self._all:
            return
        key = self.session.ids.of(optimizer)
        if key not in self._owned:
            held = self.session.ids.of_all(parameters(optimizer))
            self._owned[key] = [one for one in self._all if not held.isdisjoint(one.ids)]
        for replica in self._owned[key]:
            self._stepped(replica, stack)

    def _stepped(self, replica: _Replica, stack: Stack) -> None:
        if not replica.calls:
            return
        replica.steps += 1
        replica.step = stack
        replica.local_steps += replica.is_local
        replica.windows += 1
        times = max(replica.window.values(), default=0)
        replica.crowded += times > 1
        replica.most = max(replica.most, times)
        replica.window.clear()
        replica.is_local = False

    def crashed(self, error: BaseException, stack: Stack) -> None:
        if self._failed is None or not str(error).startswith(_UNFINISHED):
            return
        replica = self._failed
        names, kinds, places = [], [], []
        held = [one for module, known in self._known.items() if known is replica for one in module.named_parameters()]
        for name, parameter in held:
            if self.session.ids.known(parameter) in replica.missing:
                birth = self._births.of(parameter)
                names.append(name.removeprefix("module."))
                kinds.append(birth.kind if birth is not None else "")
                places.append(birth.stack if birth is not None else ())
        first = str(error).splitlines()[0]
        self.session.emit(
            UnfinishedReduction(
                f"{type(error).__name__}: {first}",
                replica.called,
                replica.made,
                replica.backward,
                tuple(names[:_NAMES]),
                len(names),
                tuple(dict.fromkeys(place for place in places if place))[:_NAMES],
                tuple(site.path for site in replica.called),
            )
        )

    def at_end(self) -> None:
        for replica in self._all:
            self.session.emit(_use(replica))
            if replica.looked:
                self.session.emit(
                    InputDigests(
                        replica.called,
                        replica.made,
                        tuple(numbers([value for _, value in replica.looked])),
                        tuple(number for number, _ in replica.looked),
                        replica.whole,
                    )
                )


def _use(replica: _Replica) -> ReplicaUse:
    (unreduced, why), _ = max(replica.unreduced.items(), key=lambda one: one[1], default=(((), ""), 0))
    return ReplicaUse(
        kind=replica.kind,
        made=replica.made,
        called=replica.called,
        calls=replica.calls,
        reduced=replica.reduced,
        unreduced=unreduced,
        why=why,
        steps=replica.steps,
        local_steps=replica.local_steps,
        step=replica.step,
        finds_unused=replica.finds_unused,
        unused=replica.unused,
        static=replica.static,
        windows=replica.windows,
        crowded=replica.crowded,
        most=replica.most,
        backward=replica.backward,
        parameters=len(replica.ids),
        bytes=replica.bytes,
        whole=replica.whole,
    )
