"""Sees optimizer steps, closure evaluations, and updates written by hand."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradtrace.model.events import Step, Use
from gradtrace.model.site import Stack
from gradtrace.script import StopRun
from gradtrace.watch.gradients import Leaf
from gradtrace.watch.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watch.session import Session

Tensor = torch.Tensor

#: writes by which updates are written by hand
_WRITES = (
    *(Tensor.sub_, Tensor.add_, Tensor.addcmul_, Tensor.addcdiv_, Tensor.copy_, Tensor.lerp_),
    *(Tensor.__isub__, Tensor.__iadd__, Tensor.data.__set__),  # type: ignore[attr-defined]
    *(torch._foreach_add_, torch._foreach_sub_, torch._foreach_addcdiv_, torch._foreach_addcmul_),
)


class Steps:
    """Judges a step when it ends: with a closure, gradients are made and used within it."""

    def __init__(self, session: Session, observers: Sequence[Observer], stop_after: int | None = None) -> None:
        self._session = session
        self._observers = observers
        self._stop_after = stop_after
        #: an optimizer's own code is running, not a closure of the user's
        self.inside = False
        #: told when that begins and ends
        self.on_inside: Callable[[bool], None] = lambda inside: None
        self._depth = 0
        self._evaluations = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        handles = register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)
        add_group = Optimizer.add_param_group
        Optimizer.add_param_group = self._recording(add_group)  # type: ignore[method-assign]
        try:
            yield
        finally:
            self.failed()
            Optimizer.add_param_group = add_group  # type: ignore[method-assign]
            for handle in handles:
                handle.remove()

    def _recording(self, add_group: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(add_group)
        def add_param_group(optimizer: Optimizer, param_group: dict[str, Any]) -> None:
            add_group(optimizer, param_group)
            self._session.guarded(self._session.own, optimizer.param_groups[-1]["params"], id(optimizer))

        return add_param_group

    def _before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        if not self._session.in_watched_thread() or torch.compiler.is_compiling():
            return None
        self._depth += 1
        self._set_inside(True)
        self._evaluations = 0
        # the hook sees the optimizer as the first argument
        closures = [one for one in (*args[1:], *kwargs.values()) if callable(one)]
        if not closures:
            return None
        wrapped = self._counting(optimizer, closures[0])
        given = tuple(wrapped if one is closures[0] else one for one in args)
        return given, {key: wrapped if one is closures[0] else one for key, one in kwargs.items()}

    def _counting(self, optimizer: Optimizer, closure: Callable[..., Any]) -> Callable[..., Any]:
        """The closure, with each evaluation after the first one counted as a use of the gradients there were."""

        @functools.wraps(closure)
        def evaluate(*args: Any, **kwargs: Any) -> Any:
            stack = self._session.frames.stack(sys._getframe(1))
            if self._evaluations:
                self._session.guarded(self._use, optimizer, stack)
            self._evaluations += 1
            self._set_inside(False)
            try:
                return closure(*args, **kwargs)
            finally:
                self._set_inside(True)

        return evaluate

    def _use(self, optimizer: Optimizer, stack: Stack) -> None:
        with torch._C.DisableTorchFunction():
            self._session.gradients.mark_used(parameters(optimizer), stack)

    def _after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self._depth == 0 or not self._session.in_watched_thread():
            return
        self._depth -= 1
        self._set_inside(self._depth > 0)
        self._session.guarded(self._judge, optimizer, sys._getframe(1))
        if not self._depth and self._stop_after is not None and self._session.steps >= self._stop_after:
            raise StopRun

    def _judge(self, optimizer: Optimizer, frame: FrameType) -> None:
        session = self._session
        stack = session.frames.stack(frame)
        session.steps += self._depth == 0
        with torch._C.DisableTorchFunction():
            uses = session.gradients.uses(parameters(optimizer))
            session.gradients.mark_used(parameters(optimizer), stack)
        for observer in self._observers:
            session.guarded(observer.after_step, optimizer, stack)
        session.emit(
            Step(session.steps, type(optimizer).__name__, id(optimizer), stack, uses, evaluations=self._evaluations)
        )

    def failed(self) -> None:
        """A backward call outside a closure: a step that raised an error has not told us its end."""
        if self.inside:
            self._depth = 0
            self._set_inside(False)

    def _set_inside(self, inside: bool) -> None:
        if inside != self.inside:
            self.inside = inside
            self.on_inside(inside)

    def written(self, tensor: torch.Tensor, frame: FrameType) -> None:
        """The user's code wrote to a tensor: to a leaf whose .grad it has read, that is an update by hand."""
        gradients = self._session.gradients
        leaf = gradients.known(tensor)
        if leaf is None:
            leaf = gradients.alias_of(tensor)
            if leaf is not None and leaf.grad_read:
                # the leaf itself is not at hand, only an alias: judged at the next backward call
                leaf.updated = self._session.frames.stack(frame)
        elif leaf.grad_read:
            self.update(tensor, leaf, self._session.frames.stack(frame))

    def update(self, tensor: torch.Tensor, leaf: Leaf, stack: Stack) -> None:
        gradients = self._session.gradients
        leaf.grad_read = False
        uses: tuple[Use, ...] = gradients.uses([tensor])
        gradients.mark_used([tensor], stack)
        self._session.emit(Step(self._session.steps, "", id(leaf), stack, uses))


class HandWritten(Observer):
    """Sees reads of .grad and writes to leaves, which together are an update by hand."""

    def __init__(self, session: Session, steps: Steps) -> None:
        super().__init__(session)
        self._steps = steps

    def functions(self) -> Mapping[Any, Handler]:
        return {Tensor.grad.__get__: self._read, **dict.fromkeys(_WRITES, self._write)}  # type: ignore[union-attr]

    def _read(self, call: TorchCall) -> None:
        leaf = self.session.gradients.known(call.args[0])
        if leaf is not None:
            self.session.gradients.read(leaf)

    def _write(self, call: TorchCall) -> None:
        for tensor in tensors_in(call.args[:1]):
            self._steps.written(tensor, call.frame)


def parameters(optimizer: Optimizer) -> Iterable[torch.Tensor]:
    return (tensor for group in optimizer.param_groups for tensor in group["params"])
