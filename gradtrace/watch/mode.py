"""Sees every torch function that the user's code calls, and notes which line made which nodes.

This is the hot path: what is not needed at every call is not done here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gradtrace.model.events import Cut
from gradtrace.watch.cuts import tensors_in
from gradtrace.watch.session import Session
from gradtrace.watch.steps import Steps

Tensor = torch.Tensor
Observer = Callable[[FrameType, tuple[Any, ...], Any], None]

_DETACHING = {Tensor.detach: "detach()", Tensor.data.__get__: ".data"}  # type: ignore[attr-defined]
_LEAVING = {
    Tensor.item: "item()",
    Tensor.tolist: "tolist()",
    Tensor.numpy: "numpy()",
    Tensor.__float__: "float()",
    Tensor.__int__: "int()",
    Tensor.__array__: "numpy()",
}
_COPYING = {torch.tensor: "torch.tensor()", torch.as_tensor: "torch.as_tensor()", Tensor.new_tensor: "new_tensor()"}
#: take nothing but shape and dtype from their argument, and so cut nothing
_SHAPED = {
    *(torch.zeros_like, torch.ones_like, torch.empty_like, torch.full_like),
    *(torch.rand_like, torch.randn_like, torch.randint_like),
    *(Tensor.new_zeros, Tensor.new_ones, Tensor.new_empty, Tensor.new_full),
}
#: writes by which updates are written by hand
_WRITES = (
    *(Tensor.sub_, Tensor.add_, Tensor.addcmul_, Tensor.addcdiv_, Tensor.copy_, Tensor.lerp_),
    *(Tensor.__isub__, Tensor.__iadd__, Tensor.data.__set__),  # type: ignore[attr-defined]
    *(torch._foreach_add_, torch._foreach_sub_, torch._foreach_addcdiv_, torch._foreach_addcmul_),
)


class Mode(TorchFunctionMode):
    """Steps aside under `torch.compile` and inside optimizer steps."""

    def __init__(self, session: Session, steps: Steps) -> None:
        super().__init__()
        self._session = session
        self._steps = steps
        self._observers: dict[Any, Observer] = {
            **dict.fromkeys(_LEAVING, self._leaves_torch),
            **dict.fromkeys(_WRITES, self._write),
            Tensor.grad.__get__: self._read_grad,  # type: ignore[union-attr]
            Tensor.requires_grad.__set__: self._freeze,  # type: ignore[attr-defined]
            Tensor.requires_grad_: self._freeze,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._steps.inside or torch.compiler.is_compiling():
            return func(*args, **kwargs)
        session = self._session
        before = session.sequence()
        trail = session.trail
        if before != trail.end:
            # made where the mode does not reach, by a custom Function for one: the call that comes next is nearest
            trail.add(trail.end, before, session.frames.stack(sys._getframe(1)))
        try:
            out = func(*args, **kwargs)
        except BaseException as error:
            session.tidy(error)
            raise
        after = session.sequence()
        if after != before:
            trail.add(before, after, session.frames.stack(sys._getframe(1)))
        observer = self._observers.get(func)
        if observer is not None:
            session.guarded(observer, sys._getframe(1), args, func)
        if after == before and type(out) is Tensor and not out.requires_grad:
            session.guarded(self._cut, sys._getframe(1), func, args, kwargs, out)
        if session.call_made is not None:
            session.guarded(session.call_made, sys._getframe(1), func, args, kwargs, out, before, after)
        return out

    def _cut(self, frame: FrameType, func: Any, args: Any, kwargs: Any, out: torch.Tensor) -> None:
        """Notes that the path from an input that requires grad ends at `out`."""
        if func in self._observers or func in _SHAPED:
            return
        cuts = self._session.cuts
        inputs = list(tensors_in((*args, *kwargs.values())))
        source = next((tensor for tensor in inputs if tensor.requires_grad), None)
        if source is not None:
            cut = Cut(
                *_reason(func), self._session.frames.stack(frame), behind=_node_name(source), shape=tuple(source.shape)
            )
            cuts.add(out, (cut,))
            return
        inherited = tuple(dict.fromkeys(cut for tensor in inputs for cut in cuts.of(tensor)))
        if inherited:
            cuts.add(out, inherited[:4])

    def _leaves_torch(self, frame: FrameType, args: tuple[Any, ...], func: Any) -> None:
        if args[0].requires_grad:
            self._session.cuts.left(Cut(_LEAVING[func], "detached", self._session.frames.stack(frame)))
        elif known := self._session.cuts.of(args[0]):
            self._session.cuts.left(known[0])

    def _read_grad(self, frame: FrameType, args: tuple[Any, ...], func: Any) -> None:
        leaf = self._session.gradients.known(args[0])
        if leaf is not None:
            self._session.gradients.read(leaf)

    def _write(self, frame: FrameType, args: tuple[Any, ...], func: Any) -> None:
        for tensor in tensors_in(args[:1]):
            self._steps.written(tensor, frame)

    def _freeze(self, frame: FrameType, args: tuple[Any, ...], func: Any) -> None:
        if len(args) > 1 and args[1] is False and args[0].is_leaf:
            self._session.cuts.froze(self._session.frames.stack(frame))


def _reason(func: Any) -> tuple[str, str]:
    """What to call the cutting operation, and why it cut."""
    if func in _DETACHING:
        return _DETACHING[func], "detached"
    if func in _COPYING:
        return _COPYING[func], "copied"
    name = getattr(func, "__name__", str(func)).strip("_")
    name = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}.get(name, f"{name}()")
    return name, "not differentiable" if torch.is_grad_enabled() else "no_grad"


def _node_name(tensor: torch.Tensor) -> str:
    if tensor.is_leaf:
        return "leaf"
    # reading grad_fn under no_grad raises for some views
    return type(tensor.grad_fn).__name__ if torch.is_grad_enabled() else ""
