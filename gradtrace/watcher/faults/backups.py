"""Sees values of parameters that are kept without a copy and put back after the parameters were written to.

`model.state_dict()`, `p.data` and `p.detach()` share the parameter's memory: to put such a value back is to copy memory onto
itself. Whether something wrote in between, the version counter says, and where that is silent (a fused step, a write through
`.data`) what was seen of such writes. Once all values put back at a line are known, it is reported or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import Module, Parameter
from torch.optim import Optimizer

from gradtrace.model.events import SharedBackup
from gradtrace.model.site import Stack
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.faults.writes import writing_functions
from gradtrace.watcher.graph import saved

if TYPE_CHECKING:
    from gradtrace.watcher.core.backward import BackwardCall

Tensor = torch.Tensor

_STATE, _DATA, _DETACH = "state_dict()", ".data", "detach()"
_STATE_DICT = Module.state_dict.__code__
#: parameters followed, and values taken of them that live at a time
_MANY, _TAKEN = 20_000, 100_000
_WHOLE = slice(None)


@dataclass(slots=True)
class _SharedParameter:
    """A parameter of which values were taken."""

    #: where its own values lie
    memory: int = 0
    #: writes through `.data`, which its version counter does not count
    hidden: int = 0
    #: copies onto itself, which the counter counts though they change nothing
    idle: int = 0


@dataclass(slots=True)
class _Taken:
    """A tensor that shares the memory of a parameter."""

    op: str
    stack: Stack
    #: it shares the parameter's version counter too
    counted: bool
    leaf: TensorId
    #: the parameter's writes by then, by its counter without the idle ones, and those through `.data`
    version: int
    hidden: int
    #: steps of all optimizers by then
    steps: int
    #: the script has written to this tensor: it is a handle, and no backup
    handle: bool = False


@dataclass(slots=True)
class _Restoring:
    """What one line puts back, in a row."""

    stack: Stack
    #: some of it comes from elsewhere, or was written through a handle
    real: bool = False
    #: by what was taken, and where: how many parameters, and the step that wrote to one of them
    found: dict[tuple[str, Stack], tuple[int, Stack]] = field(default_factory=dict)


class Backups(Observer):
    """Tensors are known by number, and what is known of them goes when they die."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._taken = session.ids.table(dict[TensorId, _Taken]())
        self._leaves = session.ids.table(dict[TensorId, _SharedParameter]())
        #: the last step of each optimizer: how many there were by then, where, and whether version counters miss it
        self._steps = session.ids.table(dict[TensorId, tuple[int, Stack, bool]]())
        self._restoring: _Restoring | None = None

    def functions(self) -> Mapping[Any, Handler]:
        data: Any = Tensor.data
        return {
            **dict.fromkeys(writing_functions(), self._write),
            Tensor.copy_: self._copy,
            Tensor.__setitem__: self._put,
            Tensor.detach: self._detach,
            data.__get__: self._read_data,
            data.__set__: self._set_data,
        }

    # taking

    def _read_data(self, call: TorchCall) -> None:
        self._take(call, _DATA)

    def _detach(self, call: TorchCall) -> None:
        self._take(call, _DETACH)

    def _take(self, call: TorchCall, op: str) -> None:
        tensor = call.args[0]
        if not tensor.is_leaf:
            return
        first = self._taken.get(self.session.ids.known(tensor))
        if first is None and not (type(tensor) is Parameter or self.session.owned(tensor)):
            return
        asking, by_state = _asking(call.frame)
        if not self.session.frames.is_user(asking.f_code.co_filename) or len(self._taken) >= _TAKEN:
            return
        key = first.leaf if first is not None else self.session.ids.of(tensor)
        memory, leaf = saved.memory(call.out), self._leaf(key)
        # the writes so far are not known of what `.data` gave
        if not memory or leaf is None or (first is not None and not first.counted):
            return
        if first is None:
            leaf.memory = memory
        what, stack = _STATE if by_state else op, self.session.frames.stack(asking)
        if first is not None and stack and first.stack and stack[0].place == first.stack[0].place:
            what, stack = first.op, first.stack  # `v.detach()` of each `v` in `model.state_dict()`
        version, steps = tensor._version - leaf.idle, self.session.steps
        self._taken[self.session.ids.of(call.out)] = _Taken(what, stack, op != _DATA, key, version, leaf.hidden, steps)

    def _leaf(self, key: TensorId) -> _SharedParameter | None:
        known = self._leaves.get(key)
        if known is None and len(self._leaves) < _MANY:
            known = self._leaves[key] = _SharedParameter()
        return known

    # writing

    def _write(self, call: TorchCall) -> None:
        """A write through a handle; one to a parameter itself is counted by torch."""
        if not self._taken or not call.args:
            return
        written = call.args[0]
        for one in (written, written._base) if isinstance(written, Tensor) else ():
            taken = self._taken.get(self.session.ids.known(one))
            if taken is not None:
                taken.handle = True
                leaf = self._leaves.get(taken.leaf)
                if leaf is not None and not taken.counted:
                    leaf.hidden += 1

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        self._close()
        if self._taken:
            fused = any(group.get("fused") for group in optimizer.param_groups)
            self._steps[self.session.ids.of(optimizer)] = self.session.steps, stack, fused

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        self._close()

    # putting back

    def _copy(self, call: TorchCall) -> None:
        if not self._taken:
            return
        source = call.args[1] if len(call.args) > 1 else call.kwargs.get("src")
        if isinstance(source, Tensor):
            self._put_back(call, call.args[0], source)

    def _put(self, call: TorchCall) -> None:
        """`p.data[:] = values`, for one."""
        if not self._taken:
            return
        target, index, source = call.args
        if isinstance(source, Tensor) and (index is Ellipsis or (isinstance(index, slice) and index == _WHOLE)):
            self._put_back(call, target, source)
        else:
            self._write(call)

    def _put_back(self, call: TorchCall, target: Tensor, source: Tensor) -> None:
        into = self._taken.get(self.session.ids.known(target))
        key = into.leaf if into is not None else self.session.ids.known(target)
        leaf = self._leaves.get(key)
        if leaf is None:
            return
        if not saved.is_same_memory(target, source):
            self._at(call).real = True
            self._write(call)
            return
        counted = into is None or into.counted
        version = into.version if into is not None else target._version - leaf.idle - 1
        leaf.idle += counted
        self._restore(call, source, key, version)

    def _set_data(self, call: TorchCall) -> None:
        tensor, given = call.args[:2]
        key = self.session.ids.known(tensor)
        leaf = self._leaves.get(key)
        if leaf is None:
            return
        before, leaf.memory = leaf.memory, saved.memory(tensor)
        if leaf.memory and leaf.memory == before:
            self._restore(call, given, key, tensor._version - leaf.idle)
        else:
            self._at(call).real = True

    def _restore(self, call: TorchCall, source: Tensor, key: TensorId, version: int) -> None:
        """The parameter of this number is set to its own values."""
        taken, leaf = self._taken.get(self.session.ids.known(source)), self._leaves[key]
        if taken is None or taken.leaf != key:
            return
        if taken.handle:
            self._at(call).real = True
            return
        step, unseen = self._step_since(key, taken.steps)
        if version > taken.version or leaf.hidden > taken.hidden or unseen:
            place = taken.op, taken.stack
            found = self._at(call).found
            found[place] = found.get(place, (0, ()))[0] + 1, step

    def _step_since(self, key: TensorId, steps: int) -> tuple[Stack, bool]:
        """The last step that an optimizer of the parameter made since there were so many, and whether its version counter
        misses it."""
        made = [self._steps[owner] for owner in self.session.owners_of(key) if owner in self._steps]
        count, stack, fused = max(made, default=(0, (), False))
        return (stack, fused) if count > steps else ((), False)

    def _at(self, call: TorchCall) -> _Restoring:
        stack = self.session.frames.stack(call.frame)
        if self._restoring is None or self._restoring.stack != stack:
            self._close()
            self._restoring = _Restoring(stack)
        return self._restoring

    def _close(self) -> None:
        if self._restoring is not None:
            self.so_far()
            self._restoring = None

    def so_far(self) -> None:
        done = self._restoring
        if done is not None and not done.real:
            for (op, stack), (count, step) in done.found.items():
                self.session.emit(SharedBackup(op, stack, done.stack, count, step))

    def at_end(self) -> None:
        self._close()


def _asking(frame: FrameType) -> tuple[FrameType, bool]:
    """The frame that asks for the values, and whether it does so by `state_dict()`."""
    at: FrameType | None = frame
    by_state = False
    while at is not None and at.f_code.co_filename == _STATE_DICT.co_filename:
        by_state = by_state or at.f_code is _STATE_DICT
        at = at.f_back
    return (at, True) if at is not None and by_state else (frame, False)
