"""Looks for sequences that a network takes along the batch, and for reshaped tensors whose samples come out mixed.

A recurrent network or an attention knows which dimension is its batch. Where the last step, or a mean over all steps, is
then taken along that dimension, and a layer goes on with the result, the user meant the other one. A reshape that
exchanges the first two sizes moves no element: it cuts samples up where a transpose was meant.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F

from gradtrace.model.events import MixedBatch
from gradtrace.model.site import Stack
from gradtrace.watcher.code.names import variables
from gradtrace.watcher.compat import COLLATE, index_sampler, node_number, output_metadata, saved_argument
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, Patience, TorchCall
from gradtrace.watcher.faults.mixed_batch import wrapped
from gradtrace.watcher.graph import ops, query, saved
from gradtrace.watcher.graph.walk import ACCUMULATE

Tensor = torch.Tensor
_Users = Mapping[Any, list[tuple[Any, int]]]

_RESHAPING = (Tensor.view, Tensor.reshape, torch.reshape)
#: calls waiting for a backward call; operations between a pooling and the layer that takes its result
_MOST, _FAR = 64, 6
#: frames between a DataLoader and the place where it stacks samples
_FRAMES = 16
#: tensors of DataLoaders remembered
_FEW = 16


@dataclass(slots=True)
class _SequenceRun:
    """A call of such a network: the node of its output, and which dimension is the batch."""

    output: tuple[int, int]
    #: nodes of the last states, one row for each layer and direction
    states: frozenset[tuple[int, int]]
    name: str
    batch: int
    shape: tuple[int, ...]
    stack: Stack
    #: what goes in is a DataLoader's batch, whose samples it takes for steps
    loaded: bool


class Sequences(Observer):
    """Suspicious calls, by the numbers of their nodes, until a backward call runs through them."""

    def __init__(self, session: Any) -> None:
        super().__init__(session)
        self._runs: list[_SequenceRun] = []
        self._reshaped: dict[int, MixedBatch] = {}
        self._patience = Patience()
        #: the last batches of DataLoaders
        self._batches: deque[weakref.ref[Tensor]] = deque(maxlen=_FEW)

    def functions(self) -> Mapping[Any, Handler]:
        return {
            **dict.fromkeys(ops.RECURRENT_FUNCTIONS, self._recurs),
            F.multi_head_attention_forward: self._attends,
            **dict.fromkeys(_RESHAPING, self._reshapes),
            torch.stack: self._collates,
        }

    def _collates(self, call: TorchCall) -> None:
        """A DataLoader stacks samples in random order: the first dimension is the batch, and no time."""
        if call.frame.f_code.co_filename.endswith(COLLATE) and call.out.dim() > 1 and _shuffled(call.frame):
            self._batches.append(weakref.ref(call.out))

    def _recurs(self, call: TorchCall) -> None:
        if call.after == call.before or len(call.args) != 9:
            return
        entered, hidden, weights, *_, batch_first = call.args
        packed = not isinstance(weights, (list, tuple)) or (call.func is torch.lstm and isinstance(hidden, Tensor))
        if not packed and entered.dim() == 3 and 1 not in entered.shape[:2]:
            self._add(call, ops.RECURRENT_FUNCTIONS[call.func], 0 if batch_first else 1, entered)

    def _attends(self, call: TorchCall) -> None:
        query = call.args[0] if call.args else call.kwargs.get("query")
        if call.after != call.before and isinstance(query, Tensor) and query.dim() == 3 and 1 not in query.shape[:2]:
            self._add(call, "attention", 1, query)

    def _add(self, call: TorchCall, name: str, batch: int, entered: Tensor) -> None:
        stack = self.session.frames.stack(call.frame)
        if self._patience.has_ended(stack):
            return
        out, *states = (_key(one) for one in call.out)
        if out is not None:
            kept = frozenset(state for state in states if state is not None)
            loaded = batch == 1 and bool(self._batches) and self._is_loaded(entered)
            self._runs.append(_SequenceRun(out, kept, name, batch, tuple(entered.shape), stack, loaded))
        del self._runs[:-_MOST]

    def _is_loaded(self, entered: Tensor) -> bool:
        """Whether this is a DataLoader's batch, or the rows that a table or a layer made of one, sample by sample."""
        batches = [batch for ref in self._batches if (batch := ref()) is not None]
        node: Any = entered.grad_fn
        given = [entered]
        for _ in range(_FAR):
            if node is None or not _keeps_layout(node, tuple(entered.shape)):
                break
            given += (one for name, one in saved.tensors(node) if name in ("indices", "mat1", "self", "input"))
            node = next((child for child in query.slots(node) if type(child) is not ACCUMULATE), None)
        return any(_has_rows_of(one, batch, tuple(entered.shape)) for one in given for batch in batches)

    def _reshapes(self, call: TorchCall) -> None:
        given, out = call.args[0], call.out
        if call.after == call.before or given.dim() < 3 or given.is_leaf:
            return
        old, new = tuple(given.shape), tuple(out.shape)
        if 1 in old[:2] or old[0] == new[0]:
            return
        exchanged = len(old) == len(new) and new[:2] == (old[1], old[0]) and old[2:] == new[2:]
        exchanged |= len(old) > len(new) > 2 and new[:2] == (old[-1], old[0])
        # the heads of an attention, in front of a batch that was not moved behind them
        exchanged |= len(old) == 3 and len(new) == 4 and new[0] > 1 and new[1:3] == old[:2]
        key = _key(given)
        of = next((one for one in self._runs if key == one.output or key in one.states), None)
        # the states are [layers, batch, features] whatever the layout of the rest
        flattened = (
            of is not None
            and new[0] == old[1]
            and len(old) == 3
            and len(new) == 2
            and (key in of.states or of.batch == 1)
        )
        if exchanged or flattened:
            what = f"{of.name}'s {'state' if key in of.states else 'output'}" if of else ""
            stack = self.session.frames.stack(call.frame)
            self._reshaped[call.after - 1] = MixedBatch("reshaped", what, old, stack, result=new)
            if len(self._reshaped) > _MOST:
                self._reshaped.pop(next(iter(self._reshaped)))

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not self._runs and not self._reshaped:
            return
        nodes = {node_number(node): node for node in call.nodes}
        for number in self._reshaped.keys() & nodes.keys():
            self.session.emit(self._reshaped.pop(number))
        met = [run for run in self._runs if run.output[0] in nodes]
        users = query.uses_of(call.nodes) if met else {}
        for run in met:
            if run.loaded:
                self.session.emit(MixedBatch("loaded", run.name, run.shape, run.stack))
                continue
            found = list(_along_batch(nodes[run.output[0]], run, users))
            self._patience.looked(run.stack, bool(found))
            for node, read in found:
                self._report(run, read, self.session.trail.find(node_number(node)))
        self._runs = [run for run in self._runs if run not in met]

    def _report(self, run: _SequenceRun, read: str, taken: Stack) -> None:
        kind = ("sequence", "sequence, batch first")[not run.batch]
        self.session.emit(MixedBatch(kind, run.name, run.shape, run.stack, read, taken))


def _shuffled(frame: FrameType | None) -> bool:
    """Whether the DataLoader at work takes its samples otherwise than one after the other."""
    for _ in range(_FRAMES):
        sampler = index_sampler(variables(frame).get("self")) if frame is not None else None
        if sampler is not None:
            return type(getattr(sampler, "sampler", sampler)).__name__ != "SequentialSampler"
        frame = frame.f_back if frame is not None else None
    return False


def _has_rows_of(one: Tensor, batch: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether a tensor of these first two sizes, possibly flattened into one, lies in the batch in the order of its
    samples."""
    if (
        one.dim() == 0
        or batch.numel() == 0
        or batch.shape[0] != shape[0]
        or one.untyped_storage().data_ptr() != batch.untyped_storage().data_ptr()
    ):
        return False
    if one.dim() == 2 and shape[1] > 1 and one.shape[0] == shape[0] * shape[1]:
        return one.stride(0) * shape[1] == batch.stride(0)
    return tuple(one.shape[:2]) == shape[:2] and one.stride(0) == batch.stride(0)


def _key(value: Any) -> tuple[int, int] | None:
    node = value.grad_fn if isinstance(value, Tensor) else None
    return None if node is None else (node_number(node), value.output_nr)


def _along_batch(start: Any, run: _SequenceRun, users: _Users) -> Iterator[tuple[Any, str]]:
    """The nodes that take the batch of a run's output for its steps, and what they take."""
    for node, dims in _leaving(start, run, users):
        kind = type(node).__name__
        if dims != {run.batch}:
            continue
        if kind == "SelectBackward0":
            index = wrapped(saved_argument(node, "index"))
            if index in (-1, run.shape[run.batch] - 1):
                yield node, "the last step"
            elif index == 0 and _enters_layer(node, run, users):
                yield node, "the first step"
        elif not saved_argument(node, "keepdim") and _enters_layer(node, run, users):
            yield node, f"{ops.POOLINGS[kind]} over the steps"


def _leaving(start: Any, run: _SequenceRun, users: _Users) -> Iterator[tuple[Any, set[int]]]:
    """The nodes that take one of the dimensions out of the output, and which: past all that keeps its layout."""
    seen, waiting = {start}, [(start, run.output[1])]
    while waiting:
        below, output = waiting.pop()
        for user, index in users.get(below, ()):
            if user in seen or query.edges(user)[index][1] != output:
                continue
            seen.add(user)
            kind = type(user).__name__
            if kind == "SelectBackward0" or kind in ops.POOLINGS:
                yield user, _dims(user)
            elif run.shape[0] != run.shape[1] and _keeps_layout(user, run.shape):
                waiting.append((user, 0))


def _keeps_layout(node: Any, shape: tuple[int, ...]) -> bool:
    """Whether the first two sizes of the result are the same, or the two were flattened into one, as in a Linear."""
    results = [tuple(one.shape) for one in output_metadata(node)]
    if len(results) != 1:
        return False
    return (len(results[0]) == 3 and results[0][:2] == shape[:2]) or (
        len(results[0]) == 2 and results[0][0] == shape[0] * shape[1]
    )


def _dims(node: Any) -> set[int]:
    """Which of three dimensions a node takes out."""
    dims = saved_argument(node, "dim")
    return {wrapped(dim) % 3 for dim in (dims if isinstance(dims, tuple) else (dims,))}


def _enters_layer(node: Any, run: _SequenceRun, users: _Users) -> bool:
    """Whether the rows that are left go into a layer with a weight of its own, or into a loss of classes."""
    level = [node]
    for _ in range(_FAR):
        level = [user for below in level for user, _ in users.get(below, ())]
        for user in level:
            kind = type(user).__name__
            rows = output_metadata(user)[0].shape if kind in ops.LINEAR_LAYERS else ()
            if (tuple(rows[:1]) == (run.shape[1 - run.batch],) and _has_weight(user)) or kind.startswith("NllLoss"):
                return True
    return False


def _has_weight(node: Any) -> bool:
    inputs = query.inputs(node)
    below = [child for one in inputs if type(one).__name__ == "TBackward0" for child in query.inputs(one)]
    return any(type(one) is ACCUMULATE for one in (*inputs, *below))
