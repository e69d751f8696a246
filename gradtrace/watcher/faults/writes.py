"""Records writes to tensors, and reports at a backward call that fails because of one which write it was."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
import torch.nn.functional
import torch.nn.init

from gradtrace.errors import first_line
from gradtrace.model.events import Overwritten, Refused
from gradtrace.model.site import Held, Stack
from gradtrace.watcher.code import names
from gradtrace.watcher.code.construction import holder
from gradtrace.watcher.compat import MODULE_CALL, NN_FUNCTIONS, node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.reentry import first_use_since
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.faults.hidden_writes import HiddenWrites
from gradtrace.watcher.graph import ops, query, saved

#: writes and optimizer steps remembered: a backward call seldom reaches further back
_WRITES = 16_384
_STEPS = 256
#: failures whose tensors are searched for names
_SEARCHES = 8
#: views looked through on the way to the leaf
_VIEWS = 16

#: how torch begins to say that it refuses a write, and of what
_REFUSALS = {
    "a leaf Variable that requires grad": "leaf",
    "a view of a leaf Variable that requires grad": "view of a leaf",
    "A view was created in no_grad mode and": "view made under no_grad",
    "Output ": "one of several views",
}


class _Write(NamedTuple):
    """`memory` was written to at `stack`. Nodes from `number` on were made later."""

    clock: int
    memory: int
    #: the tensor's version since
    version: int
    number: int
    how: str
    no_grad: bool
    #: the version is that of an alias
    hidden: bool
    stack: Stack
    module: weakref.ref[torch.nn.Module] | None = None


class _OptimizerWrite(NamedTuple):
    """An optimizer wrote to its parameters."""

    clock: int
    optimizer: weakref.ref[torch.optim.Optimizer]
    number: int
    stack: Stack

    def wrote(self, memory: int) -> bool:
        optimizer = self.optimizer()
        groups = optimizer.param_groups if optimizer is not None else ()
        return any(saved.memory(parameter) == memory for group in groups for parameter in group["params"])


class Writes(Observer):
    """Remembers the last writes, and reports them to `hidden`."""

    def __init__(self, session: Session, hidden: HiddenWrites) -> None:
        super().__init__(session)
        self._hidden = hidden
        self._clock = itertools.count()
        self._writes: deque[_Write] = deque(maxlen=_WRITES)
        self._steps: deque[_OptimizerWrite] = deque(maxlen=_STEPS)
        self._searches_left = _SEARCHES

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys(writing_functions(), self._write) | dict.fromkeys(_flagged(), self._write_if_asked)

    def made_plain(self) -> Handler:
        return self._write_out

    def _write(self, call: TorchCall) -> None:
        # those of torch.nn.init take it by name
        written = call.args[0] if call.args else call.kwargs.get("tensor")
        self._note(call, tensors_in([written]), "in place")

    def _write_if_asked(self, call: TorchCall) -> None:
        if call.kwargs.get("inplace"):
            self._note(call, tensors_in(call.args[:1]), "inplace=True", self._module(call.frame))
        elif call.kwargs.get("max_norm") is not None:
            self._note(call, tensors_in(call.args[1:2]), "max_norm")

    def _write_out(self, call: TorchCall) -> None:
        if call.kwargs and (out := call.kwargs.get("out")) is not None:
            self._note(call, tensors_in([out]), "out=")

    def _module(self, frame: FrameType | None) -> weakref.ref[torch.nn.Module] | None:
        """The module of torch's own (nn.ReLU) from whose forward the call came."""
        while frame is not None and not self.session.frames.is_user(frame.f_code.co_filename):
            if frame.f_code is MODULE_CALL:
                return weakref.ref(names.variables(frame)["self"])
            frame = frame.f_back
        return None

    def _note(
        self,
        call: TorchCall,
        written: Iterable[torch.Tensor],
        how: str,
        module: weakref.ref[torch.nn.Module] | None = None,
    ) -> None:
        stack = self.session.frames.stack(call.frame)
        for tensor in written:
            memory = saved.memory(tensor)
            if memory and not tensor.is_inference():  # which no graph can save
                clock, no_grad = next(self._clock), not torch.is_grad_enabled()
                hidden = self._hidden.took(tensor, call, stack)
                self._writes.append(
                    _Write(clock, memory, tensor._version, call.after, how, no_grad, hidden, stack, module)
                )

    def after_step(self, optimizer: torch.optim.Optimizer, stack: Stack) -> None:
        self._steps.append(_OptimizerWrite(next(self._clock), weakref.ref(optimizer), self.session.sequence(), stack))

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if not isinstance(error, RuntimeError) or saved.MODIFIED not in str(error):
            return
        found = saved.broken(call.nodes, str(error))
        writes = self._since(found) if found else []
        first = writes[0] if writes else None
        memory = saved.memory(found.tensor) if found and found.tensor is not None else 0
        built = self.session.trail.find(node_number(found.node)) if found else ()
        self.session.emit(
            Overwritten(
                how=first.how if isinstance(first, _Write) else "step",
                written=first.stack if first else (),
                writes=len(writes),
                op=type(found.node).__name__ if found else "",
                saved=found.name if found else "",
                built=built,
                name=self._name(memory),
                shape=tuple(found.tensor.shape) if found and found.tensor is not None else (),
                stack=call.stack,
                root=call.root,
                no_grad=isinstance(first, _Write) and first.no_grad,
                error=first_line(error),
                module=self._holder(first) if isinstance(first, _Write) else None,
                entry=first_use_since(first.number, found.node, call.nodes, self.session.trail)
                if found and isinstance(first, _OptimizerWrite)
                else (),
            )
        )

    def _holder(self, write: _Write) -> Held | None:
        module = write.module() if write.module is not None else None
        return holder(module, sys._getframe(), self.session.frames) if module is not None else None

    def _since(self, found: saved.Broken) -> list[_Write | _OptimizerWrite]:
        """The writes to the tensor since it was saved, the first one first."""
        number, version = node_number(found.node), saved.expected_version(found.message)
        if found.tensor is not None:
            memory = saved.memory(found.tensor)
        else:  # before torch 2.6: most likely what was brought to the next version soonest
            later = (one for one in self._writes if one.version == version + 1 and one.number > number)
            memory = next((one.memory for one in later), 0)
        writes = [one for one in self._writes if one.memory == memory and one.version > version and one.number > number]
        writes = [one for one in writes if not one.hidden] or writes
        steps = [one for one in self._steps if one.number > number and one.wrote(memory)]
        return sorted([*writes, *steps], key=lambda one: one.clock)

    def _name(self, memory: int) -> str:
        """What the user's running code calls the tensor that lies there."""
        if not memory or self._searches_left <= 0:
            return ""
        self._searches_left -= 1
        found = names.tensors(sys._getframe(), self.session.frames)
        return next((name for name, tensor in found if saved.memory(tensor) == memory), "")

    def failed(self, call: TorchCall, error: BaseException) -> None:
        if not isinstance(error, RuntimeError):
            return
        message = str(error)
        target = next((target for start, target in _REFUSALS.items() if message.startswith(start)), None)
        if target is None or ("in-place" not in message and "inplace" not in message):
            return
        written = next(iter(tensors_in([*call.args[:1], *call.kwargs.values()])), None)
        leaf, viewed = self._behind(written)
        self.session.emit(
            Refused(
                target=target,
                op=getattr(call.func, "__name__", ""),
                stack=self.session.frames.stack(call.frame),
                error=first_line(error),
                name=self._name(saved.memory(written)) if written is not None else "",
                is_parameter=isinstance(leaf, torch.nn.Parameter),
                viewed=viewed,
            )
        )

    def _behind(self, tensor: torch.Tensor | None) -> tuple[torch.Tensor | None, Stack]:
        """The leaf that a tensor is, or is a view of, and where the outermost view was made."""
        if tensor is None or tensor.is_leaf or not torch.is_grad_enabled():
            return tensor, ()
        node: Any = tensor.grad_fn
        viewed: Stack = ()
        for view in query.passed(node, ops.VIEWS, _VIEWS):
            viewed = self.session.trail.find(node_number(view)) or viewed
        return tensor._base, viewed


def writing_functions() -> set[Any]:
    """Every function that writes to its first argument."""
    homes = (torch.Tensor, torch, torch.nn.functional, torch.nn.init, NN_FUNCTIONS)
    return {
        function
        for home in homes
        for name in dir(home)
        if ops.writes_in_place(name) and callable(function := getattr(home, name)) and not isinstance(function, type)
    }


def _flagged() -> Sequence[Any]:
    """The functions that write only with `inplace` or `max_norm`."""
    functions = (one for one in vars(torch.nn.functional).values() if hasattr(one, "__code__"))
    return [one for one in functions if {"inplace", "max_norm"} & set(one.__code__.co_varnames)]
