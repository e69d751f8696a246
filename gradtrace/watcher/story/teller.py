"""Follows the user's code statement by statement and reports to a `Chronicle` what each of them changed.

Each statement ends when the next one in its function begins. Then the tensors that the user's code can name are looked
at, and what is not as it was at the last look is put down to the statement.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType, ModuleType, WrapperDescriptorType
from typing import Any

import torch

from gradtrace.errors import first_line
from gradtrace.host.script import StopRun
from gradtrace.model.site import Site, Stack
from gradtrace.model.story import Asked, Fact, Left, Mode, Printed, Raised, Stepped
from gradtrace.source import questions, syntax
from gradtrace.stories.chronicle import Chronicle
from gradtrace.watcher.code import names
from gradtrace.watcher.code.frames import path_of
from gradtrace.watcher.compat import spare, tracing_state
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session, out_of_reach
from gradtrace.watcher.core.steps import Steps
from gradtrace.watcher.story import lineage
from gradtrace.watcher.story.changes import Changes, Statement
from gradtrace.watcher.story.lineage import Lineage
from gradtrace.watcher.story.tracing import callbacks, traced

Tensor = torch.Tensor
_LEAVING = {
    Tensor.item: "item()",
    Tensor.tolist: "tolist()",
    Tensor.numpy: "numpy()",
    Tensor.__float__: "float()",
    Tensor.detach: "detach()",
}
#: give a way to write to a tensor without a trace
_EXPOSING = Tensor.data.__get__, Tensor.__array__, Tensor.__dlpack__  # type: ignore[attr-defined]
#: leaves that a call did not reach, named in one fact
_MISSED = 64
#: facts of one statement, pieces of what it prints, functions in functions, leaves that were reached
_MOST, _DEEPEST, _LEAVES = 1_000, 60, 100_000


@dataclass(slots=True)
class _RunningFunction:
    """A function of the user's that runs; `frame` is the `id()` of its frame."""

    frame: int
    code: CodeType
    statement: Any = None
    place: Statement | None = None
    line: int = 0
    #: gradients were on when the statement began
    enabled: bool = True
    #: what happened in the statement so far
    facts: list[Fact] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    local: dict[int, str] = field(default_factory=dict)
    #: what it was given, until it has a statement to report; None for the script itself
    given: tuple[str, ...] | None = None
    given_shown: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which statements are followed: those of one function, of some lines of the script, of all of the user's code."""

    function: str = ""
    lines: tuple[int, int] | None = None

    def function_fits(self, name: str) -> bool:
        return not self.function or name == self.function or name.endswith(f".{self.function}")

    def line_fits(self, line: int) -> bool:
        return self.lines is None or self.lines[0] <= line <= self.lines[1]


class Storyteller(Observer):
    """An observer of torch, and the listener of what runs."""

    serves_rules = False

    def __init__(self, chronicle: Chronicle, wanted: Wanted) -> None:
        self._chronicle = chronicle
        self._wanted = wanted
        self._running: list[_RunningFunction] = []
        #: the last look may be older than the statement that begins
        self._stale = True
        self._error = ""
        #: the `id()` of each leaf that a call has reached
        self._reached: set[int] = set()
        self._stop: Callable[[], None] = lambda: None

    def attach(self, session: Session, cuts: Origins, steps: Steps) -> None:
        """Says of which run."""
        self.session, self._steps = session, steps
        self._lineage = Lineage(session, self._name)
        self._changes = Changes(self._lineage, cuts, session.book)

    def _name(self, tensor: Tensor) -> str:
        return self._changes.name(tensor)

    @contextmanager
    def watched(self) -> Iterator[None]:
        for code in callbacks():
            spare(code)
        with _overheard(lambda text: self.session.guarded(self._note_printed, text)), traced(self) as self._stop:
            yield

    def abandoned(self) -> None:
        self._stop()

    # what runs

    def wants(self, code: CodeType) -> bool:
        """Whole files and named functions; a lambda or comprehension is part of the statement around it."""
        return bool(self.session.guarded(self._wants, code))

    def _wants(self, code: CodeType) -> bool:
        name = getattr(code, "co_qualname", code.co_name)
        if code.co_name == "<module>":
            return not self._wanted.function and self.session.frames.is_user(code.co_filename)
        plain = not code.co_name.startswith("<") and bool(code.co_flags & CO_OPTIMIZED)
        if not plain or (sys.version_info < (3, 13) and names.hands_out_locals(code)):
            # to look at its variables would change what `locals()` has given to it
            return False
        return self._wanted.function_fits(name) and self.session.frames.is_user(code.co_filename)

    def entered(self, frame: FrameType) -> None:
        self.session.guarded(self._enter, frame)

    def _enter(self, frame: FrameType) -> None:
        code = frame.f_code
        self._look_from(frame.f_back, emit=True)
        scope = _variables(frame) if code.co_name != "<module>" and not self._hidden() else {}
        given = [(name, one, self._name(one)) for name, one in scope.items() if isinstance(one, Tensor)]
        self._running.append(_RunningFunction(id(frame), code, local={id(one): name for name, one, _ in given}))
        self._changes.local = self._running[-1].local
        if len(self._running) > 1 or code.co_name != "<module>":
            texts = tuple(f"{name} = {known or _plain(one)}" for name, one, known in given)
            self._running[-1].given = texts

    def _look_from(self, frame: FrameType | None, emit: bool) -> None:
        """Where a function begins or has ended: what its caller sees by then.

        What changed before it began is due to the statement that called it; its own variables are gone when it ended.
        """
        running = self._running[-1] if self._running else None
        while frame is not None and running is not None and id(frame) != running.frame:
            frame = frame.f_back
        if frame is None or running is None or running.place is None or self._hidden():
            return
        place = replace(running.place, targets=())
        scope = names.variables(frame)
        around = names.around(frame, scope, self.session.frames)
        facts = self._changes.facts(around, place, scope, frame.f_globals, self._steps.running, _asked(running.facts))
        running.local = self._changes.local
        if emit:
            running.facts += facts

    def _hidden(self) -> bool:
        """Whether what passes now only stands for tensors, whose reading would be recorded, or another thread of the
        script may be changing them."""
        if out_of_reach() or tracing_state() is not None:
            return True
        return threading.active_count() > 1 and any(map(self._is_users, _other_threads()))

    def _is_users(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if self.session.frames.is_user(frame.f_code.co_filename):
                return True
            frame = frame.f_back
        return False

    def reached(self, frame: FrameType, line: int) -> None:
        self.session.guarded(self._reach, frame, line)

    def _reach(self, frame: FrameType, line: int) -> None:
        running = self._running[-1] if self._running else None
        if running is None or running.frame != id(frame):
            return
        found = syntax.statement(path_of(frame.f_code), line)
        first = found.lineno if found is not None else line
        last = (found.end_lineno if found is not None else None) or line
        # a statement of several lines reaches them in turn, the first one once more at its end
        if running.statement is found and found is not None and first < last:
            return
        self._finish(running, frame)
        self._begin(running, frame, found, first, last)

    def _begin(self, running: _RunningFunction, frame: FrameType, found: Any, first: int, last: int) -> None:
        self._error = ""
        running.statement, running.line, running.enabled = found, first, torch.is_grad_enabled()
        path = path_of(frame.f_code)
        # a file without statements has line 0
        if not first or not self._wanted.line_fits(first) or len(self._running) > _DEEPEST:
            running.place, self._stale = None, True
            return
        fresh = running.given is not None and not running.given_shown
        if (self._stale or fresh or self._wanted.function) and not self._hidden():
            scope = _variables(frame)
            self._changes.look(names.around(frame, scope, self.session.frames), scope, frame.f_globals)
            running.local, self._stale = self._changes.local, False
        if running.given is not None and not running.given_shown:
            code, running.given_shown = running.code, True
            self._chronicle.enter(getattr(code, "co_qualname", code.co_name), path, code.co_firstlineno, running.given)
        running.place = Statement(path, first, last, questions.targets(path, first))
        self._changes.local = running.local
        self._chronicle.begin(path, first)

    def _finish(self, running: _RunningFunction, frame: FrameType) -> None:
        place, running.place = running.place, None
        if place is None:
            running.facts, running.printed = [], []
            return
        facts, running.facts = running.facts, []
        if self._hidden():
            self._stale, running.printed = True, []
            self._chronicle.end(facts)
            return
        scope = _variables(frame)
        around = names.around(frame, scope, self.session.frames)
        step = self._steps.running or any(isinstance(fact, Stepped) for fact in facts)
        ends: list[Fact] = [fact for fact in facts if isinstance(fact, Raised)]
        changed = self._changes.facts(around, place, scope, frame.f_globals, step, _asked(facts))
        running.local = self._changes.local
        if torch.is_grad_enabled() != running.enabled:
            changed.append(Mode(not running.enabled))
        if running.printed:
            ends.insert(0, Printed("".join(running.printed), self._read(place, scope, frame.f_globals)))
            running.printed = []
        self._chronicle.end([*(fact for fact in facts if not isinstance(fact, Raised)), *changed, *ends])

    @staticmethod
    def _read(place: Statement, scope: Mapping[str, Any], outer: Mapping[str, Any]) -> tuple[str, ...]:
        """The variables that a statement reads."""
        reads = questions.reads(Site(place.path, place.first, ""))
        plain = sorted(text for text in reads if text in scope or (text in outer and text.isidentifier()))
        values = ((text, scope.get(text, outer.get(text))) for text in plain)
        return tuple(text for text, one in values if not isinstance(one, (ModuleType, type)) and not callable(one))

    def raised(self, frame: FrameType, error: BaseException) -> None:
        running = self._running[-1] if self._running else None
        if running is not None and running.frame == id(frame) and not isinstance(error, StopRun):
            self.session.guarded(self._raise, running, frame, error)

    def _raise(self, running: _RunningFunction, frame: FrameType, error: BaseException) -> None:
        """Only where it was raised first: it comes up through every function that it leaves."""
        # a `__str__` of the user's own is not run
        plain = isinstance(type(error).__str__, WrapperDescriptorType)
        text = f"{type(error).__name__}: {error}" if plain else type(error).__name__
        if text == self._error or running.place is None or self._hidden():
            return
        self._error = text
        scope, states = _variables(frame), []
        reads = questions.reads(Site(running.place.path, running.place.first, ""))
        for name in sorted(reads, key=len):
            one = names.value_of(name, scope, frame.f_globals)
            if isinstance(one, Tensor):
                states.append(self._changes.state(name, one))
        running.facts.append(Raised(text.strip(), tuple(states)))

    def left(self, frame: FrameType) -> None:
        if self._running and self._running[-1].frame == id(frame):
            self.session.guarded(self._leave, frame)

    def _leave(self, frame: FrameType) -> None:
        running = self._running[-1]
        self._finish(running, frame)
        self._running.pop()
        if running.given_shown:
            self._chronicle.leave()
        self._changes.local = self._running[-1].local if self._running else {}
        self._look_from(frame.f_back, emit=False)
        self._stale = self._stale or not self._running

    # what torch does

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys(_LEAVING, self._leaves_torch) | dict.fromkeys(_EXPOSING, self._exposes)

    def _exposes(self, call: TorchCall) -> None:
        self._changes.expose(call.args[0])

    def _leaves_torch(self, call: TorchCall) -> None:
        tensor = call.args[0] if call.args else None
        if call.func is Tensor.numpy:
            self._exposes(call)
        users = self.session.frames.is_user(call.frame.f_code.co_filename)
        if users and isinstance(tensor, Tensor) and tensor.requires_grad and self._name(tensor):
            self._note(Left(_LEAVING[call.func], self._name(tensor)))

    def _note(self, fact: Fact) -> None:
        """Something happened in the statement that runs; of a library's loop inside it not everything is reported."""
        if self._running and len(self._running[-1].facts) < _MOST:
            self._running[-1].facts.append(fact)

    def made_nodes(self) -> Handler:
        return self._made

    def _made(self, call: TorchCall) -> None:
        if self._running and not self._hidden():
            self._lineage.made(call)

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        named = names.tensors(frame, self.session.frames)
        held = {id(one): name for name, one in reversed(named)}
        found = lineage.ways(call, named, lambda tensor: self._name(tensor) or held.get(id(tensor), ""))
        ways = {way.leaf: way for way in found}
        leaves = self._changes.in_order(ways)
        reached = {id(leaf) for leaf in call.leaves}
        self._reached = reached if len(self._reached) > _LEAVES else self._reached | reached
        stored = named if call.accumulates and call.whole else ()
        missed = [self._name(one) or name for name, one in stored if self._is_missed(one, reached)]
        self._asked = Asked(
            call.number,
            call.request,
            call.root,
            call.retain,
            call.create,
            len(call.nodes),
            tuple(ways[leaf].names for leaf in leaves if ways[leaf].names),
            tuple((leaf, ways[leaf].uses) for leaf in leaves),
            tuple(dict.fromkeys(missed))[:_MISSED],
            lineage.spent(call, named),
            whole=call.whole,
        )

    def _is_missed(self, tensor: Tensor, reached: set[int]) -> bool:
        """Whether a leaf may have been expected: it is some optimizer's, or no call has reached it so far."""
        if not tensor.is_leaf or not tensor.requires_grad or id(tensor) in reached:
            return False
        return self.session.owned(tensor) or id(tensor) not in self._reached

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        text = None if error is None else first_line(error)
        self._note(replace(self._asked, error=text))

    def after_step(self, optimizer: torch.optim.Optimizer, stack: Stack) -> None:
        self._note(Stepped(type(optimizer).__name__))

    def _note_printed(self, text: str) -> None:
        if self._running and len(self._running[-1].printed) < _MOST:
            self._running[-1].printed.append(text)


def _variables(frame: FrameType) -> dict[str, Any]:
    """The variables of the frame that is traced: `sys.settrace` writes back what its dictionary of locals holds, which
    therefore must not be emptied."""
    return dict(frame.f_locals) if sys.version_info < (3, 12) else names.variables(frame)


def _other_threads() -> list[FrameType]:
    own = threading.get_ident()
    return [frame for thread, frame in sys._current_frames().items() if thread != own]


def _asked(facts: Sequence[Fact]) -> bool:
    return any(isinstance(fact, Asked) for fact in facts)


def _plain(tensor: Tensor) -> str:
    return f"a tensor {list(tensor.shape)}"


@contextmanager
def _overheard(listen: Callable[[str], None]) -> Iterator[None]:
    """Passes on what goes through `sys.stdout.write`; the stream stays the same object and gets everything as before."""
    stream = sys.stdout
    write = getattr(stream, "write", None)

    def both(text: str) -> Any:
        if isinstance(text, str):
            listen(text)
        return write(text) if write is not None else None

    try:
        stream.write = both  # type: ignore[method-assign]
    except AttributeError:  # closed, or an object without attributes of its own
        yield
        return
    try:
        yield
    finally:
        if vars(stream).get("write") is both:
            del stream.write
