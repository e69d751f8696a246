"""Tensors that are taken for leaves and are none: whose .grad is read in vain, that an optimizer or a module
refuses."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.errors import first_line
from gradtrace.model.events import GradMissed, NotOptimizable, ParameterReplaced
from gradtrace.model.site import Stack
from gradtrace.watcher.code.names import variables
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import ops, query, walk
from gradtrace.watcher.parameters.births import Births

Tensor = torch.Tensor

#: reads reported, and nodes between a tensor and the leaf that it was made from
_READS = 64
_CHAIN = 8
_SETATTR = torch.nn.Module.__setattr__.__code__


class Leaves(Observer):
    def __init__(self, session: Session, births: Births) -> None:
        super().__init__(session)
        self._births = births
        self._reads_left = _READS
        self._last: GradMissed | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        # `Module.__setattr__` reads a name of the type only for its error message
        with patched(torch, "typename", self._naming):
            yield

    def functions(self) -> Mapping[Any, Handler]:
        return {Tensor.grad.__get__: self._read}  # type: ignore[union-attr]

    def _read(self, call: TorchCall) -> None:
        tensor = call.args[0]
        if call.out is not None or not self._reads_left or not tensor.requires_grad:
            return
        if tensor.is_leaf or tensor.retains_grad or not self.session.frames.is_user(call.frame.f_code.co_filename):
            return
        node = grad_fn(tensor)
        if node is None or node.metadata.get(walk.KEY) is None:
            return
        self._reads_left -= 1
        stack, made = self.session.frames.stack(call.frame), self.session.trail.find(node_number(node))
        self._last = GradMissed(stack, operation(node), made, _from_stray_leaf(node))
        self.session.emit(self._last)

    def crashed(self, error: BaseException, stack: Stack) -> None:
        read = self._last.stack[:1] if self._last is not None else ()
        here = [(site.path, site.function) for site in stack[:1]]
        if self._last and "NoneType" in str(error) and here == [(site.path, site.function) for site in read]:
            text = first_line(error)
            self.session.emit(replace(self._last, error=text))

    def group_refused(self, optimizer: Optimizer, group: dict[str, Any], error: ValueError, frame: FrameType) -> None:
        given = group["params"]
        tensors = [given] if isinstance(given, Tensor) else list(given)
        tensor = next((one for one in tensors if isinstance(one, Tensor) and not one.is_leaf), None)
        node = grad_fn(tensor) if tensor is not None else None
        if tensor is None or node is None or tensor.retains_grad:
            return
        stack = self.session.frames.stack(frame)
        made = self.session.trail.find(node_number(node))
        text = first_line(error)
        kind = type(optimizer).__name__
        self.session.emit(NotOptimizable(kind, stack, operation(node), made, tuple(tensor.shape), text))

    def _naming(self, typename: Callable[[Any], str]) -> Callable[[Any], str]:
        # torch.compile keeps this function for good where it makes its tables meanwhile
        of_this_watch = weakref.ref(self)

        @functools.wraps(typename)
        def name_of(value: Any) -> str:
            text = typename(value)
            me = of_this_watch()
            if me is not None and me.session.in_watched_thread():
                me.session.guarded(me._named, value, text, sys._getframe(1))
            return text

        return name_of

    def _named(self, value: Any, kind: str, frame: FrameType) -> None:
        if frame.f_code is not _SETATTR or not isinstance(value, Tensor):
            return
        found = variables(frame)
        module, name = found["self"], found["name"]
        parameter = module._parameters.get(name)
        birth = self._births.of(parameter) if parameter is not None else None
        born: Stack = birth.stack if birth else ()
        error = f"TypeError: cannot assign '{kind}' as parameter '{name}' (torch.nn.Parameter or None expected)"
        stack = self.session.frames.stack(frame)
        self.session.emit(ParameterReplaced(type(module).__name__, name, stack, born, error))


def grad_fn(tensor: torch.Tensor) -> Any:
    try:
        return tensor.grad_fn
    except RuntimeError:  # a view made under no_grad whose base was written to
        return None


def operation(node: Any) -> str:
    """The operation of a node as a user would call it: `mul` for MulBackward0."""
    return ops.spoken(type(node).__name__)


def _from_stray_leaf(node: Any) -> bool:
    """Whether a short chain of operations leads to one leaf, which no variable holds."""
    for _ in range(_CHAIN):
        children = query.inputs(node)
        if len(children) != 1:
            return False
        node = children[0]
        if type(node) is walk.ACCUMULATE:
            # held by this call and by the function that counts
            return sys.getrefcount(node.variable) <= 2
    return False
