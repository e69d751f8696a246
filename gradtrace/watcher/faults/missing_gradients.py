"""Gradients that are None where the script ends over them: read before a backward call, or one that no backward call could compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from gradtrace.errors import first_line
from gradtrace.host.tracebacks import frames_of
from gradtrace.model.events import Cut, GradMissing, UnusedInput
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import query, walk
from gradtrace.watcher.parameters.leaves import grad_fn, operation

Tensor = torch.Tensor

_UNUSED = "appears to not have been used in the graph"
_INFERENCE = "inference tensor"
_NONE = "NoneType"
#: leaves of which it is remembered where they were set to require grad
_MANY = 4_096
#: graphs in which a cut is looked for: a script that reads a gradient which is None mostly ends in its first iteration
_GRAPHS = 8


@dataclass(frozen=True, slots=True)
class _MissingRead:
    """A .grad that was None when it was read."""

    stack: Stack
    leaf: TensorId
    requires_grad: bool
    #: some backward call had given it a gradient, and how many calls there had been
    fed: bool
    calls: int
    #: the last of them reached it
    reached: bool = False


class MissingGradients(Observer):
    def __init__(self, session: Session, origins: Origins) -> None:
        super().__init__(session)
        self._origins = origins
        self._read: _MissingRead | None = None
        #: the last call of autograd.grad that gave None for an input
        self._none: UnusedInput | None = None
        #: where gradients were last cleared
        self._cleared: Stack = ()
        #: where leaves were set to require grad, and the number of the next node then
        self._required: dict[TensorId, tuple[Stack, int]] = {}
        #: where the running, or the last, stretch of inference mode began to compute
        self._inferred: Stack = ()
        self._inferring = False
        #: the cuts behind the constants of the first graphs that were run through, and behind their leaves
        self._cuts: list[Cut] = []
        self._graphs_left = _GRAPHS
        #: the leaves that the last backward call reached
        self._reached: frozenset[TensorId] = frozenset()

    def functions(self) -> Mapping[Any, Handler]:
        requiring = (Tensor.requires_grad.__set__, Tensor.requires_grad_)  # type: ignore[attr-defined]
        return {
            Tensor.grad.__get__: self._reads,  # type: ignore[union-attr]
            torch.autograd.grad: self._differentiated,
            **dict.fromkeys(requiring, self._requires),
        }

    def made_plain(self) -> Handler:
        return self._plain

    def _plain(self, call: TorchCall) -> None:
        inferring = torch.is_inference_mode_enabled()
        if inferring and not self._inferring:
            self._inferred = self.session.frames.stack(call.frame)
        self._inferring = inferring

    def _requires(self, call: TorchCall) -> None:
        wanted = (*call.args[1:], *call.kwargs.values(), True)[0]
        if wanted and len(self._required) < _MANY:
            key = self.session.ids.of(call.args[0])
            self._required[key] = self.session.frames.stack(call.frame), self.session.sequence()

    def _reads(self, call: TorchCall) -> None:
        tensor = call.args[0]
        if call.out is not None or not tensor.is_leaf or not self.session.frames.is_user(_file(call)):
            return
        known = self.session.book.known(tensor)
        fed = known is not None and known.fed
        stack = self.session.frames.stack(call.frame)
        key, calls = self.session.ids.of(tensor), self.session.backward_calls
        self._read = _MissingRead(stack, key, tensor.requires_grad, fed, calls, key in self._reached)

    def after_zero_grad(self, tensors: Sequence[Tensor], frame: FrameType) -> None:
        self._cleared = self.session.frames.stack(frame)

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if call.accumulates and self._read is not None:
            self._reached = frozenset(map(self.session.ids.known, call.leaves))
        if call.accumulates and self._graphs_left:
            self._graphs_left -= 1
            constants = self._origins.constants(call.nodes)
            self._cuts += [cut for constant in constants for cut in constant.cuts]
            self._cuts += [cut for leaf in call.leaves for cut in self._origins.of_leaf(leaf)]

    def _differentiated(self, call: TorchCall) -> None:
        outs = call.out if isinstance(call.out, (list, tuple)) else (call.out,)
        index = next((at for at, out in enumerate(outs) if out is None), None)
        if index is not None:
            self._none = self._unused(call, index, None)

    def failed(self, call: TorchCall, error: BaseException) -> None:
        if not isinstance(error, RuntimeError):
            return
        text = str(error)
        if _UNUSED in text:
            unused = self._unused(call, None, first_line(error))
            if unused is not None:
                self.session.emit(unused)
        elif _INFERENCE in text.lower() and self._inferred:
            stack = self.session.frames.stack(call.frame)
            name = getattr(call.func, "__name__", "").strip("_")
            self.session.emit(GradMissing("inference", stack, "", first_line(error), made=self._inferred, op=name))

    def _unused(self, call: TorchCall, index: int | None, error: str | None) -> UnusedInput | None:
        """Which input the outputs were not computed from, and what was made of it and when."""
        outputs, inputs = _asked(call)
        roots = walk.roots_of(outputs)
        below = {node for root in roots for node in query.below([root])}
        unused = [at for at, one in enumerate(inputs) if not below.issuperset(walk.roots_of([one]))]
        at = index if index is not None else next(iter(unused), None)
        if at is None or not roots:
            return None
        given = inputs[at]
        stack = self.session.frames.stack(call.frame)
        node = grad_fn(given) if isinstance(given, Tensor) else None
        required, since = self._required.get(self.session.ids.known(given), ((), 0))
        first = min((node_number(one) for one in below if type(one) is not walk.ACCUMULATE), default=0)
        return UnusedInput(
            stack,
            at,
            len(inputs),
            operation(node) if node is not None else "",
            self.session.trail.find(node_number(node)) if node is not None else (),
            node is not None and any(one in below for one in query.below([node])),
            required if since > first else (),
            self._cut_behind(given, below),
            self._name(self.session.ids.known(given), call.frame) if node is None else "",
            error,
        )

    def _cut_behind(self, given: Any, nodes: Iterable[Any]) -> Cut | None:
        """The cut on the path to an input, or to the leaves that this was computed from, if none of these is reached."""
        nodes = list(nodes)
        ids = self.session.ids
        leaves = {ids.known(leaf) for leaf in query.leaves_of([given])} if isinstance(given, Tensor) else set()
        wanted = (leaves | {ids.known(given)}) - {0}
        if any(type(node) is walk.ACCUMULATE and ids.known(node.variable) in wanted for node in nodes):
            return None
        for constant in self._origins.constants(nodes):
            for cut in constant.cuts:
                if not wanted.isdisjoint(self._origins.leaves_behind(cut)):
                    return cut
        recent = (self._origins.first_since(self.session.backward_calls - 1, leaf) for leaf in wanted)
        return next((cut for cut in recent if cut is not None), None)

    def _name(self, leaf: TensorId, frame: FrameType | None) -> str:
        """The user's name for a leaf, where the running code has one."""
        known = self.session.ids.known
        held = names.tensors(frame, self.session.frames) if leaf else []
        return next((name for name, tensor in held if known(tensor) == leaf), "")

    def crashed(self, error: BaseException, stack: Stack) -> None:
        if _NONE not in str(error) or not isinstance(error, (AttributeError, TypeError)):
            return
        if self._read is not None and _same_place(self._read.stack, stack):
            self._report(self._read, error)
        elif self._none is not None and _same_function(self._none.stack, stack):
            self.session.emit(self._none.with_error(first_line(error)))

    def _report(self, read: _MissingRead, error: BaseException) -> None:
        kind = "early"
        cut = None
        if not read.requires_grad:
            kind = "plain"
        elif read.fed:
            cut = None if read.reached else self._origins.first_since(read.calls - 1, read.leaf)
            kind = "cut" if cut is not None else "cleared"
        elif read.calls:
            cut = next((cut for cut in self._cuts if read.leaf in self._origins.leaves_behind(cut)), None)
            kind = "cut" if cut is not None else "unreached"
        frames = frames_of(error.__traceback__)
        name = self._name(read.leaf, frames[-1] if frames else None)
        cleared = self._cleared if kind == "cleared" else ()
        self.session.emit(GradMissing(kind, read.stack, name, first_line(error), cleared=cleared, cut=cut))


def _file(call: TorchCall) -> str:
    return call.frame.f_code.co_filename


def _asked(call: TorchCall) -> tuple[list[Any], list[Any]]:
    """Outputs and inputs of a call of autograd.grad or backward."""
    given = [*call.args]
    outputs = given[0] if given else call.kwargs.get("outputs", call.kwargs.get("tensors", ()))
    if call.func is torch.autograd.grad:
        inputs = given[1] if len(given) > 1 else call.kwargs.get("inputs", ())
    else:
        inputs = call.kwargs.get("inputs") or ()
    return tensors_in([outputs]), list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]


def _same_place(read: Stack, raised: Stack) -> bool:
    """Whether an error was raised in the statement that read a gradient, or in one that uses what that one assigned."""
    if not read or not raised:
        return False
    if read[0].place == raised[0].place:
        return True
    assigned = {text.partition("[")[0] for text in questions.assigned(read[0])}
    return read[0].function == raised[0].function and bool(assigned & questions.reads(raised[0]))


def _same_function(read: Stack, raised: Stack) -> bool:
    here = {(site.path, site.function) for site in raised}
    return any((site.path, site.function) in here for site in read)
