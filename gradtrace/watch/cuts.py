"""Where paths end: tensors that require no grad although something that went into them did."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gradtrace.model.events import Cut
from gradtrace.model.site import Stack
from gradtrace.watch.observer import Handler, Observer, TorchCall
from gradtrace.watch.session import Session

Tensor = torch.Tensor

#: cut tensors remembered before the dead among them are forgotten
_MANY = 4_096
#: cuts told of one tensor
_FEW = 4

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
#: take nothing but shape and dtype from their argument, or give a gradient, and so cut nothing
_NO_CUT = {
    *(torch.zeros_like, torch.ones_like, torch.empty_like, torch.full_like),
    *(torch.rand_like, torch.randn_like, torch.randint_like),
    *(Tensor.new_zeros, Tensor.new_ones, Tensor.new_empty, Tensor.new_full),
    Tensor.grad.__get__,  # type: ignore[union-attr]
    Tensor.requires_grad_,
}
_COMPARISONS = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}


class Cuts(Observer):
    """The tensors behind which gradients end, by identity, with what cut them."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], tuple[Cut, ...]]] = {}
        #: the last places where a value left torch (`item()`, `numpy()`): what comes back of it has no history
        self._left: deque[Cut] = deque(maxlen=_FEW)
        #: places where leaves were frozen
        self._frozen: dict[Stack, Cut] = {}

    def of(self, tensor: torch.Tensor) -> tuple[Cut, ...]:
        ref, cuts = self._known.get(id(tensor), (None, ()))
        return cuts if ref is not None and ref() is tensor else ()

    def behind(self, tensors: Sequence[Any]) -> tuple[Cut, ...]:
        """What cut the paths behind these tensors; where no cut is known, what may have: the last first."""
        known = tuple(cut for tensor in tensors if isinstance(tensor, torch.Tensor) for cut in self.of(tensor))
        return known or tuple(reversed(self._left)) or tuple(self._frozen.values())[-_FEW:]

    def functions(self) -> Mapping[Any, Handler]:
        freezing = (Tensor.requires_grad.__set__, Tensor.requires_grad_)  # type: ignore[attr-defined]
        return dict.fromkeys(_LEAVING, self._leaves_torch) | dict.fromkeys(freezing, self._freeze)

    def made_plain(self) -> Handler:
        return self._plain

    def _plain(self, call: TorchCall) -> None:
        """Notes that the path from an input that requires grad ends at the result."""
        if call.func in _NO_CUT:
            return
        inputs = call.inputs
        source = next((tensor for tensor in inputs if tensor.requires_grad), None)
        if source is not None:
            stack = self.session.frames.stack(call.frame)
            self._add(call.out, (Cut(*_reason(call.func), stack, behind=_node(source), shape=tuple(source.shape)),))
            return
        inherited = tuple(dict.fromkeys(cut for tensor in inputs for cut in self.of(tensor)))
        if inherited:
            self._add(call.out, inherited[:_FEW])

    def _add(self, tensor: torch.Tensor, cuts: tuple[Cut, ...]) -> None:
        if len(self._known) >= _MANY:
            self._known = {key: value for key, value in self._known.items() if value[0]() is not None}
        if len(self._known) < 4 * _MANY:
            self._known[id(tensor)] = weakref.ref(tensor), cuts

    def _leaves_torch(self, call: TorchCall) -> None:
        tensor = call.args[0]
        if tensor.requires_grad:
            self._left.append(Cut(_LEAVING[call.func], "detached", self.session.frames.stack(call.frame)))
        elif known := self.of(tensor):
            self._left.append(known[0])

    def _freeze(self, call: TorchCall) -> None:
        if call.args[1:2] == (False,) and call.args[0].is_leaf and len(self._frozen) < _MANY:
            stack = self.session.frames.stack(call.frame)
            self._frozen.setdefault(stack, Cut("requires_grad = False", "frozen", stack))


def _reason(func: Any) -> tuple[str, str]:
    """What to call the cutting operation, and why it cut."""
    if func in _DETACHING:
        return _DETACHING[func], "detached"
    if func in _COPYING:
        return _COPYING[func], "copied"
    name = getattr(func, "__name__", str(func)).strip("_")
    return _COMPARISONS.get(name, f"{name}()"), "not differentiable" if torch.is_grad_enabled() else "no_grad"


def _node(tensor: torch.Tensor) -> str:
    if tensor.is_leaf:
        return "leaf"
    # reading grad_fn under no_grad raises for some views
    return type(tensor.grad_fn).__name__ if torch.is_grad_enabled() else ""
