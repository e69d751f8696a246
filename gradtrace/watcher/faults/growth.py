"""Looks, rarely, at what the user's variables hold of old graphs, and reports what only ever grows.

No fact shows that a graph is kept by mistake; but a list of losses, a running sum or a moving average holds more nodes at
each look. Looks come at the first optimizer steps or updates by hand and then at ever longer distances, and, where there are
none, after every few hundred nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from gradtrace.model.events import Growth, HooksGrew
from gradtrace.model.site import Stack
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import MODULE_CALL, DisableTorchFunction, node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import query, walk
from gradtrace.watcher.pictures.snapshot import saved_tensors

#: how deep objects are opened, nodes counted for one holder
_DEPTH, _NODES = 6, 2_000
#: looks in a row at which a holder must have grown: at steps, and between them
_STEPS, _LOOKS = 6, 8
#: and between forward passes that no backward call follows
_PASSES = 4
#: iterations that are as long as the one in which something grew, and how long that is
_REPEATS, _AS_LONG = 2, 0.8
#: lines of steps that are counted apart
_LINES = 64
#: the first so many steps of a line are all looked at
_EARLY = 12
#: looks in a row beyond these, where something begins to grow later
_DENSE = 48
#: nodes made between two looks where no step is made
_NODES_APART = 50
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@dataclass(slots=True)
class _Look:
    """What one holder held at one look. Holds nodes: not to be kept."""

    tensors: int = 0
    newest: int = -1
    #: the nodes below, and the old ones among them
    seen: set[Any] = field(default_factory=set)
    nodes: set[Any] = field(default_factory=set)

    def add(self, root: Any, start: int) -> None:
        self.tensors += 1
        self.newest = max(self.newest, node_number(root))
        waiting = [root]
        while waiting and len(self.seen) < walk.LIMIT and len(self.nodes) < _NODES:
            node = waiting.pop()
            if node in self.seen or type(node) is walk.ACCUMULATE:
                continue
            self.seen.add(node)
            if node_number(node) < start:
                self.nodes.add(node)
            waiting += query.inputs(node)


@dataclass(slots=True)
class _GrowthStretch:
    """The nodes made between the two backward calls around a growth, and how many later stretches were as long."""

    length: int = 0
    repeats: int = 0


class History:
    """How a holder grew, look by look: numbers only."""

    __slots__ = ("nodes", "rises")

    def __init__(self) -> None:
        self.nodes = 0
        self.rises = 0

    def add(self, nodes: int, pausing: bool = False) -> None:
        """One more look; `pausing` if what does not change between two looks may still be growing."""
        if nodes != self.nodes or not pausing:
            self.rises = self.rises + 1 if nodes > self.nodes else 0
        self.nodes = nodes


@dataclass(slots=True)
class _StepLooks:
    """When the steps of one line are looked at: the first ones, ever rarer ones, and all while something grows."""

    steps: int = 0
    next: int = 1
    dense: int = _DENSE

    def is_due(self) -> bool:
        self.steps += 1
        return self.steps >= self.next

    def looked(self, rising: bool) -> None:
        # what begins to grow late is then looked at at each step, for a while
        follow = rising and self.dense > 0
        self.dense -= follow and self.steps >= _EARLY
        self.next = self.steps + 1 if self.steps < _EARLY or follow else self.steps * 5 // 4


class GrowthWatcher(Observer):
    """Holders are known by their names with the element numbers left out, tensors by nothing: none is kept."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: by holder and line of the step: of several optimizers each is compared with itself
        self._at_steps: dict[tuple[str, Stack], History] = {}
        self._reported: set[str] = set()
        self._between: dict[str, History] = {}
        self._pending: dict[str, Growth] = {}
        #: of each pending one: the numbers of the nodes held, and when it grew
        self._numbers: dict[str, set[int]] = {}
        self._phases: dict[str, int] = {}
        #: those that are forgotten if training goes on
        self._doubtful: set[str] = set()
        #: where something grew between two backward calls: whether as much is done between any two; then it is one
        #: iteration that is long, and no iteration is longer than the one before
        self._stretches: dict[str, _GrowthStretch] = {}
        self._local: set[str] = set()
        self._hooks: dict[tuple[str, str, Stack], History] = {}
        self._hooks_rise = False
        self._looks: dict[Stack, _StepLooks] = {}
        self._next_node = session.beyond(_NODES_APART)
        session.wake(self._next_node)
        self._last_step_number = 0
        self._manual_updates = 0

    def woken(self) -> Handler:
        return self._count

    def _count(self, call: TorchCall) -> None:
        if call.after >= self._next_node:
            self._next_node = call.after + max(_NODES_APART, (call.after - self.session.phase) // 4)
            self._look_between(call)
        self.session.wake(self._next_node)

    def _look_between(self, call: TorchCall) -> None:
        frame = _outside_modules(call.frame)
        with DisableTorchFunction():
            self._compare(self._between, _LOOKS, frame, call.before)

    def look_between_passes(
        self, histories: dict[str, History], frame: FrameType, number: int, evaluating: bool
    ) -> None:
        """A forward pass begins, with node `number`, and no backward call has come since the last one of this line."""
        for holder in self._compare(histories, _PASSES, frame, number):
            # what is gathered in training may be detached later, as the old log-probabilities of PPO are
            if not evaluating and "[]" in holder:
                self._doubtful.add(holder)

    def grew_in(self, phase: int) -> bool:
        """Whether something grew between the backward call that ended at node `phase` and the next one."""
        return phase in (self._phases[holder] for holder in self._pending)

    def _compare(self, histories: dict[str, History], enough: int, frame: FrameType, start: int) -> list[str]:
        """The holders that have grown often enough."""
        grown = []
        for holder, look in self._look(frame, start).items():
            history = histories.setdefault(holder, History())
            history.add(len(look.nodes))
            if history.rises >= enough and holder not in self._local:
                self._stretches.setdefault(holder, _GrowthStretch())
                self._wait(holder, look, self._growth(holder, look, frame, 0))
                grown.append(holder)
        return grown

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Any) -> None:
        """What is backpropagated was no leak: it waited for this call."""
        if self.session.manual_updates > self._manual_updates:
            self._manual_updates = self.session.manual_updates
            self._look_at_step(call.stack, frame)
        self._between.clear()
        length = call.start - self.session.phase
        for holder, found in list(self._stretches.items()):
            if found.length == 0:
                found.length = length
            elif length >= _AS_LONG * found.length:
                found.repeats += 1
            if found.repeats >= _REPEATS:
                self._forget(holder)
                self._local.add(holder)

    def _forget(self, holder: str) -> None:
        self._pending.pop(holder, None)
        self._stretches.pop(holder, None)

    def _begin_again(self, holder: str) -> None:
        self._reported.discard(holder)
        self._at_steps = {key: history for key, history in self._at_steps.items() if key[0] != holder}

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        # a forward pass as long as those before it is nothing new
        self._next_node = self.session.beyond(_NODES_APART)
        self.session.wake(self._next_node)
        if self._pending and not call.whole:
            self._pending.clear()
            self._stretches.clear()  # how far down it ran is not known
        elif self._pending:
            run_through = call.numbers()
            for holder in list(self._pending):
                if holder in self._doubtful or not self._numbers[holder].isdisjoint(run_through):
                    self._forget(holder)
                    self._begin_again(holder)

    def after_step(self, optimizer: torch.optim.Optimizer, stack: Stack) -> None:
        self._look_at_step(stack, self.session.running_frame())

    def _look_at_step(self, stack: Stack, frame: FrameType) -> None:
        """A step of an optimizer has ended, or a backward call follows updates that were made by hand."""
        start, self._last_step_number = self._last_step_number, self.session.sequence()
        looks = self._looks.get(stack)
        if looks is None:
            looks = self._looks[stack if len(self._looks) < _LINES else ()] = _StepLooks()
        if not looks.is_due():
            return
        rising = False
        for holder, look in self._look(frame, start, stack).items():
            rising |= self._at_step(holder, look, frame, stack)
        looks.looked(rising or self._hooks_rise)

    def _at_step(self, holder: str, look: _Look, frame: FrameType, step: Stack) -> bool:
        """Whether it holds more than at the last look at this step, and is not known to grow yet."""
        if holder in self._reported:
            return False
        history = self._at_steps.setdefault((holder, step), History())
        before = history.nodes
        history.add(len(look.nodes))
        if history.rises >= _STEPS:
            self._reported.add(holder)
            growth = self._growth(holder, look, frame, len(look.nodes) - before)
            if any(walk.mark_of(node) for node in look.nodes):
                self.session.emit(growth)
            else:  # none was run through so far: it may wait for the end of an episode
                self._wait(holder, look, growth)
        return 0 < history.rises < _STEPS

    def _wait(self, holder: str, look: _Look, growth: Growth) -> None:
        self._pending[holder] = growth
        self._numbers[holder] = {node_number(node) for node in look.seen}
        self._phases[holder] = self.session.phase
        self._doubtful.discard(holder)

    def _look(self, frame: FrameType, start: int, step: Stack = ()) -> dict[str, _Look]:
        """What each holder has of nodes made before number `start`; at a step the hooks of modules as well."""
        found: dict[str, _Look] = {}
        seen: set[int] = set()
        self._hooks_rise = False
        for name, value in names.everything(frame, self.session.frames, _DEPTH):
            if isinstance(value, torch.nn.Module):
                self._hooks_of(name, value, frame, step)
            elif id(value) not in seen:
                seen.add(id(value))
                node = _node(value)
                if node is not None:
                    found.setdefault(re.sub(r"\[\d+\]", "[]", name), _Look()).add(node, start)
        return _carriers({holder: look for holder, look in found.items() if look.nodes})

    def _hooks_of(self, name: str, module: torch.nn.Module, frame: FrameType, step: Stack) -> None:
        for kind in _HOOKS:
            count = len(vars(module).get(kind) or ())
            if not count or f"{name}.{kind}" in self._reported:
                continue
            history = self._hooks.setdefault((name, kind, step), History())
            history.add(count, pausing=True)
            self._hooks_rise |= 0 < history.rises < _STEPS
            if history.rises >= _STEPS:
                self._reported.add(f"{name}.{kind}")
                registering = kind.strip("_").removesuffix("s").replace("backward", "full_backward")
                self.session.emit(HooksGrew(name, f"register_{registering}", count, (), self._files(frame)))

    def _growth(self, holder: str, look: _Look, frame: FrameType, per_step: int) -> Growth:
        held = sum(saved.bytes for node in look.nodes for saved in saved_tensors(node)[0])
        made = self.session.trail.find(look.newest)
        return Growth(holder, self._files(frame), look.tensors, len(look.nodes), held, per_step, made)

    def _files(self, frame: FrameType) -> tuple[str, ...]:
        return tuple(dict.fromkeys(site.path for site in self.session.frames.stack(frame)))

    def crashed(self, error: BaseException, stack: Stack) -> None:
        """What the calls of a recursion hold, they drop when they return."""
        if isinstance(error, RecursionError):
            self._pending.clear()

    def at_end(self) -> None:
        for growth in self._pending.values():
            self.session.emit(growth)

    so_far = at_end


def _carriers(looks: dict[str, _Look]) -> dict[str, _Look]:
    """Of holders of the same old nodes the one that was computed first: the others were computed from it."""
    carriers: list[tuple[str, _Look]] = []
    for holder, look in sorted(looks.items(), key=lambda one: one[1].newest):
        if all(look.nodes != known.nodes for _, known in carriers):
            carriers.append((holder, look))
    return dict(carriers)


def _node(tensor: torch.Tensor) -> Any:
    try:
        return tensor.grad_fn if tensor.requires_grad else None
    except RuntimeError:  # a view made under no_grad, whose base was written to afterwards
        return None


def _outside_modules(frame: FrameType) -> FrameType:
    """The frame that called the outermost module: what a forward holds in its own variables, it drops when it
    returns."""
    at: FrameType | None = frame
    while at is not None:
        if at.f_code is MODULE_CALL and at.f_back is not None:
            frame = at.f_back
        at = at.f_back
    return frame
