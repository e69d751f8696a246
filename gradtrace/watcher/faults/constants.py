"""Gradients taken without create_graph: constants, which train nothing where they become a term of a loss."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

import torch

from gradtrace.model.events import ConstantGradient
from gradtrace.model.site import Stack
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import ops, query

Tensor = torch.Tensor

#: tensors followed before the dead among them are forgotten, and at most
_MANY = 512
_REPORTS = 64


@dataclass(frozen=True, slots=True)
class _Origin:
    request: str
    stack: Stack
    root: str
    #: identities of the parameters that the gradient depends on; None where that is not known
    parameters: frozenset[int] | None
    #: the gradient is one with respect to parameters
    of_parameters: bool
    #: what is followed is the size of the gradient, or its distance from something, and no longer a direction
    measured: bool = False


@dataclass(frozen=True, slots=True)
class _ConstantEntry:
    origin: _Origin
    entered: Stack
    #: the constant entered as a number, a term of its own; else mixed with others, element by element
    term: bool


class _Followed(dict[int, tuple["weakref.ref[torch.Tensor]", Any]]):
    """Tensors by identity, with what is known of them."""

    def of(self, tensor: torch.Tensor) -> Any:
        ref, known = self.get(id(tensor), (None, None))
        return known if ref is not None and ref() is tensor else None

    def note(self, tensor: torch.Tensor, known: Any) -> None:
        if len(self) >= _MANY:
            self.tidy()
        if len(self) < _MANY:
            self[id(tensor)] = weakref.ref(tensor), known

    def tidy(self) -> None:
        for key in [key for key, (ref, _) in self.items() if ref() is None]:
            del self[key]


class Constants(Observer):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._plain = _Followed()
        self._mixed = _Followed()
        self._taken: _Origin | None = None
        self._reports_left = _REPORTS

    def functions(self) -> Mapping[Any, Handler]:
        return {torch.autograd.grad: self._took, Tensor.grad.__get__: self._read}  # type: ignore[union-attr]

    def made_plain(self) -> Handler:
        return self._follow_plain

    def woken(self) -> Handler:
        return self._follow_mixed

    def _took(self, call: TorchCall) -> None:
        origin, self._taken = self._taken, None
        for tensor in tensors_in([call.out]) if origin is not None else ():
            if not tensor.requires_grad:
                self._plain.note(tensor, origin)
                self.session.wake()

    def _read(self, call: TorchCall) -> None:
        leaf, grad = call.args[0], call.out
        if grad is None or grad.requires_grad or not leaf.is_leaf or isinstance(leaf, torch.nn.Parameter):
            return
        known = self.session.book.known(leaf)
        if known is None or not known.shares or self.session.owners([leaf]):
            return
        last = known.shares[-1].call.origin
        self._plain.note(grad, _Origin("backward", last.stack, last.root, None, False))
        self.session.wake()

    def _follow_plain(self, call: TorchCall) -> None:
        if not self._plain or not torch.is_grad_enabled() or not self._is_followed(call):
            return
        origin = next((known for tensor in call.inputs if (known := self._plain.of(tensor))), None)
        if origin is not None:
            measured = origin.measured or ops.bare(call.func) in ops.MEASURES
            self._plain.note(call.out, replace(origin, measured=measured))

    def _is_followed(self, call: TorchCall) -> bool:
        """`torch.autograd.functional.jacobian` detaches its result; who does so himself means a constant."""
        own = call.func is Tensor.detach and not self.session.frames.is_user(call.frame.f_code.co_filename)
        return own or ops.bare(call.func) in ops.STEPS_OF_MEASURES

    def _follow_mixed(self, call: TorchCall) -> None:
        if not (self._plain or self._mixed):
            return
        self.session.wake()
        if not isinstance(call.out, Tensor):
            return
        name = ops.bare(call.func)
        if name not in ops.STEPS_OF_MEASURES and name not in ops.ADDING:
            return
        inputs = call.inputs
        entry = next((known for tensor in inputs if (known := self._mixed.of(tensor))), None)
        if entry is None and name in ops.ADDING:
            entry = self._entering(call, inputs)
        # what is multiplied with a graph of its own is weighted by it
        whole = entry is not None and (entry.term or call.out.numel() == 1)
        if entry is not None and (whole or sum(tensor.requires_grad for tensor in inputs) == 1):
            self._mixed.note(call.out, entry)

    def _entering(self, call: TorchCall, inputs: Sequence[Tensor]) -> _ConstantEntry | None:
        for tensor in inputs:
            origin = self._plain.of(tensor)
            if origin is None:
                continue
            # a step of an update (`p - lr * g`) may be a single number, too
            number = origin.measured and all(other.numel() == 1 for other in inputs)
            term = number and (tensor.dim() == 0 or not origin.of_parameters)
            if term or not (origin.of_parameters or origin.parameters is None):
                return _ConstantEntry(origin, self.session.frames.stack(call.frame), term)
        return None

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not call.accumulates:
            self._taken = None if call.create else self._origin(call)
        elif self._mixed:
            entries = (self._mixed.of(tensor) for tensor in outputs if isinstance(tensor, Tensor))
            for entry in entries:
                if entry is not None and self._reports_left and _trains(call, entry.origin):
                    self._reports_left -= 1
                    self._report(call, entry)
            self._mixed.tidy()
            self._plain.tidy()

    def _report(self, call: BackwardCall, entry: _ConstantEntry) -> None:
        origin = entry.origin
        self.session.emit(
            ConstantGradient(origin.request, origin.stack, origin.root, entry.entered, call.stack, call.root)
        )

    def _origin(self, call: BackwardCall) -> _Origin:
        leaves = query.leaf_inputs(*call.nodes)
        parameters = frozenset(id(leaf) for leaf in leaves if isinstance(leaf, torch.nn.Parameter))
        of_parameter = any(isinstance(leaf, torch.nn.Parameter) for leaf in call.leaves)
        return _Origin("grad", call.stack, call.root, parameters, of_parameter)


def _trains(call: BackwardCall, origin: _Origin) -> bool:
    """Whether the loss trains what the gradient depends on."""
    return origin.parameters is None or any(id(leaf) in origin.parameters for leaf in call.leaves)
