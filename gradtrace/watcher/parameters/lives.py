"""Follows each parameter through the run: its gradients, the steps that use them, and how far these move it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from gradtrace.model.lives import Arrival, Life, State, StepInterval, Stretch
from gradtrace.model.site import Stack
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import local_part, placement
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph import sample
from gradtrace.watcher.parameters.births import Births, CreatedOptimizer

if TYPE_CHECKING:
    from gradtrace.watcher.core.backward import BackwardCall

#: stretches of equal iterations remembered for one parameter: the first ones, and as many of the last
_STRETCHES = 50
#: parameters followed
_PARAMETERS = 20_000
#: plain tensors that require grad and are in no optimizer: inputs may be new with each batch
_PLAIN = 100
#: searches of the running frames for names: new parameters may come at each iteration
_SEARCHES = 8


class ThinnedSeries:
    """Numbers in order, thinned out so that at most `MOST` of them remain, evenly spread."""

    MOST = 64

    def __init__(self) -> None:
        self.values: list[float] = []
        self._every = 1
        self._seen = 0

    def add(self, value: float) -> None:
        if self._seen % self._every == 0:
            self.values.append(value)
        self._seen += 1
        if len(self.values) > self.MOST:
            self.values = self.values[::2]
            self._every *= 2


@dataclass(slots=True)
class _Record:
    """What is known of one parameter so far; no tensor."""

    name: str
    shape: tuple[int, ...]
    requires_grad: bool
    #: the name is the user's
    named: bool = False
    created: Stack = ()
    #: the optimizer that holds it
    optimizer: CreatedOptimizer | None = None
    #: how it lies on several ranks
    placement: str = ""
    #: all of it lies on other ranks
    elsewhere: bool = False
    #: some of its values as they were at the last backward call, while no optimizer holds it
    sample: torch.Tensor | None = None
    by_hand: bool = False
    #: a tensor that requires grad, no Parameter
    plain: bool = False
    #: of the iteration under way
    arrivals: list[Arrival] = field(default_factory=list)
    steps: int = 0
    fed: bool = False
    moved: bool = False
    largest: float = 0.0
    finite: bool = True
    stretches: list[Stretch] = field(default_factory=list)
    gradients: ThinnedSeries = field(default_factory=ThinnedSeries)
    updates: ThinnedSeries = field(default_factory=ThinnedSeries)

    def arrive(self, arrival: Arrival) -> None:
        self._feed(arrival.norm)
        # a run that accumulates for ever must not grow
        if len(self.arrivals) < _STRETCHES:
            self.arrivals.append(arrival)

    def _feed(self, norm: float) -> None:
        self.fed = True
        self.finite = self.finite and _is_finite(norm)
        self.largest = max(self.largest, norm)

    def close(self, step: Stack, optimizer: str, gradient: float | None, update: float | None) -> None:
        """A step ends the iteration."""
        self.steps += 1
        if gradient is not None:
            self._feed(gradient)  # the script may have put it there itself
            self.gradients.add(gradient)
        if update is not None:
            self.updates.add(update)
            self.moved = self.moved or update > 0
        _append(self.stretches, StepInterval(self.steps, tuple(self.arrivals), step, optimizer, gradient, update))
        self.arrivals = []

    def stretches_so_far(self) -> tuple[Stretch, ...]:
        """With what arrived after the last step, which belongs to an iteration without one."""
        found = list(self.stretches)
        if self.arrivals:
            _append(found, StepInterval(self.steps + 1, tuple(self.arrivals)))
        return tuple(found)


def _append(stretches: list[Stretch], iteration: StepInterval) -> None:
    before = stretches[-1] if stretches else None
    if before is not None and before.last.shape == iteration.shape:
        stretches[-1] = Stretch(before.first, iteration, before.times + 1)
        return
    stretches.append(Stretch(iteration, iteration, 1))
    if len(stretches) > 2 * _STRETCHES:
        del stretches[_STRETCHES]


class Lives(Observer):
    """The records of all parameters, by the identity of the tensor."""

    serves_rules = False
    in_every_check = False

    def __init__(self, session: Session, births: Births) -> None:
        super().__init__(session)
        self._births = births
        self._records: dict[TensorId, _Record] = {}
        #: norms of the gradients before the backward call that runs
        self._before: dict[TensorId, float] = {}
        #: values before the step that runs, by optimizer
        self._values: dict[TensorId, list[torch.Tensor]] = {}
        self._searches = _SEARCHES
        #: plain tensors among them
        self._plain = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        handle = register_optimizer_step_pre_hook(self._before_step)
        try:
            yield
        finally:
            handle.remove()
            self._values.clear()

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if call.accumulates:
            leaves = [leaf for leaf in call.leaves if leaf.grad is not None]
            norms = norms_of([leaf.grad for leaf in leaves])
            self._before = {self.session.ids.of(leaf): norm for leaf, norm in zip(leaves, norms, strict=True)}
            if self._searches and any(self.session.ids.known(leaf) not in self._records for leaf in call.leaves):
                self._searches -= 1
                self._name(names.everything(frame, self.session.frames))

    def _name(self, named: Iterable[tuple[str, Any]]) -> None:
        """Meets the parameters that the running code can name, by their shortest names."""
        for name, tensor in named:
            if isinstance(tensor, torch.nn.Parameter):
                record = self._record(tensor)
                if record is not None:
                    record.requires_grad = tensor.requires_grad
                    if not record.named:
                        record.name, record.named = name, True

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if not call.accumulates or error is not None:
            return
        leaves = [leaf for leaf in call.leaves if leaf.grad is not None]
        for leaf, norm in zip(leaves, norms_of([leaf.grad for leaf in leaves]), strict=True):
            record = self._record(leaf)
            if record is not None:
                self._look_for_update(leaf, record)
                earlier = self._before.get(self.session.ids.of(leaf), 0.0) > 0
                record.arrive(Arrival(call.stack, call.root, earlier, norm))

    def _look_for_update(self, leaf: torch.Tensor, record: _Record) -> None:
        """Whether the script itself has changed a leaf that no optimizer holds since the last backward call."""
        if record.optimizer is not None:
            record.sample = None
            return
        values = sample.take(leaf)
        record.by_hand = record.by_hand or (record.sample is not None and sample.differ(values, record.sample))
        record.sample = values

    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self.session.in_watched_thread():
            self.session.guarded(self._keep_values, optimizer)

    def _keep_values(self, optimizer: Optimizer) -> None:
        self._values[self.session.ids.of(optimizer)] = [one.data.clone() for one in parameters(optimizer)]

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        held = list(parameters(optimizer))
        before = self._values.pop(self.session.ids.of(optimizer), [])
        if len(before) != len(held):
            return
        changes = norms_of([one.data - was for one, was in zip(held, before, strict=True)])
        sizes = norms_of(before)
        used = [one for one in held if one.grad is not None]
        norms = dict(zip(map(self.session.ids.of, used), norms_of([one.grad for one in used]), strict=True))
        kind = type(optimizer).__name__
        for one, change, size in zip(held, changes, sizes, strict=True):
            record = self._record(one)
            if record is not None:
                gradient = norms.get(self.session.ids.of(one))
                record.close(stack, kind, gradient, change / size if size else change)

    def _record(self, leaf: torch.Tensor) -> _Record | None:
        key = self.session.ids.of(leaf)
        known = self._records.get(key)
        if known is not None:
            known.optimizer = known.optimizer or self._holder(leaf)
            return known
        if len(self._records) >= _PARAMETERS:
            return None
        plain = not isinstance(leaf, torch.nn.Parameter) and not self.session.owned(leaf)
        met = self.session.book.known(leaf)
        named = met is not None and met.named
        if plain and (not named or self._plain >= _PLAIN):
            return None
        self._plain += plain
        birth = self._births.of(leaf)
        name = birth.name if birth is not None else f"a leaf of shape {list(leaf.shape)}"
        if met is not None and named and (plain or birth is None):
            name = met.name
        made = birth.stack if birth is not None else ()
        known = self._records[key] = _Record(
            name,
            tuple(leaf.shape),
            leaf.requires_grad,
            created=made,
            optimizer=self._holder(leaf),
            plain=plain,
            placement=placement(leaf),
            elsewhere=bool(leaf.numel()) and not local_part(leaf).numel(),
        )
        return known

    def _holder(self, leaf: torch.Tensor) -> CreatedOptimizer | None:
        owners = sorted(self.session.owned_by(leaf))
        if not owners:
            return None
        # one that is older than the watch is known by its class alone
        older = CreatedOptimizer(self.session.optimizer_name(owners[0]), (), 0)
        return self._births.optimizer(owners[0]) or older

    def at_end(self) -> None:
        self._name(names.everything(None, self.session.frames))

    @property
    def lives(self) -> tuple[Life, ...]:
        """What became of each parameter so far, as far as this rank holds some of it."""
        records = [record for record in self._records.values() if not record.elsewhere]
        # a sharded parameter is put together for each forward, under the same name
        sharded = {
            record.name for record in self._records.values() if record.placement and record.optimizer is not None
        }
        return tuple(
            _life(record)
            for record in records
            if record.placement or record.optimizer is not None or record.name not in sharded
        )

    def names_of(self, tensors: Iterable[torch.Tensor]) -> tuple[str, ...]:
        """What the lives of these parameters are called; those that have none are left out."""
        records = (self._records.get(self.session.ids.known(tensor)) for tensor in tensors)
        return tuple(record.name for record in records if record is not None)

    def meet(self, frame: FrameType | None) -> None:
        """Learns the names that the code running in `frame` has for parameters."""
        self._name(names.everything(frame, self.session.frames))


def _life(record: _Record) -> Life:
    made = record.optimizer
    return Life(
        record.name,
        record.shape,
        _state(record),
        record.created,
        made.kind if made is not None else "",
        made.stack if made is not None else (),
        record.steps,
        record.stretches_so_far(),
        tuple(record.gradients.values),
        tuple(record.updates.values),
        plain=record.plain,
        placement=record.placement,
    )


def _state(record: _Record) -> State:
    if not record.finite:
        return State.NONFINITE
    if not record.fed:
        return State.UNREACHED if record.requires_grad else State.FROZEN
    if record.optimizer is None:
        return State.BY_HAND if record.by_hand else State.UNOWNED
    if record.largest == 0:
        return State.ZERO
    return State.TRAINS if record.moved else State.UNMOVED


def norms_of(tensors: Sequence[Any]) -> list[float]:
    """The norm of each tensor, read in one copy from each device."""
    dense = [one.coalesce().values() if one.is_sparse else one for one in tensors]
    norms = [
        torch.linalg.vector_norm(local_part(one).detach().float()) if one.numel() else torch.zeros(()) for one in dense
    ]
    found = [0.0] * len(norms)
    by_device: dict[torch.device, list[int]] = {}
    for at, norm in enumerate(norms):
        by_device.setdefault(norm.device, []).append(at)
    for places in by_device.values():
        values = torch.stack([norms[at] for at in places]).tolist()
        for at, value in zip(places, values, strict=True):
            found[at] = value
    return found


def _is_finite(value: float) -> bool:
    return value - value == 0
