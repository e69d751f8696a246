"""Sees every backward call: wraps the one function through which torch enters its engine."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gradtrace.model import source
from gradtrace.model.events import Backward, Contribution, Reentry
from gradtrace.model.site import Stack
from gradtrace.watch import walk
from gradtrace.watch.cuts import Cuts
from gradtrace.watch.gradients import Leaf
from gradtrace.watch.observer import Observer
from gradtrace.watch.session import Session
from gradtrace.watch.steps import Steps

#: retaining calls watched for life
_RECENT = 256
_REENTRIES = 12

FREED = "Trying to backward through the graph a second time"
NO_GRAPH = "does not require grad and does not have a grad_fn"

Engine = Callable[..., Any]


class Calls:
    """Turns calls of the engine into `Backward` events and keeps the marks."""

    def __init__(self, session: Session, steps: Steps, cuts: Cuts, observers: Sequence[Observer]) -> None:
        self.cuts = cuts
        self.observers = observers
        self._session = session
        self._steps = steps
        self._active = False
        self._retaining: deque[weakref.ref[walk.Mark]] = deque(maxlen=_RECENT)

    def wrap(self, engine: Engine) -> Engine:
        def _engine_run_backward(t_outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            if self._active or torch.compiler.is_compiling() or not self._session.in_watched_thread():
                return engine(t_outputs, *args, **kwargs)
            call = self._session.guarded(self._begin, sys._getframe(1), t_outputs, args, kwargs)
            self._active = True
            error: BaseException | None = None
            try:
                return engine(t_outputs, *args, **kwargs)
            except BaseException as caught:
                error = caught
                self._session.tidy(caught)
                raise
            finally:
                self._active = False
                if call is not None:
                    self._session.guarded(call.finish, error)
                # the frame outlives the call inside a kept traceback: it must not hold the graph
                del call, error

        return _engine_run_backward

    def update(self, tensor: torch.Tensor, leaf: Leaf) -> None:
        """The leaf was updated by hand through an alias since the last call."""
        stack, leaf.updated = leaf.updated, ()
        self._steps.update(tensor, leaf, stack)

    def held(self) -> tuple[int, ...]:
        """Numbers of retaining calls whose graph is alive now."""
        alive = (ref() for ref in self._retaining)
        return tuple(mark.call for mark in alive if mark is not None)

    def _begin(self, frame: Any, outputs: Sequence[Any], args: Any, kwargs: Any) -> BackwardCall:
        names = ("grad_tensors", "retain_graph", "create_graph", "inputs", "allow_unreachable", "accumulate_grad")
        given = dict(zip(names, args, strict=False)) | kwargs
        self._steps.failed()
        with torch._C.DisableTorchFunction():
            return BackwardCall(self, self._session, frame, outputs, given)

    def remember_created(self, call: int, start: int, end: int) -> None:
        if end > start:
            self._session.created.append((call, start, end))

    def remember_retaining(self, mark: walk.Mark) -> None:
        self._retaining.append(weakref.ref(mark))

    def created_at(self, nodes: Sequence[Any]) -> set[int]:
        """Numbers of the calls that created some of these nodes as a graph of gradients."""
        if not self._session.created:
            return set()
        numbers = {node._sequence_nr() for node in nodes}
        low, high = min(numbers, default=0), max(numbers, default=-1)
        near = (one for one in self._session.created if one[1] <= high and one[2] > low)
        return {call for call, start, end in near if any(number in numbers for number in range(start, end))}


class BackwardCall:
    """One call of the engine, from just before it to just after."""

    def __init__(
        self, calls: Calls, session: Session, frame: Any, outputs: Sequence[Any], given: dict[str, Any]
    ) -> None:
        self._calls = calls
        self._session = session
        self.number = session.next_call()
        self.stack = session.frames.stack(frame)
        self.accumulates = bool(given.get("accumulate_grad"))
        self.retain, self.create = bool(given.get("retain_graph")), bool(given.get("create_graph"))
        self.start = session.sequence()
        roots = walk.roots_of(outputs)
        self.root_node = roots[0]._sequence_nr() if roots else -1
        self.root = source.root_of(self.stack[0]) if self.stack else ""
        # a scalar root has no gradient worth telling of: torch fills in a one
        self.with_gradient = any(isinstance(tensor, torch.Tensor) and tensor.dim() > 0 for tensor in outputs)
        self.held = calls.held()
        for observer in calls.observers:
            session.guarded(observer.before_backward, self, frame, outputs)
        found = walk.visit(roots)
        inputs = given.get("inputs") or ()
        self._visit = walk.restrict(found, inputs) if inputs else found
        self._cuts = calls.cuts.behind(outputs) if not roots else ()
        self._mark()
        self._prepare_leaves(frame)

    def numbers(self) -> set[int]:
        """The sequence numbers of the nodes it ran through."""
        return {node._sequence_nr() for node in self._visit.nodes}

    def _mark(self) -> None:
        visit, session = self._visit, self._session
        self.entered = {mark.call for mark in visit.kept} | {mark.call for _, _, mark in visit.old}
        self.entered |= self._calls.created_at(visit.nodes)
        mark = walk.Mark(self.number, self.stack, self.root, self.retain, self.start)
        mark.owners = session.owners(visit.leaves)
        self.reentries = tuple(self._reentries(mark))
        self._own_mark = mark
        walk.stamp(visit.nodes, mark)
        if self.retain:
            self._calls.remember_retaining(mark)

    def _reentries(self, own: walk.Mark) -> list[Reentry]:
        visit, trail = self._visit, self._session.trail
        if not visit.old:
            return []
        found = []
        ancestry = walk.Ancestry(visit)
        for user, node, mark in walk.distinct(visit.old):
            entry, carried = ancestry.entry(user, node, mark.number)
            found.append(
                Reentry(
                    call=mark.call,
                    call_stack=mark.stack,
                    call_root=mark.root,
                    freed=not mark.failed,
                    op=type(carried).__name__,
                    built=trail.find(carried._sequence_nr()),
                    entry=trail.find(entry._sequence_nr()) if entry is not None else (),
                    entered_later=entry is not None and entry._sequence_nr() >= mark.number,
                    own_leaves=ancestry.has_leaves_since(mark.number),
                    foreign=bool(own.owners and mark.owners) and not own.owners & mark.owners,
                    view=type(node).__name__ in walk.VIEWS,
                )
            )
        return found[:_REENTRIES]

    def _prepare_leaves(self, frame: Any) -> None:
        if not self.accumulates:
            return
        known = self._session.leaves(self._visit.leaves, frame)
        for tensor, leaf in known:
            if leaf.updated:
                self._calls.update(tensor, leaf)
            self._session.gradients.before_backward(tensor, leaf)
        self._known = known

    def finish(self, error: BaseException | None) -> None:
        with torch._C.DisableTorchFunction():
            self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        session = self._session
        for observer in self._calls.observers:
            session.guarded(observer.after_backward, self, error)
        end = session.sequence()
        session.trail.add(self.start, end, self.stack)
        self._own_mark.failed = error is not None
        if self.create:
            self._calls.remember_created(self.number, self.start, end)
        repeated, repeated_stack = self._accumulate() if self.accumulates and error is None else ((), ())
        session.emit(
            Backward(
                number=self.number,
                request="backward" if self.accumulates else "grad",
                stack=self.stack,
                root=self.root,
                root_node=self.root_node,
                retain_graph=self.retain,
                create_graph=self.create,
                nodes=len(self._visit.nodes),
                entered=tuple(sorted(self.entered)),
                held=self.held,
                reentries=self.reentries,
                repeated=repeated,
                repeated_stack=repeated_stack,
                error=_first_line(error),
                cuts=self._cuts,
            )
        )

    def _accumulate(self) -> tuple[tuple[str, ...], Stack]:
        own = Contribution(self.number, self.stack, self.root, self.root_node, self.with_gradient)
        repeated: list[str] = []
        earlier: Stack = ()
        for tensor, leaf in self._known:
            before = [one for one in leaf.contributions[leaf.used :] if one.root_node == self.root_node]
            if before and not self.with_gradient and not before[-1].with_gradient and self.root_node >= 0:
                repeated.append(leaf.name)
                earlier = before[-1].stack
            self._session.gradients.after_backward(tensor, leaf, own)
        return tuple(repeated), earlier


def _first_line(error: BaseException | None) -> str | None:
    return None if error is None else f"{type(error).__name__}: {error}".splitlines()[0]
