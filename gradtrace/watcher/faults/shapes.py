"""Sees gradients of the wrong shape: given to backward() or grad(), missing there, returned by a Function, assigned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch

from gradtrace.model.events import Misfit
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.code import function_source
from gradtrace.watcher.compat import DisableTorchFunction, node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session

#: names of hooks remembered
_HOOKS = 1_000
_REQUESTS = (torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad)
_NONE_GIVEN = re.compile(r"grad can be implicitly created only for")
_ARGUMENT = re.compile(r"Mismatch in shape: grad_output\[(\d+)\] has a shape of \D*(\[.*?\]).* of \D*(\[.*?\])")
_FUNCTION = re.compile(r"Function (\w+) returned an invalid gradient at index (\d+) - got (\[.*?\]) but .* (\[.*?\])")
_COUNT = re.compile(r"[Ff]unction (\w+) returned an incorrect number of gradients \(expected (\d+), got (\d+)\)")
#: what torch calls an object that is a hook
_NAMELESS = "<unknown>"
_HOOK = re.compile(r"hook '(.+)' has changed the size of value")
_ASSIGNED = re.compile(r"assigned grad has data of a different size|attempting to assign a gradient of size")


class GradientShapes(Observer):
    """Reads torch's own words, and adds which tensor and which line they are about."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: the last hook of each name: where it is defined, and where it was registered
        self._hooks: dict[str, tuple[Stack, Stack]] = {}

    def functions(self) -> Mapping[Any, Handler]:
        return {torch.Tensor.register_hook: self._hooked}

    def _hooked(self, call: TorchCall) -> None:
        hook = call.args[1] if len(call.args) > 1 else call.kwargs.get("hook")
        name = getattr(hook, "__name__", _NAMELESS)
        if len(self._hooks) < _HOOKS:
            self._hooks[name] = function_source.defined(hook), self.session.frames.stack(call.frame)

    def failed(self, call: TorchCall, error: BaseException) -> None:
        if not isinstance(error, RuntimeError):
            return
        text = str(error)
        with DisableTorchFunction():
            if call.func in _REQUESTS:
                self._asked(call, text)
            elif _ASSIGNED.search(text) and len(call.args) == 2:
                self._assigned(call, text)

    def _asked(self, call: TorchCall, text: str) -> None:
        roots = _listed(next(iter((*call.args, *call.kwargs.values())), ()))
        if found := _ARGUMENT.search(text):
            self._emit(call, text, "argument", roots, int(found[1]), found[2], found[3])
        elif _NONE_GIVEN.search(text):
            index = next((i for i, root in enumerate(roots) if root.numel() != 1), 0)
            given = str(list(roots[index].shape)) if roots else ""
            self._emit(call, text, "nonscalar", roots, index, given, "[]")

    def _emit(
        self, call: TorchCall, text: str, kind: str, roots: list[torch.Tensor], index: int, given: str, wanted: str
    ) -> None:
        stack = self.session.frames.stack(call.frame)
        made = self._made(roots[index]) if index < len(roots) else ()
        root = questions.root_of(stack[0]) if stack else ""
        self.session.emit(Misfit(kind, stack, root, _error(text), index, given, wanted, made=made))

    def _made(self, tensor: torch.Tensor) -> Stack:
        try:
            node = tensor.grad_fn
        except RuntimeError:  # a view made under no_grad, whose base was written to afterwards
            return ()
        return () if node is None else self.session.trail.find(node_number(node))

    def _assigned(self, call: TorchCall, text: str) -> None:
        tensor, grad = call.args
        given, wanted = str(list(grad.shape)), str(list(tensor.shape))
        stack = self.session.frames.stack(call.frame)
        self.session.emit(Misfit("assigned", stack, "", _error(text), 0, given, wanted))

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if error is None:
            return
        text = str(error)
        if found := _FUNCTION.search(text):
            self._returned(call, text, "function", found[1], int(found[2]), found[3], found[4])
        elif found := _COUNT.search(text):
            self._returned(call, text, "count", found[1], 0, found[3], found[2])
        elif found := _HOOK.search(text):
            place, made = self._hooks.get(found[1], ((), ()))
            self.session.emit(
                Misfit("hook", call.stack, call.root, _error(text), 0, "", "", op=found[1], backward=place, made=made)
            )

    def _returned(self, call: BackwardCall, text: str, kind: str, op: str, index: int, given: str, wanted: str) -> None:
        node: Any = next((node for node in call.nodes if type(node).__name__ == op), None)
        backward = function_source.backward_of(type(node)) if node is not None else ()
        made = self.session.trail.find(node_number(node)) if node is not None else ()
        self.session.emit(
            Misfit(kind, call.stack, call.root, _error(text), index, given, wanted, op=op, backward=backward, made=made)
        )


def _listed(roots: Any) -> list[torch.Tensor]:
    several = roots if isinstance(roots, (list, tuple)) else [roots]
    return [root for root in several if isinstance(root, torch.Tensor)]


def _error(text: str) -> str:
    return f"RuntimeError: {text}".splitlines()[0]
