"""Where gradients become NaN or infinite: looks at the gradients while a backward call runs through its nodes.

All nodes are looked at in the first calls of a line and then ever more rarely; in between only those where it happens
(logarithms, roots, quotients ...). What is born here may be harmless, since a mask or a ReLU removes it again: it
counts once it has come down to a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType
from typing import Any

import torch

from gradtrace.errors import first_line
from gradtrace.model.events import NonFinite
from gradtrace.model.site import Stack
from gradtrace.watcher.code import function_source
from gradtrace.watcher.compat import dispatch_height, function_of, node_number
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.faults import flaws
from gradtrace.watcher.graph import ops, query, reads, saved
from gradtrace.watcher.graph.walk import ACCUMULATE

#: so many calls of a line are looked at whole before that becomes rare
_FIRST = 3
#: nodes looked at in every call, births examined in one call, and nodes searched for where a value comes from
_MOST, _BIRTHS, _SEARCH = 128, 32, 400
#: in the errors of anomaly mode, and of clipping with error_if_nonfinite
_ANOMALY, _CLIPPING = "returned nan values", "is non-finite, so it cannot be clipped"
#: the input of the node that a saved tensor is
_INPUT = {"self": 0, "other": 1, "exponent": 1, "input": 0, "tensor1": 1, "tensor2": 2, "mat2": -1, "batch2": -1}


@dataclass(slots=True)
class _Cause:
    """The operation to blame, by the number of its node."""

    op: str
    kind: str
    number: int
    #: of a custom Function
    backward: Stack = ()


@dataclass(slots=True)
class _NonFiniteBirth:
    """A node that got finite gradients and gave on others. Holds a node: for one call only."""

    node: Any
    #: the inputs whose gradients are not finite
    edges: tuple[int, ...]
    cause: _Cause


@dataclass(slots=True)
class _BackwardRun:
    """What was seen in one call."""

    nodes: Sequence[Any]
    handles: list[Any] = field(default_factory=list)
    births: list[_NonFiniteBirth] = field(default_factory=list)
    #: by node: the inputs whose gradients are not finite
    bad: dict[Any, tuple[int, ...]] = field(default_factory=dict)
    watched: set[Any] = field(default_factory=set)
    #: the value that backward is called on is not finite itself, and what made it so
    lost: bool = False
    made_lost: _Cause | None = None


class Values(Observer):
    """Counts by the lines of backward calls. What is found waits until it is known whether a GradScaler sees to it."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._calls: dict[tuple[str, int], int] = {}
        self._run: _BackwardRun | None = None
        self._pending: list[NonFinite] = []
        #: the last one that was reported; those that anomaly mode has raised its last error over
        self._last: NonFinite | None = None
        self._anomalies: list[NonFinite] = []
        self._scaled = False
        self._ruined = False

    def functions(self) -> Mapping[Any, Handler]:
        return {torch._amp_foreach_non_finite_check_and_unscale_: self._unscales}

    def _unscales(self, call: TorchCall) -> None:
        self._scaled = True

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        self._flush()
        self._run = None
        if _left_alone() or not call.nodes or not call.stack:
            return
        place = call.stack[0].place
        count = self._calls[place] = self._calls.get(place, 0) + 1
        often = count <= _FIRST or count & (count - 1) == 0
        tensors = [one for one in outputs if isinstance(one, torch.Tensor)]
        dear = reads.waits(tensors)
        if dear and not often:
            return
        lost = not all(map(flaws.finite, tensors))
        if not (often or lost or flaws.Risk.OWN in map(flaws.risk, call.kinds)):
            return
        run = _BackwardRun(call.nodes, lost=lost)
        if lost:
            with torch.no_grad():
                run.made_lost = None if self._is_ruined(call) else _source_of_value(call.nodes)
        self._run = run
        # one read for each gradient that comes by is too much where it waits for a device
        self._listen(run, (often and not dear) or lost)

    def _is_ruined(self, call: BackwardCall) -> bool:
        """Whether leaves are NaN or beyond all measure themselves: what follows from that is no news."""
        self._ruined = self._ruined or not all(flaws.finite(leaf) and not flaws.is_huge(leaf) for leaf in call.leaves)
        return self._ruined

    def _listen(self, run: _BackwardRun, whole: bool) -> None:
        nodes = run.nodes
        for index in range(len(nodes)) if whole else _risky(nodes)[:_MOST]:
            run.watched.add(nodes[index])
            # by number: a node that holds itself would never be freed
            run.handles.append(nodes[index].register_hook(partial(self._pass, index)))

    @compiled.ours
    def _pass(self, index: int, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.session.guarded(self._look, index, inputs, outputs)

    def _look(self, index: int, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        run = self._run
        if run is None:
            return
        with torch.no_grad():
            edges = tuple(k for k, grad in enumerate(inputs) if grad is not None and not flaws.finite(grad))
            if not edges:
                return
            node = run.nodes[index]
            run.bad[node] = edges
            if len(run.births) < _BIRTHS and all(grad is None or flaws.finite(grad) for grad in outputs):
                run.births.append(_NonFiniteBirth(node, edges, _cause(node, inputs, outputs, edges)))

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        run, self._run = self._run, None
        if run is None:
            return
        for handle in run.handles:
            handle.remove()
        if error is None and not self._ruined and (run.births or run.lost):
            with torch.no_grad():
                self._judge(call, run)
        elif error is not None and run.births and _ANOMALY in str(error):
            self._raised(call, run, error)
        run.nodes = ()

    def _raised(self, call: BackwardCall, run: _BackwardRun, error: BaseException) -> None:
        """Anomaly mode has raised an error, perhaps over what a mask would have removed: it counts if the script ends."""
        pending, self._pending = self._pending, []
        with torch.no_grad():
            self._report(call, run, run.births[0].cause, run.births[0], list(call.leaves))
        self._anomalies, self._pending = self._pending, pending

    def crashed(self, error: BaseException, stack: Stack) -> None:
        text = str(error)
        if _ANOMALY in text:
            self._pending += self._anomalies
        elif _CLIPPING not in text:
            return
        if self._pending:
            self._pending[-1] = replace(self._pending[-1], error=first_line(error))
        elif self._last is not None:
            self.session.emit(replace(self._last, error=first_line(error)))
        self._flush()

    def _judge(self, call: BackwardCall, run: _BackwardRun) -> None:
        leaves = {id(leaf): leaf for leaf in call.leaves}
        reported: set[Stack] = set()
        for birth in run.births:
            cause = run.made_lost or birth.cause
            if run.lost and run.made_lost is None and cause.kind in ("inf", "unknown"):
                cause = replace(cause, kind="overflow")
            made = self.session.trail.find(cause.number)
            if made in reported:
                continue
            hit = _reached(birth, run, leaves)
            if hit and not self._is_ruined(call):
                reported.add(made)
                self._report(call, run, cause, birth, hit)

    def _report(
        self,
        call: BackwardCall,
        run: _BackwardRun,
        cause: _Cause,
        birth: _NonFiniteBirth | None,
        hit: list[torch.Tensor],
    ) -> None:
        if not hit:
            return
        find = self.session.trail.find
        names = self.session.book.names(hit)
        grads = [leaf.grad for leaf in hit if leaf.grad is not None]
        self._pending.append(
            NonFinite(
                stack=call.stack,
                root=call.root,
                request="backward" if call.accumulates else "grad",
                value="NaN" if not grads or any(flaws.has_nan(_dense(grad)) for grad in grads) else "Inf",
                leaves=names[:3],
                op=cause.op,
                kind=cause.kind,
                made=cause.backward or (find(cause.number) if cause.number >= 0 else ()),
                born_op=type(birth.node).__name__ if birth else "",
                born=find(node_number(birth.node)) if birth else (),
                lost=run.lost,
            )
        )

    def after_step(self, optimizer: torch.optim.Optimizer, stack: Stack) -> None:
        self._flush()

    def at_end(self) -> None:
        self._flush()

    def _flush(self) -> None:
        while self._pending:
            self._last = replace(self._pending.pop(0), scaled=self._scaled)
            self.session.emit(self._last)


def _risky(nodes: Sequence[Any]) -> Sequence[int]:
    """Where in `nodes` finite gradients may become NaN or infinite under a finite loss."""
    risks = enumerate(map(flaws.risk, map(type, nodes)))
    return [at for at, risk in risks if risk is not flaws.Risk.NONE and _comes_true(risk, nodes[at])]


def _comes_true(risk: flaws.Risk, node: Any) -> bool:
    if risk is not flaws.Risk.FACTOR:
        return risk is flaws.Risk.OWN
    children = query.inputs(node)
    near = [*children, *(below for child in children for below in query.inputs(child))]
    return any(flaws.risk(child.__class__) is flaws.Risk.OWN for child in near)


def _left_alone() -> bool:
    """Other code counts the operations that run: ours must not be among them."""
    return bool(dispatch_height())


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor._values() if tensor.is_sparse else tensor


def _reached(birth: _NonFiniteBirth, run: _BackwardRun, leaves: dict[int, torch.Tensor]) -> list[torch.Tensor]:
    """The leaves that NaN or Inf came to from there. A node that was not looked at lets everything through."""
    found: list[torch.Tensor] = []
    seen: set[Any] = set()
    waiting: list[tuple[Any, tuple[int, ...] | None]] = [(birth.node, birth.edges)]
    while waiting:
        node, edges = waiting.pop()
        if edges is None:
            edges = run.bad.get(node, ()) if node in run.watched else None
        for index, child in enumerate(query.slots(node)):
            if child is None or child in seen or (edges is not None and index not in edges):
                continue
            seen.add(child)
            if type(child) is not ACCUMULATE:
                waiting.append((child, None))
            elif id(child.variable) in leaves and _is_hit(child.variable):
                found.append(child.variable)
    return found


def _is_hit(leaf: torch.Tensor) -> bool:
    return leaf.grad is None or not flaws.finite(leaf.grad)


def _cause(node: Any, grads: Sequence[Any], outputs: Sequence[Any], edges: Sequence[int]) -> _Cause:
    """What to blame for gradients that became NaN or infinite at `node`."""
    name, number = type(node).__name__, node_number(node)
    values = dict(saved.tensors(node))
    flaw = flaws.find(node, values)
    if flaw is not None:
        # a row may be NaN because its input is
        below = _source(node, None, True) if flaw.kind == "row" else None
        return below or _Cause(name, flaw.kind, number)
    for key, tensor in values.items():
        if not flaws.finite(tensor):
            return _source(node, _INPUT.get(key), flaws.has_nan(tensor)) or _Cause(
                name, "nan" if flaws.has_nan(tensor) else "inf", number
            )
    if function_of(type(node)) is not None:
        return _Cause(name, "custom", number, function_source.backward_of(type(node)))
    if name in ops.FRAGILE:
        return _Cause(name, ops.FRAGILE[name], number)
    wild = [_dense(grads[k]) for k in edges]
    large = any(grad.dtype is torch.float16 or not flaws.has_nan(grad) for grad in wild)
    huge = any(flaws.is_huge(_dense(tensor)) for tensor in (*values.values(), *outputs) if tensor is not None)
    return _Cause(name, "overflow" if large or huge else "unknown", number)


def _source(node: Any, edge: int | None, nan: bool) -> _Cause | None:
    """The operation below that gave the NaN (or infinity) which `node` saved as its input; None where the user put it
    there."""
    children = query.slots(node)
    waiting = children if edge is None else children[edge:][:1]
    seen: set[Any] = set()
    while waiting and len(seen) < _SEARCH:
        at = waiting.pop(0)
        if at is None or at in seen or type(at) is ACCUMULATE or type(at).__name__ in ops.FILLS:
            continue
        seen.add(at)
        values = dict(saved.tensors(at))
        flaw = flaws.find(at, values)
        if flaw is not None and (flaw.gives == "nan" or (flaw.gives and not nan)):
            return _Cause(type(at).__name__, flaw.kind, node_number(at))
        if nan and (made := _makes_nan(at, values)):
            return made
        if not _known_finite(values):
            waiting += query.slots(at)
    return None


def _makes_nan(node: Any, values: flaws.Values) -> _Cause | None:
    """Zero times infinity."""
    one, other = values.get("self"), values.get("other")
    if type(node).__name__ != "MulBackward0" or one is None or other is None:
        return None
    if flaws.has_nan(one) or flaws.has_nan(other) or not flaws.has_nan(one * other):
        return None
    return _Cause("MulBackward0", "inf", node_number(node))


def _known_finite(values: flaws.Values) -> bool:
    result = values.get("result")
    return result is not None and flaws.finite(result)


def _source_of_value(nodes: Sequence[Any]) -> _Cause | None:
    """The operation that made the first NaN or infinity of a forward pass; None where none is known."""
    for node in _oldest_first(nodes):
        values = dict(saved.tensors(node))
        flaw = flaws.find(node, values)
        if flaw is not None and flaw.gives:
            return _Cause(type(node).__name__, flaw.kind, node_number(node))
        if made := _makes_nan(node, values):
            return made
        if any(_from_outside(node, key) and flaws.has_nan(tensor) for key, tensor in values.items()):
            return _Cause(type(node).__name__, "nan", node_number(node))
    return None


def _from_outside(node: Any, key: str) -> bool:
    """Whether what the node calls `key` is an input that has no graph: data."""
    edge = _INPUT.get(key)
    children = query.slots(node)
    return edge is not None and -len(children) <= edge < len(children) and children[edge] is None


def _oldest_first(nodes: Sequence[Any]) -> Iterator[Any]:
    return iter(sorted(nodes, key=node_number))
