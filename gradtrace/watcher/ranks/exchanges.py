"""Sees the collectives that the script itself calls: how much they exchange, and tensors that lose their graph in one."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from gradtrace.model.ranks import Exchange, GatheredConstant
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Observer, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import ops, query
from gradtrace.watcher.graph.walk import ACCUMULATE
from gradtrace.watcher.ranks.groups import functions_patched

#: those that pass values on between ranks; and those whose results begin without a graph: where their input is
_COLLECTIVES = (
    *("all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter"),
    *("reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "all_reduce_coalesced"),
    *("all_gather_single", "reduce_scatter_single"),  # names since PyTorch 2.13
    *("send", "recv", "isend", "irecv", "batch_isend_irecv"),
)
_GATHERING = {"all_gather": ("tensor_list", "tensor"), "all_gather_into_tensor": ("output_tensor", "input_tensor")}
_NAMES, _PLACES = 4, 32


@dataclass(slots=True)
class _Gather:
    """The last time that a tensor with a graph was gathered at one place."""

    operation: str
    source: str
    #: the number of the tensor's node
    node: int
    backward: Stack = ()
    root: str = ""
    beside: bool = False
    times: int = 0


class Exchanges(Observer):
    """A collective inside another one, or in a library, counts as well; those of C++ (of DistributedDataParallel) do not."""

    def __init__(self, session: Session, origins: Origins) -> None:
        super().__init__(session)
        self._origins = origins
        self._elements = self._calls = 0
        self._operations: dict[str, None] = {}
        self._gathers: dict[Stack, _Gather] = {}

    @contextmanager
    def watched(self) -> Iterator[None]:
        with functions_patched({name: functools.partial(self._noting, name) for name in _COLLECTIVES}):
            yield

    def _noting(self, name: str, collective: Callable[..., Any]) -> Callable[..., Any]:
        # a module that is imported meanwhile keeps this function for good
        of_this_watch = weakref.ref(self)

        @compiled.around
        @functools.wraps(collective)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = collective(*args, **kwargs)
            me = of_this_watch()
            if me is not None and me.session.in_watched_thread():
                me.session.guarded(me._called, name, args, kwargs, sys._getframe(1))
            return result

        return call

    def _called(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType) -> None:
        if self.session.backward_calls:
            floats = [one for one in tensors_in([*args, *kwargs.values()]) if one.is_floating_point()]
            self._elements += max((one.numel() for one in floats), default=0)
            self._calls += bool(floats)
            if floats and len(self._operations) < _NAMES:
                self._operations[name] = None
        if name in _GATHERING:
            given = dict(zip(_GATHERING[name], args, strict=False)) | kwargs
            outs, source = (given.get(one) for one in _GATHERING[name])
            self._gathered(name, outs, source, frame)

    def _gathered(self, name: str, outs: Any, source: Any, frame: FrameType) -> None:
        if not isinstance(source, torch.Tensor) or not source.requires_grad or not torch.is_grad_enabled():
            return
        stack = self.session.frames.stack(frame)
        if not stack or source.grad_fn is None or (stack not in self._gathers and len(self._gathers) >= _PLACES):
            return
        known = self._gathers.setdefault(stack, _Gather(f"{name}()", "", 0))
        known.node = node_number(source.grad_fn)
        self._origins.listen(self)
        self._origins.cut_off(f"{name}()", tensors_in([outs]), source, stack)

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not self._gathers:
            return
        numbers: set[int] | None = None
        for node in call.nodes:
            for constant in self._origins.constants([node]):
                for cut in constant.cuts:
                    known = self._gathers.get(cut.stack)
                    if known is None or self._is_put_back(node, known):
                        continue
                    numbers = call.numbers() if numbers is None else numbers
                    known.backward, known.root = call.stack, call.root
                    known.beside = known.node in numbers
                    known.times += 1

    @staticmethod
    def _is_put_back(node: Any, gather: _Gather) -> bool:
        """Whether the constants are put together with the tensor itself in its place: `gathered[rank] = features`."""
        if type(node).__name__ not in ops.JOINS:
            return False
        made = [child for child in query.inputs(node) if type(child) is not ACCUMULATE]
        return any(node_number(child) == gather.node for child in made)

    def at_end(self) -> None:
        if self._calls:
            self.session.emit(Exchange(self._elements, self._calls, tuple(self._operations)))
        for stack, one in self._gathers.items():
            if one.times:
                self.session.emit(
                    GatheredConstant(one.operation, stack, one.source, one.backward, one.root, one.beside, one.times)
                )
