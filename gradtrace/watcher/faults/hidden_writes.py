"""Sees writes that torch's version counter does not: through `.data`, and by NumPy to memory that a tensor shares.

Whether such a write did harm is looked at when a backward call is about to run through a node that was made before the
write: only then are saved tensors looked at, and only if there were such writes.
"""

from __future__ import annotations

import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.nn.functional

from gradtrace.model.events import Overwritten
from gradtrace.model.site import Stack
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import NN_FUNCTIONS, VARIABLE_FUNCTIONS, node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, Patience, TorchCall
from gradtrace.watcher.core.reentry import first_use_since
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import ops, sample, saved

Tensor = torch.Tensor

#: writes, readings of foreign memory and tensors with known values that are remembered
_WRITES = 1_024
_READINGS = 512
#: tensors handed to NumPy between two backward calls whose values are noted
_LENDINGS = 16
_VALUES = 1_024
#: aliases remembered before the dead among them are forgotten
_ALIASES = 1_024
#: calls without a tensor in foreign memory after which none is expected
_FRUITLESS = 20_000
#: names of what training does not read
_STATISTICS = {"running_mean", "running_var"}


class _Alias(NamedTuple):
    """A tensor that `.data` gave: it shares memory with its owner, but not the version counter."""

    tensor: weakref.ref[Tensor]
    owner: int


class _AliasWrite(NamedTuple):
    """A write through an alias. Nodes from `number` on were made later."""

    memory: int
    span: tuple[int, int]
    number: int
    values: Tensor
    before: Tensor
    stack: Stack
    alias: weakref.ref[Tensor] | None

    def hit(self, tensor: Tensor) -> bool:
        """Whether it changed a saved tensor that has a version counter of its own."""
        alias = self.alias() if self.alias is not None else None
        if alias is not None and (tensor is alias or tensor._base is alias):
            return False
        start, end = saved.span(tensor)
        return start < self.span[1] and self.span[0] < end and sample.differ(self.before, self.values)


#: dtype, offset, shape and stride of a tensor
_Geometry: TypeAlias = tuple[torch.dtype, int, tuple[int, ...], tuple[int, ...]]


class _Reading(NamedTuple):
    """Nodes `before` to `after - 1` used a tensor whose memory is not torch's own, with these values."""

    before: int
    after: int
    memory: int
    geometry: _Geometry
    values: Tensor

    def now(self, tensor: Tensor) -> Tensor:
        """The values that lie there now; `tensor` is one that still holds the memory."""
        return _values_there(self.geometry, tensor)


class _Lending(NamedTuple):
    """A tensor was handed to NumPy before node `number` was made, with these values."""

    number: int
    memory: int
    geometry: _Geometry
    #: an array of NumPy's: a tensor would be one more than the script has
    values: Any
    place: Stack
    #: torch notices its own writes
    version: int

    def is_changed(self, tensor: Tensor) -> bool:
        """Whether other values lie there now; `tensor` is one that still holds the memory."""
        unchanged = tensor._version == self.version
        return unchanged and sample.differ(torch.from_numpy(self.values), _values_there(self.geometry, tensor))


class HiddenWrites(Observer):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._aliases: dict[TensorId, _Alias] = {}
        #: values of aliases and of their owners when they were last at hand, by identity
        self._values: OrderedDict[TensorId, Tensor] = OrderedDict()
        self._writes: deque[_AliasWrite] = deque(maxlen=_WRITES)
        self._readings: deque[_Reading] = deque(maxlen=_READINGS)
        #: memory handed out by `.numpy()`
        self._lent: deque[int] = deque(maxlen=_READINGS)
        #: of what was handed out since the last backward call, after operations had used it: the values by then
        self._lendings: list[_Lending] = []
        self._patience = Patience()
        self._fruitless = 0

    def functions(self) -> Mapping[Any, Handler]:
        data: Any = Tensor.data
        return {
            data.__get__: self._read_data,
            data.__set__: self._set_data,
            **dict.fromkeys((Tensor.numpy, Tensor.__array__), self._lend),
            **dict.fromkeys(_saving(), self._take_in),
        }

    def _read_data(self, call: TorchCall) -> None:
        alias, owner = call.out, call.args[0]
        if not saved.memory(alias):
            return
        if len(self._aliases) >= _ALIASES:
            self._aliases = {key: value for key, value in self._aliases.items() if value.tensor() is not None}
        if len(self._aliases) < 4 * _ALIASES:
            number, of_owner = self.session.ids.of(alias), self.session.ids.of(owner)
            self._aliases[number] = _Alias(weakref.ref(alias), of_owner)
            self._learn(sample.take(alias), number, of_owner)

    def _learn(self, values: Tensor, *keys: int) -> None:
        for key in keys:
            self._values[key] = values
            self._values.move_to_end(key)
        while len(self._values) > _VALUES:
            self._values.popitem(last=False)

    def _alias(self, tensor: Tensor) -> tuple[Tensor, _Alias] | None:
        """The alias that a tensor is, or is a view of."""
        for one in (tensor, tensor._base):
            known = self._aliases.get(self.session.ids.known(one))
            if one is not None and known is not None:
                return one, known
        return None

    def took(self, tensor: Tensor, call: TorchCall, stack: Stack) -> bool:
        """Whether this write to `tensor` is hidden; it is noted then."""
        found = self._alias(tensor) if self._aliases else None
        if found is None:
            return False
        alias, known = found
        written = _part(tensor, call)
        self._record(alias, written, (self.session.ids.of(alias), known.owner), call.after, stack, known.tensor)
        return True

    def _set_data(self, call: TorchCall) -> None:
        owner, given = call.args[:2]
        known = self._aliases.get(self.session.ids.known(given))
        same = known is not None and known.owner == self.session.ids.known(owner)
        # `w.data -= x` writes first and then sets what is there already
        if not same and saved.memory(owner):
            self._record(owner, owner, (self.session.ids.of(owner),), call.after, self.session.frames.stack(call.frame))

    def _record(
        self,
        whole: Tensor,
        written: Tensor,
        keys: tuple[int, ...],
        number: int,
        stack: Stack,
        alias: weakref.ref[Tensor] | None = None,
    ) -> None:
        before = self._values.get(keys[0])
        values = sample.take(whole)
        self._learn(values, *keys)
        # where nothing is known of the values before, nothing can be said
        if before is not None and written.numel():
            memory, span = saved.memory(whole), saved.span(written)
            self._writes.append(_AliasWrite(memory, span, number, values, before, stack, alias))

    def _lend(self, call: TorchCall) -> None:
        tensor = call.args[0]
        memory = saved.memory(tensor)
        if memory and memory not in self._lent:
            self._lent.append(memory)
        if not memory or len(self._lendings) >= _LENDINGS or not tensor.dim():
            return
        place = self.session.frames.stack(call.frame)
        if not self._patience.has_ended(place):
            number, values = self.session.sequence(), sample.take(tensor).numpy().copy()
            self._lendings.append(_Lending(number, memory, _geometry(tensor), values, place, tensor._version))

    def _take_in(self, call: TorchCall) -> None:
        if call.after == call.before or self._fruitless > _FRUITLESS:
            return
        self._fruitless += 1
        for tensor in call.args:
            if type(tensor) is Tensor and not tensor.requires_grad and self._is_foreign(tensor):
                self._fruitless = 0
                reading = _Reading(
                    call.before, call.after, saved.memory(tensor), _geometry(tensor), sample.take(tensor)
                )
                self._readings.append(reading)

    def _is_foreign(self, tensor: Tensor) -> bool:
        if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.is_nested:
            return False
        own = tensor.untyped_storage().resizable()
        return (not own and saved.memory(tensor) > 0) or (bool(self._lent) and saved.memory(tensor) in self._lent)

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if self._writes:
            self._look_for_writes(call, frame)
        if self._readings:
            self._look_at_foreign(call, frame)
        if self._lendings and call.accumulates:
            self._look_at_lendings(call, frame)

    def _look_for_writes(self, call: BackwardCall, frame: FrameType) -> None:
        newest = self._writes[-1].number
        older = [node for node in call.nodes if node_number(node) < newest]
        if not older:
            return
        by_memory: defaultdict[int, list[_AliasWrite]] = defaultdict(list)
        for write in self._writes:
            by_memory[write.memory].append(write)
        reported: set[Stack] = set()
        for node, name, tensor in _saved(older):
            since = [one for one in by_memory.get(saved.memory(tensor), ()) if one.number > node_number(node)]
            hits = [one for one in since if one.hit(tensor)]
            # a perturbation that was taken back does no harm
            if hits and hits[0].stack not in reported and sample.differ(since[0].before, since[-1].values):
                reported.add(hits[0].stack)
                entry = first_use_since(hits[0].number, node, call.nodes, self.session.trail)
                self._report(".data", hits[0].stack, len(hits), (node, name, tensor), call, frame, entry)

    def _look_at_foreign(self, call: BackwardCall, frame: FrameType) -> None:
        of_node = {number: one for one in self._readings for number in range(one.before, one.after)}
        seen = [node for node in call.nodes if node_number(node) in of_node]
        for node, name, tensor in _saved(seen):
            reading = of_node[node_number(node)]
            if reading.memory == saved.memory(tensor) and sample.differ(reading.values, reading.now(tensor)):
                self._report("numpy", (), 0, (node, name, tensor), call, frame)
                break
        if seen and not call.retain:
            done = {of_node[node_number(node)].before for node in seen}
            self._readings = deque((one for one in self._readings if one.before not in done), maxlen=_READINGS)

    def _look_at_lendings(self, call: BackwardCall, frame: FrameType) -> None:
        """Whether NumPy has written to what was handed out, and a node made before had saved it."""
        lendings, self._lendings = self._lendings, []
        by_memory = {one.memory: one for one in lendings}
        hit = None
        newest = max(one.number for one in lendings)
        for node, name, tensor in _saved([node for node in call.nodes if node_number(node) < newest]):
            lending = by_memory.get(saved.memory(tensor))
            if lending is not None and node_number(node) < lending.number and lending.is_changed(tensor):
                hit = (lending, (node, name, tensor))
                break
        for one in lendings:
            self._patience.looked(one.place, hit is not None and hit[0] is one)
        if hit is not None:
            self._report("numpy", (), 0, hit[1], call, frame, lent=hit[0].place)

    def _report(
        self,
        how: str,
        written: Stack,
        writes: int,
        hit: tuple[Any, str, Tensor],
        call: BackwardCall,
        frame: FrameType,
        entry: Stack = (),
        lent: Stack = (),
    ) -> None:
        node, name, tensor = hit
        memory = saved.memory(tensor)
        named = names.tensors(frame, self.session.frames)
        self.session.emit(
            Overwritten(
                how=how,
                written=written,
                writes=writes,
                op=type(node).__name__,
                saved=name,
                built=self.session.trail.find(node_number(node)),
                name=next((known for known, one in named if saved.memory(one) == memory), ""),
                shape=tuple(tensor.shape),
                stack=call.stack,
                root=call.root,
                files=self._files() if how == "numpy" else (),
                entry=entry,
                lent=lent,
            )
        )

    def _files(self) -> tuple[str, ...]:
        """The user's modules."""
        paths = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        return tuple(sorted({path for path in paths if path and self.session.frames.is_user(path)}))


def _values_there(geometry: _Geometry, tensor: Tensor) -> Tensor:
    dtype, *where = geometry
    return sample.take(torch.empty(0, dtype=dtype).set_(tensor.untyped_storage(), *where))


def _geometry(tensor: Tensor) -> _Geometry:
    return tensor.dtype, int(tensor.storage_offset()), tuple(tensor.shape), tuple(tensor.stride())


def _saved(nodes: Sequence[Any]) -> Iterator[tuple[Any, str, Tensor]]:
    """What harm can come to: nodes with what they saved."""
    for node in nodes:
        if type(node).__name__ not in ops.SIGN_SAVED:
            yield from ((node, name, tensor) for name, tensor in saved.tensors(node) if name not in _STATISTICS)


def _part(tensor: Tensor, call: TorchCall) -> Tensor:
    """The part of a tensor that the call wrote to, as far as an index shows."""
    if call.func is not Tensor.__setitem__:
        return tensor
    index = call.args[1] if isinstance(call.args[1], tuple) else (call.args[1],)
    basic = all(one is None or one is Ellipsis or type(one) in (int, slice) for one in index)
    return tensor[index] if basic else tensor


def _saving() -> set[Any]:
    """Functions that save what is given to them."""
    homes = (Tensor, torch, torch.nn.functional, NN_FUNCTIONS, VARIABLE_FUNCTIONS)
    return set(ops.functions(ops.SAVING_FUNCTIONS, *homes))
