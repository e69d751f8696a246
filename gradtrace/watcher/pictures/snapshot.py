"""Pictures of graphs: turns the nodes below a root into a plain `Graph`, before the backward call frees them.

What the graph itself does not keep (inputs that need no gradient, cuts, modules) is noted at each call while pictures
are wanted; that is too dear for `check`, which does without.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, compress
from types import FrameType
from typing import Any, NamedTuple

import torch

from gradtrace.host import heap
from gradtrace.host.script import StopRun
from gradtrace.model.graph import Edge, Graph, Kind, Node, Saved, SavedState, TensorFact
from gradtrace.model.site import Stack
from gradtrace.source import questions, syntax
from gradtrace.watcher import compat
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import (
    DisableTorchFunction,
    function_of,
    local_part,
    node_number,
    output_metadata,
    placement,
    raw_attribute,
    saved_tensor_names,
    unpacked_attribute,
)
from gradtrace.watcher.core.backward import FREED, BackwardCall
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import ops, query, walk
from gradtrace.watcher.graph.saved import is_hooked, memory
from gradtrace.watcher.pictures.flow import Flow
from gradtrace.watcher.pictures.module_calls import ModuleCalls
from gradtrace.watcher.pictures.notes import CallNote, Input, Notes

_UNKNOWN = TensorFact(None)
_HOOKED = object()
_TAGS = "freed, modified in place, custom Function, checkpoint, in-place, view, double backward, hook".split(", ")


class Snapshots(Observer):
    """Takes a picture at the first backward call of each line. `line` and `tensor` choose one; `stop_when_repeated`
    ends the run when a line runs a second time; `gradients` reads the gradient at each node; `remaining`: what
    is left at the end is shown where there was no call."""

    serves_rules = False

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
        self.notes = Notes()
        self.calls = ModuleCalls()

    def attach(self, session: Session, cuts: Origins) -> None:
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
        constants = [one for one in call.inputs if not one.requires_grad]
        inputs = tuple(self._inputs(call, constants)) if constants else ()
        self.notes.add(call.before, call.after, CallNote(getattr(call.func, "__name__", ""), running, inputs))

    def _inputs(self, call: TorchCall, constants: Iterable[torch.Tensor]) -> Iterable[Input]:
        named = self._names_at(call.frame)
        for tensor in constants:
            name = next((text for text, value in named if value is tensor), None)
            parameter = id(tensor) if isinstance(tensor, torch.nn.Parameter) else 0
            yield Input(name, _fact(tensor), self._cuts.of(tensor), parameter)

    def _names_at(self, frame: FrameType | None) -> list[tuple[str, Any]]:
        """The names and attributes that the user's statement reads, with their values."""
        frames = self.session.frames
        while frame is not None and not frames.is_user(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return []
        scope = names.variables(frame)
        reads = sorted(questions.reads(frames.stack(frame)[0]), key=lambda text: (len(text), text))
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
            self.graphs.append(self.picture_of(call, frame, outputs))

    def picture_of(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> Graph:
        """The graph that a backward call is about to run through."""
        request = "backward" if call.accumulates else "grad"
        return self._picture(outputs, frame, request, call.stack, call.retain, call.create, call.root)

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
        nodes = tuple(node._replace(gradient=flow.found.get(node.id)) for node in graph.nodes)
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
        with DisableTorchFunction(), heap.uncollected():
            found = list(names.everything(frame, self.session.frames))
            picture = _GraphSnapshot(self, found)
            graph = picture.of(outputs, root)
            if self._gradients and stack:
                self._flow = Flow(self.session, picture.ids)
        return replace(graph, request=request, stack=stack, retain_graph=retain, create_graph=create)

    def call_at(self, number: int) -> int:
        """The innermost module call that a node was made in; for a node that no torch call made, the one around both
        neighbours."""
        around = self.notes.around(number)
        return self.calls.common(around[0].call, around[-1].call) if around else 0


class _GraphSnapshot:
    """One graph being drawn."""

    def __init__(self, snapshots: Snapshots, named: list[tuple[str, Any]]) -> None:
        self.session = snapshots.session
        self._notes = snapshots.notes
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
        #: the nodes, numbered from 1 in the order of the walk
        self.ids: dict[Any, int] = {}
        # of each node by its id, what was noted when it was made: in lists, since graphs are large
        self._numbers = array("q", [-1])
        self._stacks: list[Stack] = [()]
        self._makers = array("q", [-1])
        self._said: dict[int, tuple[object, str | None]] = {}
        self._nodes: list[Node] = []
        self._edges: list[Edge] = []
        self._outputs: dict[tuple[TensorFact, ...], tuple[TensorFact, ...]] = {}

    def of(self, outputs: Sequence[Any], root: str) -> Graph:
        roots = walk.roots_of(outputs)
        self.ids = {node: at for at, node in enumerate(query.below(roots, query.WHOLE), start=1)}
        self._look_up()
        created = [number for node, number in self.ids.items() if type(node) is not walk.ACCUMULATE]
        created.sort(key=self._numbers.__getitem__)
        #: whether another operation of the same statement reads it
        self._inner = bytearray(len(self._numbers))
        self._add_edges(self._last_of_calls(created))
        leaves = [node.variable for node in self.ids if type(node) is walk.ACCUMULATE]
        self._storages = Storages([*self._parameters, *leaves])
        self._running = [self._call_at(number) for number in self._numbers]
        calls = self._calls.described(set(self._running), self._modules)
        self._paths = {call.number: call.path for call in calls}
        self._ranks = [0] * len(self._numbers)
        for rank, number in zip(self.ids.values(), created, strict=False):
            self._ranks[number] = rank
        values = dict(zip(roots, outputs, strict=False))
        drawn = (
            self._leaf(node) if type(node) is walk.ACCUMULATE else self._operation(node, number, values.get(node), root)
            for node, number in self.ids.items()
        )
        nodes = tuple(chain(drawn, self._nodes))
        ids = tuple(dict.fromkeys(self.ids[node] for node in roots))
        reached = {id(leaf) for leaf in leaves}
        absent = (self._leaf_names[id(one)] for one in self._parameters if one.requires_grad and id(one) not in reached)
        graph = Graph(ids, nodes, tuple(self._edges), calls=calls, absent=tuple(dict.fromkeys(absent)))
        return _with_short_names(graph, self._modules.values())

    def _look_up(self) -> None:
        for node in self.ids:
            number = -1 if type(node) is walk.ACCUMULATE else node_number(node)
            self._numbers.append(number)
            self._stacks.append(self.session.trail.find(number))
            self._makers.append(self._notes.find(number))

    def _statement(self, stack: Stack) -> tuple[object, str | None]:
        """The statement at a place, and the variable that it assigns."""
        known = self._said.get(id(stack))
        if known is None:
            targets = questions.assigned(stack[0]) if stack else []
            statement = syntax.statement(*stack[0].place) if stack else None
            known = self._said[id(stack)] = statement, targets[0] if len(targets) == 1 else None
        return known

    def _last_of_calls(self, created: list[int]) -> set[int]:
        """For each call that had constants the node of its output: the last it made, of those in the graph."""
        makers = ((number, self._makers[number]) for number in created)
        return set({at: number for number, at in makers if at >= 0 and self._notes.made[at].inputs}.values())

    def _add_edges(self, last_of_calls: set[int]) -> None:
        fresh = len(self.ids)
        for node, user in self.ids.items():
            inputs = query.edges(node)
            statement = self._statement(self._stacks[user])[0]
            for at, (child, output) in enumerate(inputs):
                if child is not None:
                    read = self.ids[child]
                    self._edges.append(Edge(user, read, at, output))
                    self._inner[read] |= self._statement(self._stacks[read])[0] is statement
            if user in last_of_calls:
                free = [at for at, (child, _) in enumerate(inputs) if child is None]
                given = self._notes.made[self._makers[user]].inputs
                fresh = self._add_constants(user, given, free, len(inputs), fresh)

    def _add_constants(self, user: int, inputs: Sequence[Input], free: list[int], next_input: int, fresh: int) -> int:
        numbers = [*free, *range(next_input, next_input + len(inputs))]
        for number, given in zip(numbers, inputs, strict=False):
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

    def _operation(self, node: Any, number: int, output: Any, root: str) -> Node:
        at, stack, call = self._makers[number], self._stacks[number], self._running[number]
        made = self._notes.made[at] if at >= 0 else None
        saved, hooked = saved_tensors(node, self._storages)
        name, live = self._live.get((node, 0), (None, None))
        if output is not None:
            name, live = name or root or None, output
        if (
            name is None
            and not self._inner[number]
            and (made is None or self._notes.is_last(at, self._numbers[number]))
        ):
            name = self._statement(stack)[1]
        outputs = tuple([_known_fact(tuple(one.shape), one.dtype, one.device) for one in output_metadata(node)])
        return Node(
            id=number,
            kind=Kind.OP,
            op=_kind_of(node).name,
            name=name,
            outputs=self._outputs.setdefault(outputs, outputs),
            stack=stack,
            module=self._paths.get(call, ""),
            saved=saved,
            value=value_of(output),
            tags=_tags(node, made, saved, hooked, self.session.is_created(self._numbers[number]), live),
            call=call if call in self._paths else 0,
            made=self._ranks[number],
        )

    def _leaf(self, node: Any) -> Node:
        leaf = node.variable
        known = self.session.book.known(leaf)
        name = self._leaf_names.get(id(leaf)) or (known.name if known and known.named else None)
        return Node(
            self.ids[node],
            Kind.LEAF,
            "",
            name,
            (_fact(leaf),),
            grad=_grad(leaf),
            value=value_of(leaf),
            tags=_placed(leaf),
        )


def _with_short_names(graph: Graph, modules: Iterable[str]) -> Graph:
    """Where all modules and parameters belong to one variable (`model.`), names go without it."""
    paths = [call.path for call in graph.calls]
    roots = {name for name in modules if any(_below(path, name) for path in paths)}
    outer = {name for name in roots if not any(_below(name, other) and name != other for other in roots)}
    prefix = next(iter(outer), "")
    if len(outer) != 1 or "." in prefix or any(path.removeprefix(f"{prefix}.")[:1].isdigit() for path in paths):
        return graph
    calls = tuple(call._replace(path=_shorter(call.path, prefix)) for call in graph.calls)
    absent = tuple(_shorter(name, prefix) for name in graph.absent)
    return replace(graph, nodes=tuple(_without(node, prefix) for node in graph.nodes), calls=calls, absent=absent)


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}.")


def _shorter(path: str, prefix: str) -> str:
    return "" if path == prefix else path.removeprefix(f"{prefix}.")


def _without(node: Node, prefix: str) -> Node:
    name = node.name.removeprefix(f"{prefix}.") if node.name and node.kind is Kind.LEAF else node.name
    module = _shorter(node.module, prefix)
    return node if (name, module) == (node.name, node.module) else node._replace(name=name, module=module)


def _placed(leaf: torch.Tensor) -> tuple[str, ...]:
    found = placement(leaf)
    return (found,) if found else ()


def _grad(leaf: torch.Tensor) -> str:
    if leaf.grad is None:
        return "None"
    return "accumulated" if leaf.grad.is_sparse or bool(local_part(leaf.grad).any()) else "zero"


def _has_graph(tensor: torch.Tensor) -> bool:
    try:
        return tensor.requires_grad and tensor.grad_fn is not None
    except RuntimeError:  # a view made under no_grad, whose base was written to afterwards
        return False


def _unconsumed(found: list[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
    """Those whose node no other one's graph contains; of several names of one tensor the first."""
    first: dict[Any, tuple[str, torch.Tensor]] = {tensor.grad_fn: (name, tensor) for name, tensor in reversed(found)}
    outermost = first.keys() - query.strictly_below(first)
    return [first[node] for node in sorted(outermost, key=node_number)]


def _fact(tensor: torch.Tensor) -> TensorFact:
    return _known_fact(tensor.shape, tensor.dtype, tensor.device)


@lru_cache(maxsize=4096)  # many nodes of a large graph share one
def _known_fact(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> TensorFact:
    return TensorFact(tuple(shape), _short(dtype), str(device))


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def value_of(tensor: Any) -> str | None:
    """The value of a scalar; None for all else."""
    if not isinstance(tensor, torch.Tensor) or tensor.numel() != 1 or tensor.dim() > 0 or tensor.is_complex():
        return None
    return f"{tensor.item():.6g}" if local_part(tensor) is tensor else None


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

    def saved(self, name: str, tensor: torch.Tensor) -> Saved:
        """What there is to know of a tensor that is saved under this name."""
        size = 0 if tensor.layout is not torch.strided else tensor.numel() * tensor.element_size()
        return Saved(name, _fact(tensor), size, SavedState.HELD, *self.of(tensor))


def saved_tensors(node: Any, storages: Storages | None = None) -> tuple[tuple[Saved, ...], bool]:
    """The node's saved tensors, and whether some are behind `saved_tensors_hooks`: those are not unpacked, since that
    runs the user's code (a checkpoint's forward)."""
    storages = storages or Storages()
    found: list[Saved] = []
    hooked = False
    for label, raw, saved in _kind_of(node).saved:
        try:
            value = _HOOKED if is_hooked(getattr(node, raw)) else getattr(node, saved)
        except RuntimeError as error:
            state = SavedState.FREED if FREED in str(error) else SavedState.MODIFIED
            found.append(Saved(label, _UNKNOWN, 0, state))
            continue
        if value is _HOOKED:
            hooked = compat.SHOWS_SAVED  # otherwise there only may be one
        elif isinstance(value, torch.Tensor):
            found.append(storages.saved(label, value))
        elif isinstance(value, (list, tuple)):
            names = [label] if len(value) == 1 else [f"{label}[{index}]" for index in range(len(value))]
            found += [
                storages.saved(name, one)
                for name, one in zip(names, value, strict=True)
                if isinstance(one, torch.Tensor)
            ]
    return tuple(found), hooked


class _NodeKind(NamedTuple):
    """What all nodes of a kind have in common."""

    #: `AddBackward0`; torch makes the text again each time it is read
    name: str
    #: the name of each tensor they save, and the attributes by which it is reached as it lies, and unpacked
    saved: tuple[tuple[str, str, str], ...]
    custom: bool
    checkpoint: bool
    view: bool


_KINDS: dict[type, _NodeKind] = {}


def _kind_of(node: Any) -> _NodeKind:
    kind = type(node)
    if kind not in _KINDS:
        names = saved_tensor_names(kind)
        saved = [(name, raw_attribute(name), unpacked_attribute(kind, name)) for name in names]
        name = kind.__name__
        custom = function_of(kind) is not None and not name.startswith("Checkpoint")
        _KINDS[kind] = _NodeKind(name, tuple(saved), custom, name.startswith("CheckpointFunction"), name in ops.VIEWS)
    return _KINDS[kind]


def _tags(
    node: Any, made: CallNote | None, saved: tuple[Saved, ...], hooked: bool, created: bool, live: Any
) -> tuple[str, ...]:
    kind = _kind_of(node)
    states = [one.state for one in saved]
    present = (
        SavedState.FREED in states,
        SavedState.MODIFIED in states,
        kind.custom,
        kind.checkpoint or hooked,
        made is not None and ops.writes_in_place(made.function),
        kind.view,
        created,
        isinstance(live, torch.Tensor) and bool(live._backward_hooks),
    )
    return tuple(compress(_TAGS, present))
