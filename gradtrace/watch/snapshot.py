"""Pictures of graphs: turns the nodes below a root into a plain `Graph`, before the backward call frees them.

What the graph itself does not keep (inputs that need no gradient, cuts, modules) is noted at each call while pictures
are wanted; that is too dear for `check`, which does without.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import FrameType
from typing import Any

import torch

from gradtrace.model import source
from gradtrace.model.events import Cut
from gradtrace.model.graph import Edge, Graph, Kind, Node, Saved, SavedState, TensorFact
from gradtrace.model.site import Stack
from gradtrace.script import StopRun
from gradtrace.watch import names, walk
from gradtrace.watch.backward import FREED, BackwardCall
from gradtrace.watch.calls import ModuleCalls
from gradtrace.watch.cuts import Cuts
from gradtrace.watch.flow import Flow
from gradtrace.watch.observer import Handler, Observer, TorchCall
from gradtrace.watch.saved import memory
from gradtrace.watch.session import Session

#: calls remembered for the pictures
_KEEP = 200_000


@dataclass(frozen=True, slots=True)
class _Input:
    """An input that needs no gradient."""

    name: str | None
    tensor: TensorFact
    cuts: tuple[Cut, ...]
    #: identity, for a frozen parameter whose name is looked up later; 0 for what may be gone by then
    parameter: int


@dataclass(frozen=True, slots=True)
class _Made:
    """What one call knew that its nodes do not."""

    function: str
    #: the number after that of the last node it made
    end: int
    #: number of the innermost module call it ran in
    call: int
    inputs: tuple[_Input, ...]


class Snapshots(Observer):
    """Takes a picture at the first backward call of each line. `line` and `tensor` choose one; `stop_when_repeated`
    ends the run when a line comes round a second time; `gradients` reads what comes by at each node; `remaining`: what
    is left at the end is shown where there was no call."""

    def __init__(
        self,
        stop_when_repeated: bool = True,
        tensor: str | None = None,
        line: int | None = None,
        gradients: bool = False,
        remaining: bool = True,
    ) -> None:
        self._remaining = remaining
        self.graphs: list[Graph] = []
        self._gradients = gradients
        self._flow: Flow | None = None
        self._stop_when_repeated = stop_when_repeated
        self._tensor = tensor
        self._line = line
        self._seen: set[tuple[str, int]] = set()
        self._starts: list[int] = []
        self._made: list[_Made] = []
        self.calls = ModuleCalls()

    def attach(self, session: Session, cuts: Cuts) -> None:
        super().__init__(session)
        self._cuts = cuts

    def why_nothing(self) -> str:
        """One line for the case that there is no picture."""
        if self._tensor is not None:
            return f"no tensor with a graph is called {self._tensor}: name a variable that the script has when it ends"
        if self._line is not None:
            return f"no backward() or autograd.grad() call on line {self._line} was reached"
        return (
            "no graph: the script called neither backward() nor autograd.grad(), and no tensor with a grad_fn remains"
        )

    def made_nodes(self) -> Handler:
        return self._note

    def _note(self, call: TorchCall) -> None:
        running = self.calls.innermost(call.frame)
        inputs = tuple(self._inputs(call))
        self._starts.append(call.before)
        self._made.append(_Made(getattr(call.func, "__name__", ""), call.after, running, inputs))
        if len(self._starts) >= 2 * _KEEP:
            del self._starts[:_KEEP], self._made[:_KEEP]

    def _inputs(self, call: TorchCall) -> Iterable[_Input]:
        constants = [one for one in call.inputs if not one.requires_grad]
        if not constants:
            return
        named = self._names_at(call.frame)
        for tensor in constants:
            name = next((text for text, value in named if value is tensor), None)
            parameter = id(tensor) if isinstance(tensor, torch.nn.Parameter) else 0
            yield _Input(name, _fact(tensor), self._cuts.of(tensor), parameter)

    def _names_at(self, frame: FrameType | None) -> list[tuple[str, Any]]:
        """The names and attributes that the user's statement reads, with their values."""
        frames = self.session.frames
        while frame is not None and not frames.is_user(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return []
        scope = names.variables(frame)
        reads = sorted(source.reads(frames.stack(frame)[0]), key=lambda text: (len(text), text))
        return [(text, names.value_of(text, scope, frame.f_globals)) for text in reads]

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        self._flow = None
        if not call.stack:
            return
        if self._tensor is not None:
            self._take_named(frame)
            return
        place = call.stack[0].place
        if place in self._seen:
            if self._stop_when_repeated or self._line is not None:
                raise StopRun
            return
        if self._line in (None, place[1]):
            self._seen.add(place)
            request = "backward" if call.accumulates else "grad"
            self.graphs.append(self._picture(outputs, frame, request, call.stack, call.retain, call.create, call.root))

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        """Puts the gradients that came by into the picture."""
        if self._flow is None:
            return
        self._flow.close()
        self._put_gradients(self._flow)
        if call.accumulates:
            self._flow = None

    def functions(self) -> Mapping[Any, Handler]:
        return {torch.autograd.grad: self._differentiated} if self._gradients else {}

    def _differentiated(self, call: TorchCall) -> None:
        flow, self._flow = self._flow, None
        inputs = call.args[1] if len(call.args) > 1 else call.kwargs.get("inputs", ())
        if flow is not None:
            flow.returned([inputs] if isinstance(inputs, torch.Tensor) else list(inputs), call.out)
            self._put_gradients(flow)

    def _put_gradients(self, flow: Flow) -> None:
        graph = self.graphs[-1]
        nodes = tuple(replace(node, gradient=flow.found.get(node.id)) for node in graph.nodes)
        self.graphs[-1] = replace(graph, nodes=nodes)

    def _take_named(self, frame: FrameType | None) -> None:
        wanted = [
            tensor
            for name, tensor in names.tensors(frame, self.session.frames)
            if name == self._tensor and _has_graph(tensor)
        ]
        if wanted:
            self.graphs.append(self._picture(wanted[:1], frame, "", (), False, False, self._tensor or ""))
            raise StopRun

    def at_end(self) -> None:
        if self.graphs or self._line is not None or not self._remaining:
            return
        found = [(name, tensor) for name, tensor in names.tensors(None, self.session.frames) if _has_graph(tensor)]
        wanted = self._tensor
        roots = _unconsumed(found) if wanted is None else [pair for pair in found if pair[0] == wanted][:1]
        for name, tensor in roots:
            self.graphs.append(self._picture([tensor], None, "", (), False, False, name))

    def take(self, outputs: Sequence[torch.Tensor], frame: FrameType | None) -> Graph:
        """A picture of the graph behind these tensors as it is now."""
        return self._picture(outputs, frame, "now", (), False, False, "")

    def _picture(
        self,
        outputs: Sequence[Any],
        frame: FrameType | None,
        request: str,
        stack: Stack,
        retain: bool,
        create: bool,
        root: str,
    ) -> Graph:
        with torch._C.DisableTorchFunction():
            found = list(names.everything(frame, self.session.frames))
            picture = _Picture(self, found)
            graph = picture.of(outputs, root)
            if self._gradients and stack:
                self._flow = Flow(self.session, picture.ids)
        return replace(graph, request=request, stack=stack, retain_graph=retain, create_graph=create)

    def made_at(self, number: int) -> _Made | None:
        at = bisect_right(self._starts, number) - 1
        return self._made[at] if at >= 0 and number < self._made[at].end else None

    def call_at(self, number: int) -> int:
        """The innermost module call that a node was made in; for a node that no torch call made, the one around both
        neighbours."""
        at = bisect_right(self._starts, number) - 1
        if at >= 0 and number < self._made[at].end:
            return self._made[at].call
        around = self._made[max(at, 0) : at + 2]
        return self.calls.common(around[0].call, around[1].call) if len(around) == 2 and at >= 0 else 0


class _Picture:
    """One graph being drawn."""

    def __init__(self, snapshots: Snapshots, named: list[tuple[str, Any]]) -> None:
        self.session = snapshots.session
        self._made_at = snapshots.made_at
        self._call_at = snapshots.call_at
        self._calls = snapshots.calls
        self._modules = {id(one): name for name, one in reversed(named) if isinstance(one, torch.nn.Module)}
        pairs = [(name, one) for name, one in named if isinstance(one, torch.Tensor)]
        self._leaf_names = {id(tensor): name for name, tensor in reversed(pairs)}
        self._live = {
            (tensor.grad_fn, tensor.output_nr): (name, tensor) for name, tensor in reversed(pairs) if _has_graph(tensor)
        }
        self._parameters: list[torch.Tensor] = [tensor for _, tensor in pairs if isinstance(tensor, torch.nn.Parameter)]
        modules = [one for _, one in named if isinstance(one, torch.nn.Module)]
        self._parameters += [buffer for one in modules for buffer in one._buffers.values() if buffer is not None]
        self.ids: dict[Any, int] = {}
        self._rank: dict[int, int] = {}
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._users: dict[Any, list[Any]] = {}

    def of(self, outputs: Sequence[Any], root: str) -> Graph:
        roots = walk.roots_of(outputs)
        order = self._walk(roots)
        last = self._last_of_calls(order)
        root_values = dict(zip(roots, outputs, strict=False))
        fresh = len(order)
        for node in order:
            at = self.ids[node]
            inputs = node.next_functions
            self._edges += [
                Edge(at, self.ids[child], number, out)
                for number, (child, out) in enumerate(inputs)
                if child is not None
            ]
            made = last.get(node)
            if made is not None:
                free = [number for number, (child, _) in enumerate(inputs) if child is None]
                fresh = self._add_constants(at, made, free, len(inputs), fresh)
        operations = [node for node in order if type(node) is not walk.ACCUMULATE]
        running = {node: self._call_at(node._sequence_nr()) for node in operations}
        self._rank = {number: rank for rank, number in enumerate(sorted(n._sequence_nr() for n in operations), 1)}
        leaves = [node.variable for node in order if type(node) is walk.ACCUMULATE]
        self._storages = Storages([*self._parameters, *leaves])
        calls = self._calls.described(set(running.values()), self._modules)
        paths = {call.number: call.path for call in calls}
        constants = self._nodes
        self._nodes = [
            self._node(node, root_values.get(node), root, running.get(node, 0), paths) for node in order
        ] + constants
        walk.keep(order)
        ids = tuple(dict.fromkeys(self.ids[node] for node in roots))
        reached = {id(leaf) for leaf in leaves}
        absent = (self._leaf_names[id(one)] for one in self._parameters if one.requires_grad and id(one) not in reached)
        graph = Graph(ids, tuple(self._nodes), tuple(self._edges), calls=calls, absent=tuple(dict.fromkeys(absent)))
        return _with_short_names(graph, self._modules.values())

    def _walk(self, roots: Sequence[Any]) -> list[Any]:
        order: list[Any] = []
        waiting = list(reversed(roots))
        while waiting:
            node = waiting.pop()
            if node in self.ids:
                continue
            order.append(node)
            self.ids[node] = len(order)
            children = [child for child, _ in node.next_functions if child is not None]
            for child in children:
                self._users.setdefault(child, []).append(node)
            waiting += reversed(children)
        return order

    def _last_of_calls(self, order: list[Any]) -> dict[Any, _Made]:
        """For each call the node of its output: the last it made, of those in the graph."""
        last: dict[int, tuple[int, Any, _Made]] = {}
        for node in order:
            if type(node) is walk.ACCUMULATE:
                continue
            number = node._sequence_nr()
            made = self._made_at(number)
            if made is not None and (id(made) not in last or last[id(made)][0] < number):
                last[id(made)] = number, node, made
        return {node: made for _, node, made in last.values()}

    def _add_constants(self, user: int, made: _Made, free: list[int], next_input: int, fresh: int) -> int:
        numbers = [*free, *range(next_input, next_input + len(made.inputs))]
        for number, given in zip(numbers, made.inputs, strict=False):
            fresh += 1
            self._edges.append(Edge(user, fresh, number))
            if not given.cuts:
                name = given.name or self._leaf_names.get(given.parameter)
                self._nodes.append(Node(fresh, Kind.CONSTANT, "", name, (given.tensor,)))
                continue
            cut = given.cuts[0]
            op = "no_grad" if cut.why == "no_grad" else cut.op
            self._nodes.append(Node(fresh, Kind.CUT, op, given.name, (given.tensor,), cut.stack))
            fresh += 1
            self._edges.append(Edge(fresh - 1, fresh, 0))
            self._nodes.append(Node(fresh, Kind.CONSTANT, cut.behind, cut.source, (TensorFact(cut.shape),)))
        return fresh

    def _node(self, node: Any, output: Any, root: str, call: int, paths: Mapping[int, str]) -> Node:
        if type(node) is walk.ACCUMULATE:
            return self._leaf(node)
        number = node._sequence_nr()
        stack = self.session.trail.find(number)
        made = self._made_at(number)
        saved, hooked = saved_tensors(node, self._storages)
        name, live = self._live.get((node, 0), (None, None))
        if output is not None:
            name, live = name or root or None, output
        tags = _tags(node, made, saved, hooked, self.session.is_created(number), live)
        return Node(
            id=self.ids[node],
            kind=Kind.OP,
            op=type(node).__name__,
            name=name or (self._assigned(node, stack) if made is None or number == made.end - 1 else None),
            outputs=tuple(_known_fact(tuple(one.shape), one.dtype, one.device) for one in node._input_metadata),
            stack=stack,
            module=paths.get(call, ""),
            saved=saved,
            value=_value(output),
            tags=tags,
            call=call if call in paths else 0,
            made=self._rank[number],
        )

    def _assigned(self, node: Any, stack: Stack) -> str | None:
        """The variable that the statement assigns, if this node is the statement's last."""
        if not stack:
            return None
        targets = source.assigned(stack[0])
        here = source.statement(*stack[0].place)
        for user in self._users.get(node, ()):
            other = self.session.trail.find(user._sequence_nr())
            if other and source.statement(*other[0].place) is here:
                return None
        return targets[0] if len(targets) == 1 else None

    def _leaf(self, node: Any) -> Node:
        leaf = node.variable
        known = self.session.gradients.known(leaf)
        name = self._leaf_names.get(id(leaf)) or (known.name if known and known.named else None)
        return Node(self.ids[node], Kind.LEAF, "", name, (_fact(leaf),), grad=_grad(leaf), value=_value(leaf))


def _with_short_names(graph: Graph, modules: Iterable[str]) -> Graph:
    """Where all modules and parameters hang on one variable (`model.`), names go without it."""
    paths = [call.path for call in graph.calls]
    roots = {name for name in modules if any(_below(path, name) for path in paths)}
    outer = {name for name in roots if not any(_below(name, other) and name != other for other in roots)}
    prefix = next(iter(outer), "")
    if len(outer) != 1 or "." in prefix or any(path.removeprefix(f"{prefix}.")[:1].isdigit() for path in paths):
        return graph
    calls = tuple(replace(call, path=_shorter(call.path, prefix)) for call in graph.calls)
    absent = tuple(_shorter(name, prefix) for name in graph.absent)
    return replace(graph, nodes=tuple(_without(node, prefix) for node in graph.nodes), calls=calls, absent=absent)


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}.")


def _shorter(path: str, prefix: str) -> str:
    return "" if path == prefix else path.removeprefix(f"{prefix}.")


def _without(node: Node, prefix: str) -> Node:
    name = node.name.removeprefix(f"{prefix}.") if node.name and node.kind is Kind.LEAF else node.name
    module = _shorter(node.module, prefix)
    return node if (name, module) == (node.name, node.module) else replace(node, name=name, module=module)


def _grad(leaf: torch.Tensor) -> str:
    if leaf.grad is None:
        return "None"
    return "accumulated" if leaf.grad.is_sparse or bool(leaf.grad.any()) else "zero"


def _has_graph(tensor: torch.Tensor) -> bool:
    try:
        return tensor.requires_grad and tensor.grad_fn is not None
    except RuntimeError:  # a view made under no_grad, whose base was written to afterwards
        return False


def _unconsumed(found: list[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
    """Those whose node no other one's graph contains; of several names of one tensor the first."""
    first: dict[Any, tuple[str, torch.Tensor]] = {tensor.grad_fn: (name, tensor) for name, tensor in reversed(found)}
    inner: set[Any] = set()
    for node in first:
        if node in inner:
            continue
        waiting = [child for child, _ in node.next_functions]
        while waiting:
            child = waiting.pop()
            if child is not None and child not in inner:
                inner.add(child)
                waiting += [below for below, _ in child.next_functions]
    return [first[node] for node in sorted(first.keys() - inner, key=lambda node: node._sequence_nr())]


def _fact(tensor: torch.Tensor) -> TensorFact:
    return _known_fact(tuple(tensor.shape), tensor.dtype, tensor.device)


@lru_cache(maxsize=4096)  # many nodes of a large graph share one
def _known_fact(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> TensorFact:
    return TensorFact(shape, _short(dtype), str(device))


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _value(tensor: Any) -> str | None:
    if not isinstance(tensor, torch.Tensor) or tensor.numel() != 1 or tensor.dim() > 0 or tensor.is_complex():
        return None
    return f"{tensor.item():.6g}"


_SAVED_NAMES: dict[type, tuple[str, ...]] = {}


class Storages:
    """Numbers the memories in which saved tensors lie; knows those of parameters and buffers by their address."""

    def __init__(self, parameters: Iterable[torch.Tensor] = ()) -> None:
        self._numbers: dict[int, int] = {}
        self._parameters = {address for one in parameters if (address := memory(one))}

    def of(self, tensor: torch.Tensor) -> tuple[int, int, bool]:
        """The number of the memory, its bytes, and whether it is a parameter's; zeros where there is none to see."""
        address = memory(tensor)
        if not address:
            return 0, 0, False
        number = self._numbers.setdefault(address, len(self._numbers) + 1)
        return number, tensor.untyped_storage().nbytes(), address in self._parameters


def saved_tensors(node: Any, storages: Storages | None = None) -> tuple[tuple[Saved, ...], bool]:
    """The node's saved tensors, and whether some are behind `saved_tensors_hooks`: those are not unpacked, since that
    runs the user's code (a checkpoint's forward)."""
    kind = type(node)
    if kind not in _SAVED_NAMES:
        _SAVED_NAMES[kind] = tuple(name[4:] for name in dir(node) if name.startswith("_raw_saved_"))
    found: list[Saved] = []
    hooked = False
    for name in _SAVED_NAMES[kind]:
        raws, _ = _get(node, f"_raw{name}")
        many = isinstance(raws, (list, tuple))
        if any(getattr(raw, "unpack_hook", None) is not None for raw in (raws if many else [raws])):
            hooked = True
            continue
        # a custom Function has no `_saved_tensors`
        value, state = _get(node, name if hasattr(type(node), name) else name[1:])
        label = name.removeprefix("_saved_")
        if state is not SavedState.HELD:
            found.append(Saved(label, TensorFact(None), 0, state))
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        for index, one in enumerate(values):
            if isinstance(one, torch.Tensor):
                named = label if len(values) == 1 else f"{label}[{index}]"
                found.append(Saved(named, _fact(one), _bytes(one), SavedState.HELD, *(storages or Storages()).of(one)))
    return tuple(found), hooked


def _get(node: Any, name: str) -> tuple[Any, SavedState]:
    try:
        return getattr(node, name), SavedState.HELD
    except RuntimeError as error:
        return None, SavedState.FREED if FREED in str(error) else SavedState.MODIFIED


def _bytes(tensor: torch.Tensor) -> int:
    return 0 if tensor.layout is not torch.strided else tensor.numel() * tensor.element_size()


def _tags(
    node: Any, made: _Made | None, saved: tuple[Saved, ...], hooked: bool, created: bool, live: Any
) -> tuple[str, ...]:
    name = type(node).__name__
    states = {one.state for one in saved}
    told = {
        "freed": SavedState.FREED in states,
        "modified in place": SavedState.MODIFIED in states,
        "custom Function": hasattr(type(node), "_forward_cls") and not name.startswith("Checkpoint"),
        "checkpoint": name.startswith("CheckpointFunction") or hooked,
        "in-place": made is not None and _writes_in_place(made.function),
        "view": name in walk.VIEWS,
        "double backward": created,
        "hook": isinstance(live, torch.Tensor) and bool(live._backward_hooks),
    }
    return tuple(tag for tag, true in told.items() if true)


def _writes_in_place(function: str) -> bool:
    """`add_`, `__iadd__`, but not `__add__`."""
    return function.startswith("__i") if function.endswith("__") else function.endswith("_")
