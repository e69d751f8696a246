"""Where paths end: tensors that require no grad although something that went into them did."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gradtrace.model.events import Backward, Cut
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.compat import set_grad_enabled
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import walk

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
    Tensor.__index__: "int()",
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
#: give several tensors, of which some or all may end a path
_SEVERAL = (
    *(
        torch.max,
        torch.min,
        torch.topk,
        torch.sort,
        torch.kthvalue,
        torch.median,
        torch.mode,
        torch.cummax,
        torch.cummin,
    ),
    *(Tensor.max, Tensor.min, Tensor.topk, Tensor.sort, Tensor.kthvalue, Tensor.median, Tensor.mode),
    *(torch.unbind, torch.split, torch.chunk, torch.meshgrid, torch.unique, Tensor.unbind, Tensor.split, Tensor.chunk),
    *(torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu, torch.lstm_cell, Tensor.unique),
    torch.nn.functional.multi_head_attention_forward,
)
_COMPARISONS = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}


class Cuts(Observer):
    """The tensors behind which gradients end, by identity, with what cut them."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], tuple[Cut, ...]]] = {}
        #: the last places where a value left torch (`item()`, `numpy()`), and the value if it is a number: what comes
        #: back of it has no history
        self._left: deque[tuple[Cut, object]] = deque(maxlen=_FEW)
        #: where the values of tensors lie that were detached, or made of numbers that had left, of late
        self._aliases: deque[tuple[int, Cut]] = deque(maxlen=_MANY)
        #: places where leaves were frozen
        self._frozen: dict[Stack, Cut] = {}
        #: the last detached tensors, by where their values lie: what they were taken of, and the cut
        self._detached: dict[int, tuple[weakref.ref[torch.Tensor], Cut]] = {}
        #: by place of a cut: whether it only cuts off what no optimizer holds
        self._asides: dict[Stack, bool] = {}
        #: where gradients were last switched off
        self._switched: Stack = ()
        self._on = True

    def of(self, tensor: torch.Tensor) -> tuple[Cut, ...]:
        ref, cuts = self._known.get(id(tensor), (None, ()))
        return cuts if ref is not None and ref() is tensor else ()

    def behind(self, tensors: Sequence[Any]) -> tuple[Cut, ...]:
        """What cut the paths behind these tensors, as far as that was seen."""
        return _first(cut for tensor in tensors if isinstance(tensor, Tensor) for cut in self.of(tensor))

    def suspects(self) -> tuple[Cut, ...]:
        """What may have cut a path where that was not seen, the likeliest first."""
        given = ((ref(), cut) for ref, cut in self.session.unasked)
        unasked = [cut for tensor, cut in given if tensor is not None and not tensor.requires_grad]
        left = [cut for cut, _ in reversed(self._left)]
        return (*unasked, *left, *list(self._frozen.values())[-_FEW:])

    def rewrapped(self, leaves: Sequence[torch.Tensor]) -> tuple[Cut, ...]:
        """What cut the paths behind leaves that were made of what was left; empty where one of them is a leaf in its
        own right."""
        for leaf in leaves:
            if isinstance(leaf, torch.nn.Parameter) or self.session.owned(leaf):
                return ()
        found = [self.of(leaf) or self._alias(leaf) for leaf in leaves]
        return _first(cut for cuts in found for cut in cuts) if all(found) else ()

    def _alias(self, leaf: torch.Tensor) -> tuple[Cut, ...]:
        place = _place(leaf)
        return tuple(cut for at, cut in self._aliases if at == place)[-1:]

    def _same_memory(self, tensor: torch.Tensor) -> tuple[Cut, ...]:
        """The cut behind another name for a detached tensor, as `Variable(t.data)` makes one, while `t` lives."""
        if not self._detached:
            return ()
        ref, cut = self._detached.get(_place(tensor), (None, None))
        whole = ref() if ref is not None else None
        return (cut,) if cut is not None and whole is not None and _place(whole) == _place(tensor) else ()

    def functions(self) -> Mapping[Any, Handler]:
        freezing = (Tensor.requires_grad.__set__, Tensor.requires_grad_)  # type: ignore[attr-defined]
        return {
            **dict.fromkeys(_LEAVING, self._leaves_torch),
            **dict.fromkeys(freezing, self._freeze),
            **dict.fromkeys(_SEVERAL, self._several),
            **dict.fromkeys(_COPYING, self._copied),
            Tensor.__setitem__: self._put,
            set_grad_enabled: self._switch,
            torch.autograd.grad: self._differentiate,
        }

    def made_plain(self) -> Handler:
        return self._plain

    def _plain(self, call: TorchCall) -> None:
        """Notes that the path from an input that requires grad ends at the result."""
        if call.func in _NO_CUT:
            return
        cuts = self._cut_by(call)
        if cuts:
            self._add(call.out, cuts)
        if cuts and call.func in _DETACHING:
            self._aliases.append((_place(call.out), cuts[0]))
            self._detached.pop(next(iter(self._detached)) if len(self._detached) >= _MANY else -1, None)
            if cuts[0].stack and not isinstance(call.args[0], torch.nn.Parameter):
                self._detached[_place(call.out)] = weakref.ref(call.args[0]), cuts[0]

    def _several(self, call: TorchCall) -> None:
        outs = call.out if isinstance(call.out, tuple) else ()
        ended = [out for out in outs if isinstance(out, Tensor) and not out.requires_grad]
        cuts = self._cut_by(call) if ended else ()
        for out in ended if cuts else ():
            self._add(out, cuts)

    def _copied(self, call: TorchCall) -> None:
        """A new leaf of old values; others are plain results."""
        if not isinstance(call.out, Tensor):
            return
        if not call.out.requires_grad:
            came = {value for value in _flat(call.args[:1]) if isinstance(value, float)} if self._left else set()
            back = [cut for cut, value in self._left if value in came]
            if back and not self.of(call.out):
                self._add(call.out, tuple(dict.fromkeys(back)))
            return
        cuts = self._cut_by(call)
        if cuts:
            self._add(call.out, cuts)
        elif self._left:
            numbers = [value for value in _flat(call.args[:1]) if isinstance(value, float)]
            same = [cut for cut, value in self._left if value in numbers]
            self._aliases.append((_place(call.out), (same or [self._left[-1][0]])[-1]))

    def _put(self, call: TorchCall) -> None:
        """`matrix[row] = x` ends the path to `x` in the matrix, if it does not require grad now."""
        target = call.args[0]
        cuts = () if target.requires_grad else self._cut_by(call)
        if cuts:
            self._add(target, cuts)

    def _cut_by(self, call: TorchCall) -> tuple[Cut, ...]:
        """The cut that this call makes, or the cuts behind what it was given."""
        inputs = call.inputs
        source = next((tensor for tensor in inputs if tensor.requires_grad), None)
        if source is None:
            return _first(cut for tensor in inputs for cut in self.of(tensor) or self._same_memory(tensor))
        op, why = _reason(call.func)
        stack = self.session.frames.stack(call.frame)
        switched = self._switched if why == "no_grad" else ()
        shape = None if is_lazy(source) else tuple(source.shape)
        return (Cut(op, why, stack, switched, behind=_node(source), shape=shape, aside=self._aside(source, stack)),)

    def _aside(self, source: torch.Tensor, stack: Stack) -> bool:
        known = self._asides.get(stack)
        if known is None:
            if not self.session.has_optimizer or not (source.is_leaf or torch.is_grad_enabled()):
                return False
            leaves = [source] if source.is_leaf else walk.leaves_of([source])
            known = bool(leaves) and not any(map(self.session.owned, leaves))
            if len(self._asides) < _MANY:
                self._asides[stack] = known
        return known

    def _add(self, tensor: torch.Tensor, cuts: tuple[Cut, ...]) -> None:
        if len(self._known) >= _MANY:
            self._known = {key: value for key, value in self._known.items() if value[0]() is not None}
        if len(self._known) < 4 * _MANY:
            self._known[id(tensor)] = weakref.ref(tensor), cuts

    def _leaves_torch(self, call: TorchCall) -> None:
        tensor = call.args[0]
        # an array would keep the tensor's memory
        value = call.out if isinstance(call.out, float) else None
        if tensor.requires_grad:
            cut = Cut(_LEAVING[call.func], "detached", self.session.frames.stack(call.frame))
            self._left.append((cut, value))
        elif known := self.of(tensor):
            self._left.append((known[0], value))

    def crashed(self, error: BaseException, stack: Stack) -> None:
        """`backward` is called on a number: no call of torch's sees that."""
        value = getattr(error, "obj", None)
        number = isinstance(value, (int, float)) or type(value).__module__ == "numpy"
        if not isinstance(error, AttributeError) or error.name != "backward" or not number or not self._left:
            return
        same = [cut for cut, left in self._left if type(value) is float and left == value]
        cut = same[-1] if same else self._left[-1][0]
        text = f"AttributeError: {error}".splitlines()[0]
        root = questions.root_of(stack[0]) if stack else ""
        self.session.emit(
            Backward(
                self.session.backward_calls + 1, "backward", stack, root, -1, False, False, 0, error=text, cuts=(cut,)
            )
        )

    def _switch(self, call: TorchCall) -> None:
        if self._on and not call.args[0]:
            self._switched = self.session.frames.stack(call.frame)
        self._on = bool(call.args[0])

    def _differentiate(self, call: TorchCall) -> None:
        """Without create_graph a gradient is a constant."""
        stack = self.session.frames.stack(call.frame)
        for tensor in tensors_in([call.out]):
            if not tensor.requires_grad:
                self._add(tensor, (Cut("autograd.grad()", "constant gradient", stack),))

    def _freeze(self, call: TorchCall) -> None:
        if call.args[1:2] == (False,) and call.args[0].is_leaf and len(self._frozen) < _MANY:
            stack = self.session.frames.stack(call.frame)
            self._frozen.setdefault(stack, Cut("requires_grad = False", "frozen", stack))


def _first(cuts: Iterable[Cut]) -> tuple[Cut, ...]:
    """A few of the cuts, those first that matter to an optimizer."""
    return tuple(sorted(dict.fromkeys(cuts), key=lambda cut: cut.aside))[:_FEW]


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


def _place(tensor: torch.Tensor) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError:  # a wrapper without storage, as under vmap
        return -id(tensor)


def _flat(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value
