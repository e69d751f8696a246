"""Sees every backward call: wraps the one function through which torch enters its engine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any

import torch

from gradtrace.errors import first_line
from gradtrace.host import heap
from gradtrace.model.events import Backward, Contribution
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.book import CallRecord, Leaf, state
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Observer, overriding
from gradtrace.watcher.core.reentry import reentries
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import Steps
from gradtrace.watcher.graph import query, walk

FREED = "Trying to backward through the graph a second time"

Engine = Callable[..., Any]


class Calls:
    """Turns calls of the engine into `Backward` events and keeps the marks."""

    def __init__(self, session: Session, steps: Steps, cuts: Origins, observers: Sequence[Observer]) -> None:
        self.cuts = cuts
        self.before_handlers = overriding(observers, "before_backward")
        self.after_handlers = overriding(observers, "after_backward")
        self._session = session
        self._steps = steps
        self._active = False

    def wrap(self, engine: Engine) -> Engine:
        @compiled.around
        def _engine_run_backward(t_outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            if self._active or not self._session.sees_this():
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

    def _begin(self, frame: Any, outputs: Sequence[Any], args: Any, kwargs: Any) -> BackwardCall:
        names = ("grad_tensors", "retain_graph", "create_graph", "inputs", "allow_unreachable", "accumulate_grad")
        given = dict(zip(names, args, strict=False)) | kwargs
        self._steps.failed(frame)
        self._session.ids.forget_dead()
        with heap.uncollected():
            return BackwardCall(self, self._session, frame, outputs, given)

    def remember_created(self, call: int, start: int, end: int) -> None:
        if end > start:
            self._session.created.append((call, start, end))

    def created_at(self, nodes: Iterable[Any]) -> set[int]:
        """Numbers of the calls that created some of these nodes as a graph of gradients."""
        if not self._session.created:
            return set()
        numbers = {node_number(node) for node in nodes}
        low, high = min(numbers, default=0), max(numbers, default=-1)
        # in the order of their numbers
        recent = takewhile(lambda one: one[2] > low, reversed(self._session.created))
        near = (one for one in recent if one[1] <= high)
        return {call for call, start, end in near if not numbers.isdisjoint(range(start, end))}


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
        self.request = "backward" if self.accumulates else "grad"
        self.retain, self.create = bool(given.get("retain_graph")), bool(given.get("create_graph"))
        self.start = session.sequence()
        session.longest = max(session.longest, self.start - session.phase)
        roots = walk.roots_of(outputs)
        self.root_node = node_number(roots[0]) if roots else -1
        self.root_output = getattr(next(iter(outputs), None), "output_nr", 0)
        self.root = questions.root_of(self.stack[0]) if self.stack else ""
        # a scalar root has no gradient worth telling of: torch fills in a one
        with_gradient = any(isinstance(tensor, torch.Tensor) and tensor.dim() > 0 for tensor in outputs)
        #: what the book keeps of it, if it accumulates
        self.record: CallRecord | None = None
        if self.accumulates:
            origin = Contribution(
                self.number, self.stack, self.root, self.root_node, with_gradient, root_output=self.root_output
            )
            self.record = CallRecord(origin)
        #: the leaves to which it gave something
        self.given: Sequence[tuple[torch.Tensor, Leaf]] = ()
        self.held = session.held()
        found = walk.visit(roots)
        inputs = given.get("inputs") or ()
        self._visit = query.restrict(found, inputs) if inputs else found
        session.dispatch(calls.before_handlers, self, frame, outputs)
        self._note_cuts(outputs if not roots else inputs)
        self._mark()
        self._prepare_leaves(frame)

    def _note_cuts(self, tensors: Sequence[Any]) -> None:
        cuts = self._calls.cuts
        cut_off = [one for one in tensors if not getattr(one, "requires_grad", True)]
        frozen = [cut for one in self._session.optimizers() for cut in cuts.frozen_by(one)] if cut_off else []
        self._cuts = (*frozen, *cuts.behind(cut_off))
        self._suspects = cuts.suspects() if self.root_node < 0 and not self._cuts else ()
        self._rewrapped = cuts.rewrapped(self._visit.leaves) if self._visit.leaves and self._visit.whole else ()

    def numbers(self) -> set[int]:
        """The sequence numbers of the nodes it ran through."""
        return {node_number(node) for node in self._visit.nodes}

    @cached_property
    def nodes(self) -> Sequence[Any]:
        """The nodes that the call runs through, as far as they were walked."""
        return list(self._visit.nodes)

    @cached_property
    def kinds(self) -> frozenset[type]:
        """The types of these nodes."""
        return frozenset(map(type, self._visit.nodes))

    @property
    def users(self) -> dict[Any, Any]:
        """Each of these nodes with the one that led to it, None for a root."""
        return self._visit.nodes

    @property
    def whole(self) -> bool:
        """Whether all that it runs through was walked: `nodes` and `leaves` are complete."""
        return self._visit.whole

    @property
    def leaves(self) -> Sequence[torch.Tensor]:
        """The leaves that the walk reached, or those of them that gradients are computed of."""
        return self._visit.leaves

    def _mark(self) -> None:
        visit, session = self._visit, self._session
        self.entered = self._calls.created_at(visit.nodes)
        if visit.kept or visit.old:
            self.entered.update(mark.call for mark in (*visit.kept, *(mark for _, _, mark in visit.old)))
        if not visit.whole:
            self.entered |= set(self.held)
        mark = walk.Mark(self.number, self.request, self.stack, self.root, self.retain, self.start)
        mark.owners = session.owners(visit.leaves)
        self._own_mark = mark
        walk.stamp(visit.nodes, mark)
        if self.retain:
            session.retains(mark)

    def _prepare_leaves(self, frame: Any) -> None:
        book = self._session.book
        self._before: list[tuple[torch.Tensor, Leaf, tuple[int, int] | None]] = []
        if not self.accumulates:
            return
        leaves = self._session.leaves(self._visit.leaves, frame)
        book.before_backward(leaves)
        for tensor, leaf in leaves:
            self._before.append((tensor, leaf, state(tensor.grad)))
        book.running = True

    def finish(self, error: BaseException | None) -> None:
        session = self._session
        self.reentries = reentries(self._visit, session, failed=error is not None)
        end = session.phase = session.sequence()
        session.book.running = False
        repeated, repeated_stack = self._accumulate() if self.record is not None and error is None else ((), ())
        session.dispatch(self._calls.after_handlers, self, error)
        session.trail.add(self.start, end, self.stack)
        self._own_mark.failed = error is not None
        if self.create:
            self._calls.remember_created(self.number, self.start, end)
        session.emit(
            Backward(
                number=self.number,
                request=self.request,
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
                error=None if error is None else first_line(error),
                cuts=self._cuts,
                suspects=self._suspects,
                rewrapped=self._rewrapped,
            )
        )

    def _accumulate(self) -> tuple[tuple[str, ...], Stack]:
        """Enters its shares into the book. Returns the leaves that already hold an unused share of the same root, and
        where that one was made."""
        assert self.record is not None
        own = self.record.origin
        repeated: list[str] = []
        earlier: Stack = ()
        for _, leaf, _ in self._before if not own.with_gradient and own.root_node >= 0 else ():
            unused = [share.call.origin for share in leaf.shares[leaf.used :]]
            before = [one for one in unused if _same_root(one, own)]
            if before and not before[-1].with_gradient:
                repeated.append(leaf.name)
                earlier = before[-1].stack
        self.given = self._session.book.after_backward(self._before, self.record)
        return tuple(repeated), earlier


def _same_root(one: Contribution, other: Contribution) -> bool:
    return (one.root_node, one.root_output) == (other.root_node, other.root_output)
