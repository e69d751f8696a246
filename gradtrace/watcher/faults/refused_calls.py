"""Calls that torch refuses since a tensor requires grad, requires none, or is no leaf, where the script ends by that."""

from __future__ import annotations

import torch

from gradtrace.errors import first_line
from gradtrace.model.events import CallRefused
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.parameters.leaves import grad_fn

#: words of torch's errors, and what they are about
_KINDS = {
    "call numpy() on Tensor that requires grad": "numpy",
    "Can't export tensors that require gradient": "numpy",
    "support the deepcopy protocol": "deepcopy",
    "cannot register a hook on a tensor that doesn't require gradient": "hook",
    "can't retain_grad on Tensor that has requires_grad=False": "hook",
    "hooks cannot be registered on non-leaf tensors": "leaf hook",
    "dtype can require gradients": "integer",
    "you can only change requires_grad flags of leaf variables": "flag",
    "assign a gradient with dtype": "dtype",
    "assigned grad has data of a different type": "dtype",
    "optimizer got an empty parameter list": "empty",
    "some parameters appear in more than one parameter group": "two groups",
    "argument to `backward()` cannot be empty": "no inputs",
    "argument to `grad()` cannot be empty": "no inputs",
    "step() missing 1 required positional argument: 'closure'": "closure",
    "You must implement either the backward or vjp method": "no backward",
    "a function that was marked with @once_differentiable": "once",
    "derivative for aten::": "twice",
}


class RefusedCalls(Observer):
    def __init__(self, session: Session, origins: Origins) -> None:
        super().__init__(session)
        self._origins = origins
        #: what the last call was about that failed
        self._last: CallRefused | None = None

    def failed(self, call: TorchCall, error: BaseException) -> None:
        kind = _kind_of(error)
        tensor = next(iter(call.args), None)
        if not kind or not isinstance(tensor, torch.Tensor):
            return
        node = grad_fn(tensor)
        made = self.session.trail.find(node_number(node)) if node is not None else ()
        cuts = self._origins.of_value(tensor) if not tensor.requires_grad else ()
        stack = self.session.frames.stack(call.frame)
        self._last = CallRefused(kind, stack, first_line(error), made, cuts[0] if cuts else None)

    def crashed(self, error: BaseException, stack: Stack) -> None:
        kind = _kind_of(error)
        if not kind or not stack:
            return
        text = first_line(error)
        if self._last is not None and self._last.error == text:
            self.session.emit(self._last)
        else:
            self.session.emit(CallRefused(kind, stack, text))


def _kind_of(error: BaseException) -> str:
    text = str(error)
    return next((kind for words, kind in _KINDS.items() if words in text), "")
