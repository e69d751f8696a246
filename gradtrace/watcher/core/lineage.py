"""Where values without a graph come from: the cut that ended the path, carried along with all that is computed from it.

A tensor that requires no grad although something that it was computed from did has an origin: the first cut on each path
to it. While an observer listens, the nodes of operations that use such values are marked with them, so that a graph can be
searched for constants, and where these come from.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import torch
from torch.nn.parameter import is_lazy

from gradtrace.errors import first_line
from gradtrace.model.events import Backward, Cut
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.compat import node_number, set_grad_enabled
from gradtrace.watcher.core.departures import Departure, Departures
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph import ops, query, walk

Tensor = torch.Tensor
T = TypeVar("T")

#: cut tensors remembered before the dead among them are forgotten
_MANY = 4_096
#: cuts reported of one tensor
_FEW = 4
#: places of cuts of which the leaves behind are remembered, and walks for each of them
_PLACES, _WALKS = 2_048, 2
#: calls marked while an observer listens
_MARKED = 200_000
#: calls at the beginning of a run that are marked in any case
_FIRST = 4_000
_CONSTANTS = "gradtrace: constants"

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
    *(*ops.RECURRENT_FUNCTIONS, torch.lstm_cell, Tensor.unique),
    torch.nn.functional.multi_head_attention_forward,
)
#: under no_grad their result still requires grad: a leaf, whose gradient goes no further
VIEWING = ops.functions(ops.VIEW_FUNCTIONS)


class Constant(NamedTuple):
    """A value without a graph, used by an operation of a graph."""

    cuts: tuple[Cut, ...]
    #: where the operation is
    entered: Stack
    #: the sum of a straight-through estimator: `x + (y - x).detach()`
    straight_through: bool = False
    #: it is a single number that was added to another one: a term of a loss
    added: bool = False


class _Behind:
    """The leaves behind the cuts of one place, by identity; how many cuts there were; the first of them, and how many
    backward calls came before it."""

    __slots__ = ("calls_before", "cuts", "first", "leaves", "walks")

    def __init__(self, calls_before: int) -> None:
        self.calls_before = calls_before
        self.cuts = 0
        self.first: Cut | None = None
        self.leaves: set[TensorId] = set()
        self.walks = 0


class Origins(Observer):
    """The tensors behind which gradients end, by identity, with what cut them."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], tuple[Cut, ...]]] = {}
        self.departures = Departures()
        #: where the values of tensors lie that were detached or made of numbers that had left, and those of copies of
        #: such ones, of late
        self._aliases: dict[int, Cut] = {}
        self._copies: dict[int, Cut] = {}
        #: places where leaves were frozen, and those at which an optimizer held them already
        self._frozen: dict[Stack, Cut] = {}
        self._frozen_late: set[Stack] = set()
        #: the last detached tensors, by where their values lie: what they were taken of, and the cut
        self._detached: dict[int, tuple[weakref.ref[torch.Tensor], Cut]] = {}
        #: the last NumPy arrays that were made of cut values, by where these lie
        self._arrays: dict[int, tuple[weakref.ref[Any], tuple[Cut, ...]]] = {}
        #: detached differences, by where their values lie: what was subtracted
        self._differences: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._behind: dict[Stack, _Behind] = {}
        #: by place of a cut: whether it only cuts off what no optimizer holds
        self._asides: dict[Stack, bool] = {}
        #: where gradients were last switched off
        self._switched: Stack = ()
        self._on = True
        #: at first we listen ourselves: a script may end in its first iteration
        self._listeners: set[object] = {self}
        self._marks_left = _MARKED
        session.wake()

    def listen(self, listener: object, wanted: bool = True) -> None:
        """From here on, or no longer, this listener wants to know which constants enter graphs."""
        if not wanted:
            self._listeners.discard(listener)
        elif listener not in self._listeners:
            self._listeners.add(listener)
            self.session.wake()

    def of(self, tensor: torch.Tensor) -> tuple[Cut, ...]:
        ref, cuts = self._known.get(id(tensor), (None, ()))
        return cuts if ref is not None and ref() is tensor else ()

    def of_value(self, tensor: torch.Tensor) -> tuple[Cut, ...]:
        """As `of`, also for another name of a detached tensor's memory, such as `torch.from_numpy()` gives."""
        return self.of(tensor) or self._same_memory(tensor)

    def leaves_behind(self, cut: Cut) -> frozenset[TensorId]:
        """Identities of the leaves from which the values cut off at this place were computed, as far as known."""
        return frozenset(self._leaves_at(cut.stack))

    def calls_before(self, cut: Cut) -> int:
        """How many backward calls there had been when a path was cut at this place for the first time."""
        known = self._behind.get(cut.stack)
        return known.calls_before if known is not None else 0

    def count(self, cut: Cut) -> int:
        """How many paths were cut at this place so far."""
        known = self._behind.get(cut.stack)
        return known.cuts if known is not None else 0

    def first_since(self, calls: int, leaf: TensorId) -> Cut | None:
        """The first cut behind which this leaf lies, of those places that cut for the first time after so many backward
        calls."""
        for behind in self._behind.values():
            if behind.calls_before >= calls and leaf in behind.leaves and behind.first is not None:
                return behind.first
        return None

    def frozen_by(self, optimizer: Any) -> tuple[Cut, ...]:
        """Where the parameters of an optimizer were frozen while it held them, if none of them requires grad."""
        if not self._frozen_late or any(parameter.requires_grad for parameter in parameters(optimizer)):
            return ()
        keys = {self.session.ids.known(parameter) for parameter in parameters(optimizer)}
        late = (cut for stack, cut in self._frozen.items() if stack in self._frozen_late)
        return tuple(cut for cut in late if not keys.isdisjoint(self._leaves_at(cut.stack)))[:_FEW]

    def _leaves_at(self, stack: Stack) -> set[TensorId]:
        known = self._behind.get(stack)
        return known.leaves if known is not None else set()

    def behind(self, tensors: Sequence[Any]) -> tuple[Cut, ...]:
        """What cut the paths behind these tensors, as far as that was seen."""
        return _few(cut for tensor in tensors if isinstance(tensor, Tensor) for cut in self.of(tensor))

    def constants(self, nodes: Iterable[Any]) -> list[Constant]:
        """The values without a graph that entered these nodes, as far as they were listened for."""
        found: dict[int, Constant] = {}
        for node in nodes:
            for constant in node.metadata.get(_CONSTANTS, ()) if type(node) is not walk.ACCUMULATE else ():
                found[id(constant)] = constant
        return list(found.values())

    def suspects(self) -> tuple[Cut, ...]:
        """What may have cut a path where that was not seen, the likeliest first."""
        given = ((ref(), cut) for ref, cut in self.session.unasked)
        unasked = [cut for tensor, cut in given if tensor is not None and not tensor.requires_grad]
        left = [cuts[0] for cuts in reversed(self.departures.last)]
        return (*unasked, *left, *list(self._frozen.values())[-_FEW:])

    def rewrapped(self, leaves: Sequence[torch.Tensor]) -> tuple[Cut, ...]:
        """What cut the paths behind leaves that were made of what was left; empty where one of them is a leaf in its
        own right."""
        for leaf in leaves:
            if isinstance(leaf, torch.nn.Parameter) or self.session.owned(leaf):
                return ()
        found = [self.of_leaf(leaf) for leaf in leaves]
        return _few(cut for cuts in found for cut in cuts) if all(found) else ()

    def of_leaf(self, leaf: torch.Tensor) -> tuple[Cut, ...]:
        """What cut the path behind a leaf that was made of a value without a graph: `torch.tensor(loss.item(),
        requires_grad=True)`."""
        known = self.of(leaf)
        # its own detached values lie where those of a parameter lie
        table = self._copies if isinstance(leaf, torch.nn.Parameter) else self._aliases
        if known or not table:
            return known
        cut = table.get(_place(leaf))
        return (cut,) if cut is not None else ()

    def _same_memory(self, tensor: torch.Tensor) -> tuple[Cut, ...]:
        """The cut behind another name for a detached tensor, as `Variable(t.data)` makes one, while `t` lives; or for the
        memory of a NumPy array, as `torch.from_numpy` gives, while the array lives."""
        if self._arrays:
            array, cuts = self._arrays.get(_place(tensor), (None, ()))
            if array is not None and array() is not None:
                return cuts
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
            **dict.fromkeys((*VIEWING, Tensor.__getitem__), self._viewed),
            Tensor.__setitem__: self._put,
            set_grad_enabled: self._switch,
            torch.autograd.grad: self._differentiate,
        }

    def cut_off(self, op: str, outs: Sequence[Tensor], source: Tensor, stack: Stack) -> None:
        """A function that is none of torch's operations has written the values of `source` into `outs`."""
        cut = self._cut(op, "not differentiable", [source], stack)
        for out in outs:
            if not out.requires_grad:
                self._add(out, (cut,))

    def made_plain(self) -> Handler:
        return self._plain

    def woken(self) -> Handler:
        return self._mark

    def _mark(self, call: TorchCall) -> None:
        """Notes on the nodes of a call the constants that it used."""
        if not self._listeners or self._marks_left <= 0:
            return
        self._marks_left -= 1
        if self._marks_left == _MARKED - _FIRST:
            self._listeners.discard(self)
        self.session.wake()
        used = []
        for tensor in call.inputs:
            if not tensor.requires_grad or (tensor.is_leaf and tensor._is_view()):
                cuts = self.of_value(tensor)
                if cuts:
                    used.append((tensor, cuts))
        numbers = self._numbers(call)
        if not used and not numbers:
            return
        entered = self.session.frames.stack(call.frame)
        outs = tensors_in([call.out])[:_FEW]
        name = ops.bare(call.func)
        added = name in ops.STACKS or (name in ops.SUMS and all(out.numel() == 1 for out in outs))
        constants = []
        for tensor, cuts in used:
            through = name in ops.SUMS and self._is_difference(tensor, call.inputs)
            constants.append(Constant(cuts, entered, through, added and tensor.numel() == 1))
        constants += [Constant(one.cuts, entered, added=added) for one in numbers]
        for out in outs:
            node: Any = out.grad_fn
            if node is not None:
                node.metadata[_CONSTANTS] = tuple(constants)

    def _numbers(self, call: TorchCall) -> list[Departure]:
        """The departures of the numbers that a call was given."""
        if not self.departures:
            return []
        given = [*call.args, *call.kwargs.values()]
        found = self.departures.of(given)
        floats = [one for one in given if type(one) is float] if not found else []
        if floats:
            place = self.session.frames.stack(call.frame)
            found = [one for number in floats if (one := self.departures.proportional(number, place)) is not None]
        return found

    def _number_of(self, node: Any) -> int:
        """What identifies a node: its number; of a leaf's that of the leaf, below zero."""
        return -self.session.ids.of(node.variable) if type(node) is walk.ACCUMULATE else node_number(node)

    def _is_difference(self, tensor: Tensor, summands: Sequence[Tensor]) -> bool:
        """`x + (y - x).detach()`: whether this summand is a difference from another one."""
        known = self._differences.get(_place(tensor))
        if known is None or known[0]() is not tensor:
            return False
        others = (other for other in summands if other is not tensor and other.requires_grad)
        return any(self._number_of(node) == known[1] for node in walk.roots_of(list(others)))

    def _plain(self, call: TorchCall) -> None:
        """Notes that the path from an input that requires grad ends at the result."""
        if call.func in _NO_CUT:
            return
        cuts = self._cut_by(call)
        if cuts:
            self._add(call.out, cuts)
        if cuts and call.func in _DETACHING:
            self._note_memory(call.args[0], call.out, cuts[0])
        elif cuts and not call.out.dim():  # as Variable(loss, requires_grad=True) may give it another name
            _note(self._aliases, _place(call.out), cuts[0])
        elif cuts and call.func is Tensor.clone and self.session.has_optimizer:  # before, it is a template
            _note(self._copies, _place(call.out), cuts[0])

    def _note_memory(self, source: Tensor, out: Tensor, cut: Cut) -> None:
        place = _place(out)
        _note(self._aliases, place, cut)
        if cut.stack and not isinstance(source, torch.nn.Parameter):
            _note(self._detached, place, (weakref.ref(source), cut))
        node: Any = source.grad_fn if cut.behind == "SubBackward0" else None
        if node is not None:
            subtracted = query.slots(node)[1]
            if subtracted is not None:
                _note(self._differences, place, (weakref.ref(out), self._number_of(subtracted)))

    def _several(self, call: TorchCall) -> None:
        outs = call.out if isinstance(call.out, tuple) else ()
        ended = [out for out in outs if isinstance(out, Tensor) and not out.requires_grad]
        cuts = self._cut_by(call) if ended else ()
        for out in ended if cuts else ():
            self._add(out, cuts)

    def _viewed(self, call: TorchCall) -> None:
        """A view that is made with gradients off is a leaf of its own."""
        if torch.is_grad_enabled() or not isinstance(call.out, Tensor):
            return
        source = next(iter(tensors_in(call.args[:1])), None)
        if source is None or not source.requires_grad or not call.out.is_leaf:
            return
        if source.is_leaf:  # a view of such a view, or of a parameter
            self._add(call.out, self.of(source))
            return
        name = call.func.__name__.strip("_")
        stack = self.session.frames.stack(call.frame)
        self._add(call.out, (self._cut("indexing" if name == "getitem" else f"{name}()", "no_grad", [source], stack),))

    def _copied(self, call: TorchCall) -> None:
        """A new leaf of old values; others are plain results."""
        if not isinstance(call.out, Tensor):
            return
        cuts = self._cut_by(call) if call.out.requires_grad else ()
        back = () if cuts else tuple(cut for one in self.departures.of(call.args[:1]) for cut in one.cuts)
        if cuts:
            self._add(call.out, cuts)
        elif call.out.requires_grad:
            # computed with as numbers they have other values: what left last is likely to be it
            lately = back or self.departures.lately(self.session.backward_calls)
            if lately:
                _note(self._aliases, _place(call.out), lately[0])
        elif back and not self.of(call.out):
            self._add(call.out, _few(back))

    def _put(self, call: TorchCall) -> None:
        """`matrix[row] = x` ends the path to `x` in the matrix, if it does not require grad now."""
        target = call.args[0]
        cuts = () if target.requires_grad else self._cut_by(call)
        if cuts:
            self._add(target, cuts)

    def _cut_by(self, call: TorchCall) -> tuple[Cut, ...]:
        """The cuts behind what this call was given, and the one that it makes itself."""
        inputs = call.inputs
        sources = [tensor for tensor in inputs if tensor.requires_grad]
        earlier = [cuts for tensor in inputs if not tensor.requires_grad and (cuts := self.of_value(tensor))]
        if self.departures:
            earlier += [one.cuts for one in self.departures.of([one for one in call.args if type(one) is float])]
        if sources:
            op, why = _reason(call.func)
            earlier.append((self._cut(op, why, sources, self.session.frames.stack(call.frame)),))
        if len(earlier) < 2:
            return earlier[0] if earlier else ()
        found = _few(cut for cuts in earlier for cut in cuts)
        if torch.is_grad_enabled():
            return found
        # whatever else was cut off before: where gradients are off now, nothing gets a graph
        return tuple(sorted(found, key=lambda cut: cut.why != "no_grad" or cut.switched != self._switched))

    def _cut(self, op: str, why: str, sources: Sequence[Tensor], stack: Stack) -> Cut:
        source = sources[0]
        switched = self._switched if why == "no_grad" else ()
        shape = None if is_lazy(source) else tuple(source.shape)
        behind = self._look_behind(sources, stack)
        cut = Cut(op, why, stack, switched, behind=_node(source), shape=shape, aside=self._aside(stack))
        if behind is not None and behind.first is None:
            behind.first = cut
        return cut

    def _look_behind(self, sources: Sequence[Tensor], stack: Stack) -> _Behind | None:
        known = self._behind.get(stack)
        if known is None:
            if len(self._behind) >= _PLACES:
                return None
            known = self._behind[stack] = _Behind(self.session.backward_calls)
        known.cuts += 1
        sources = [_viewed(source) for source in sources]
        made = [source for source in sources if not source.is_leaf]
        known.leaves.update(self.session.ids.of(source) for source in sources if source.is_leaf)
        if made and known.walks < _WALKS:
            known.walks += 1
            known.leaves |= self.session.ids.of_all(_leaves_of(made))
        return known

    def _aside(self, stack: Stack) -> bool:
        known = self._asides.get(stack)
        if known is None:
            behind = self._behind.get(stack)
            if not self.session.has_optimizer or behind is None or not behind.leaves:
                return False
            known = self._asides[stack] = not any(map(self.session.is_owned, behind.leaves))
        return known

    def _add(self, tensor: torch.Tensor, cuts: tuple[Cut, ...]) -> None:
        if not cuts:
            return
        if len(self._known) >= _MANY:
            self._known = {key: value for key, value in self._known.items() if value[0]() is not None}
        if len(self._known) < 4 * _MANY:
            self._known[id(tensor)] = weakref.ref(tensor), cuts

    def _leaves_torch(self, call: TorchCall) -> None:
        tensor = call.args[0]
        cuts = self.of_value(tensor)
        if tensor.requires_grad:
            cuts = (self._cut(_LEAVING[call.func], "detached", [tensor], self.session.frames.stack(call.frame)),)
        if cuts:
            self.departures.leave(call.out, cuts, self.session.backward_calls)
            if type(call.out).__module__ == "numpy":
                _note(self._arrays, _place(tensor), (weakref.ref(call.out), cuts))

    def crashed(self, error: BaseException, stack: Stack) -> None:
        """`backward` is called on a number: no call of torch's sees that."""
        value = getattr(error, "obj", None)
        number = isinstance(value, (int, float)) or type(value).__module__ == "numpy"
        if not isinstance(error, AttributeError) or error.name != "backward" or not number or not self.departures:
            return
        same = self.departures.of([value])
        cut = same[0].cuts[0] if same else self.departures.last[-1][0]
        root = questions.root_of(stack[0]) if stack else ""
        self.session.emit(
            Backward(
                self.session.backward_calls + 1,
                "backward",
                stack,
                root,
                -1,
                False,
                False,
                0,
                error=first_line(error),
                cuts=(cut,),
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
            if self.session.owned(call.args[0]):
                self._frozen_late.add(stack)
            self._look_behind([call.args[0]], stack)


def _note(table: dict[int, T], key: int, value: T) -> None:
    """Puts it at the end of a table that holds the last ones."""
    table.pop(key, None)
    if len(table) >= _MANY:
        del table[next(iter(table))]
    table[key] = value


def _few(cuts: Iterable[Cut]) -> tuple[Cut, ...]:
    """A few of the cuts, one of each place, those first that matter to an optimizer."""
    places: dict[tuple[Stack, str], Cut] = {}
    for cut in cuts:
        places.setdefault((cut.stack, cut.why), cut)
    return tuple(sorted(places.values(), key=lambda cut: cut.aside))[:_FEW]


def _leaves_of(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Also those of a graph that a backward call has freed: the values still come from there."""
    try:
        return [node.variable for node in query.below(walk.roots_of(tensors)) if type(node) is walk.ACCUMULATE]
    except RuntimeError:  # a view made under no_grad whose base was written to has no node
        return []


def _viewed(tensor: Tensor) -> Tensor:
    """A view made under no_grad passes for a leaf: what it is a view of has the graph."""
    base = tensor._base if tensor.is_leaf and tensor._is_view() else None
    return tensor if base is None else base


def _reason(func: Any) -> tuple[str, str]:
    """What to call the cutting operation, and why it cut."""
    if func in _DETACHING:
        return _DETACHING[func], "detached" if torch.is_grad_enabled() else "no_grad"
    if func in _COPYING:
        return _COPYING[func], "copied"
    name = ops.bare(func)
    return ops.COMPARISONS.get(name, f"{name}()"), "not differentiable" if torch.is_grad_enabled() else "no_grad"


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
