"""Counts the forward passes that come one after the other without a backward call: an evaluation without no_grad.

What they leave behind is looked for by the `GrowthWatcher`, to which each such pass is reported; that they are made for
nothing is reported here, where the module was in evaluation mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from gradtrace.model.events import UnusedGraph
from gradtrace.model.site import Stack
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import MODULE_CALL
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.faults.growth import GrowthWatcher, History

#: passes of one line in a row before anything is said of them
_PASSES = 4
#: nodes beyond what a training step makes, from which on passes are counted
_NODES_MORE = 12
#: rows of passes remembered until a backward call may run through them
_ROWS = 64


@dataclass(slots=True)
class _EvaluationRow:
    """Passes of one line since the last backward call, as ranges of node numbers."""

    stack: Stack
    phase: int
    kind: str = ""
    evaluating: bool = True
    starts: list[int] = field(default_factory=list)
    histories: dict[str, History] = field(default_factory=dict)
    end: int = 0

    @property
    def nodes(self) -> int:
        """How many nodes each pass made."""
        return (self.end - self.starts[0]) // len(self.starts)

    @property
    def passes(self) -> int:
        """How many passes there were: those counted, and those before them that made as many nodes each."""
        uncounted = self.starts[0] - self.phase
        before = round(uncounted / self.nodes) if self.nodes else 0
        alike = abs(uncounted - before * self.nodes) <= before
        return len(self.starts) + (before if alike else 0)


class Evaluations(Observer):
    def __init__(self, session: Session, growth: GrowthWatcher) -> None:
        super().__init__(session)
        self._growth = growth
        self._rows: dict[tuple[Stack, int], _EvaluationRow] = {}
        #: rows long enough that no backward call ran through so far
        self._long: list[_EvaluationRow] = []
        self._gate = session.beyond(_NODES_MORE)
        session.wake(self._gate)

    def woken(self) -> Handler:
        return self._count

    def _count(self, call: TorchCall) -> None:
        self.session.wake(self._gate)
        if call.after < self._gate:
            return
        frame = _outermost_module_call(call.frame)
        if frame is None or frame.f_back is None:
            return
        stack = self.session.frames.stack(frame.f_back)
        row = self._rows.setdefault((stack, self._instruction(frame)), _EvaluationRow(stack, self.session.phase))
        row.end = call.after
        # a mark of ours on the running call, which nothing reads but a debugger that steps through torch
        if frame.f_trace_lines:
            frame.f_trace_lines = False
            self._begin_pass(row, frame, call.before)

    def _instruction(self, frame: FrameType) -> int:
        """Where in the user's code a module is called: before Python 3.11 sites have no columns to distinguish calls on one line
        apart."""
        at = frame.f_back
        while at is not None and not self.session.frames.is_user(at.f_code.co_filename):
            at = at.f_back
        return at.f_lasti if at is not None else -1

    def _begin_pass(self, row: _EvaluationRow, frame: FrameType, number: int) -> None:
        if len(row.starts) <= _PASSES:
            module = names.variables(frame).get("self")
            row.kind = type(module).__name__
            row.evaluating = row.evaluating and not getattr(module, "training", True)
        row.starts.append(number)
        if 1 < len(row.starts) <= 2 * _PASSES and frame.f_back is not None:
            self._growth.look_between_passes(row.histories, frame.f_back, number, row.evaluating)

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        self._end_rows()
        if self._long:
            numbers = call.numbers()
            self._long = [row for row in self._long if not any(row.starts[0] <= one < row.end for one in numbers)]

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        self._gate = self.session.beyond(_NODES_MORE)
        self.session.wake(self._gate)

    def _end_rows(self) -> None:
        self._long += [
            row for row in self._rows.values() if row.evaluating and len(row.starts) > 1 and row.passes >= _PASSES
        ]
        self._rows.clear()
        del self._long[:-_ROWS]

    def at_end(self) -> None:
        self._end_rows()
        for row in self._long if self.session.backward_calls else ():
            if not self._growth.grew_in(row.phase):
                self.session.emit(UnusedGraph(row.stack, row.kind, row.passes, row.nodes))


def _outermost_module_call(frame: FrameType | None) -> FrameType | None:
    found = None
    while frame is not None:
        if frame.f_code is MODULE_CALL:
            found = frame
        frame = frame.f_back
    return found
