"""One watch over the user's script: puts the mode, the hooks and the observers in place, and takes them away.

with Watch(listener) as watch: ...      # events go to the listener; at the end everything is put back
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType, ModuleType, TracebackType
from typing import TYPE_CHECKING, TypeVar

import torch

from gradtrace.host.ranks import Colleagues
from gradtrace.host.tracebacks import frames_of
from gradtrace.model.events import Cut, End, Event, Unseen
from gradtrace.model.finding import SAVED_VALUES
from gradtrace.model.graph import Graph
from gradtrace.model.lives import GradientNow, Life
from gradtrace.model.site import Stack
from gradtrace.watcher import compat
from gradtrace.watcher.code.frames import Frames
from gradtrace.watcher.compat import ENGINE, ENGINE_MODULES, compiled_pieces
from gradtrace.watcher.core import anomaly, compiled, saved_hooks, warning_sites, zero_grad
from gradtrace.watcher.core.backward import Calls
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.mode import WatchMode
from gradtrace.watcher.core.observer import Observer, overriding
from gradtrace.watcher.core.patches import patched
from gradtrace.watcher.core.pausing import PausingSession
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import Steps
from gradtrace.watcher.observers import Observers
from gradtrace.watcher.parameters.lives import Lives
from gradtrace.watcher.parameters.now import gradients_now
from gradtrace.watcher.pictures.snapshot import Snapshots
from gradtrace.watcher.ranks.groups import ProcessGroups
from gradtrace.watcher.ranks.spawned import InChild, SpawnedRanks
from gradtrace.watcher.truths.gradcheck import BackwardChecks

if TYPE_CHECKING:
    from gradtrace.watcher.stops import Stops
    from gradtrace.watcher.story.teller import Storyteller

T = TypeVar("T")
TORCH_VERSION = str(torch.__version__)

_NO_SAVED_VALUES = Unseen((SAVED_VALUES,), f"needs {SAVED_VALUES} (torch >= 2.13)")

_watching: list[Watch] = []


def _abandon_in_child() -> None:
    for watch in _watching:
        watch.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_abandon_in_child)


class Watch:
    """Watches this thread's use of torch from entry to exit.

    `user_roots` are directories of the user's code that lie inside a library's, `launchers` files that run it and are none
    of it; `stop_after` ends the run after so many
    optimizer steps, by raising `StopRun` in it; `snapshots` takes pictures of the graphs, `rules` watches for what
    rules judge (by default where there are no snapshots), `lives` follows each parameter, `story` follows each statement,
    `gradcheck` tries the backward of custom Functions. `stops` sees where a debugger may stop the run, and `pause` is
    called whenever it may. `colleagues` are the other ranks of the job, if a launcher has started some, and `in_child`
    makes what runs in a process that the script starts as a rank.
    """

    def __init__(
        self,
        listener: Callable[[Event], None],
        *,
        user_roots: Iterable[str] = (),
        launchers: Iterable[str] = (),
        stop_after: int | None = None,
        snapshots: Snapshots | None = None,
        rules: bool | None = None,
        lives: bool = False,
        story: Storyteller | None = None,
        stops: Stops | None = None,
        pause: Callable[[], None] | None = None,
        gradcheck: bool = False,
        debug: bool = False,
        colleagues: Colleagues | None = None,
        in_child: InChild | None = None,
    ) -> None:
        frames = Frames(user_roots, launchers)
        session = self._session = (
            Session(listener, frames, debug) if pause is None else PausingSession(listener, frames, debug, pause)
        )
        session.colleagues = colleagues
        cuts = self._origins = Origins(session)
        self._lives: Lives | None = None
        self._groups: ProcessGroups | None = None
        self._steps = Steps(session, stop_after)
        self.snapshots = snapshots
        self._observers: list[Observer] = [cuts]
        session.failures.observers = self._observers
        made = Observers(session, cuts, self._steps)
        if snapshots is not None:
            snapshots.attach(session, cuts)
            self._observers.append(snapshots)
        if gradcheck:
            made.make(BackwardChecks)
        if rules or (rules is None and snapshots is None):
            made.make_all()
            self._groups = made.make(ProcessGroups)
            made.make(SpawnedRanks).in_child = in_child
        if lives:
            self._lives = made.make(Lives)
        self._observers += made
        if story is not None:
            story.attach(session, cuts, self._steps)
            self._observers.append(story)
        if stops is not None:
            stops.attach(session)
            self._observers.append(stops)
        self._steps.after_handlers = overriding(self._observers, "after_step")
        self._steps.unseen_handlers = overriding(self._observers, "after_unseen_step")
        self._steps.group_handlers = overriding(self._observers, "after_group")
        self._steps.refused_handlers = overriding(self._observers, "group_refused")
        self._calls = Calls(session, self._steps, cuts, self._observers)
        self._open = ExitStack()
        #: what is hidden from torch.compile
        self._shy = ExitStack()
        self._hidden = False
        self._compiled = compiled_pieces()

    def __enter__(self) -> Watch:
        session = self._session
        session.begin()
        with ExitStack() as opened:
            opened.callback(session.guarded, self._end)
            opened.enter_context(session.ids.watched())
            opened.enter_context(_engine(self._calls))
            opened.enter_context(self._steps.watched())
            for observer in self._observers:
                opened.enter_context(_contained(session, observer))
            opened.enter_context(saved_hooks.noticed(lambda: session.emit(_NO_SAVED_VALUES)))
            opened.enter_context(warning_sites.placed(self._failed))
            opened.enter_context(anomaly.placed(self._failed))
            self._mode = opened.enter_context(WatchMode(session, self._steps, self._observers))
            self._shy = self._exposed()
            opened.callback(lambda: self._shy.close())
            opened.enter_context(compiled.regions(self._hide))
            self._open = opened.pop_all()
        _watching.append(self)
        return self

    def _exposed(self) -> ExitStack:
        """Puts in place what torch.compile would take for a part of the script."""
        with ExitStack() as opened:
            opened.enter_context(self._steps.hooked())
            opened.enter_context(self._mode.overlooked())
            opened.enter_context(zero_grad.watched(self._session, self._mode, self._observers))
            return opened.pop_all()

    def _hide(self) -> Callable[[], None]:
        """A compiled function begins to run: takes that away until it ends."""
        if self._hidden or not self._session.in_watched_thread():
            return lambda: None
        self._hidden = True
        versions = self._session.guarded(self._steps.versions) or {}
        self._attempt(self._shy.close)
        self._mode.stand_aside(True)

        def appear() -> None:
            self._hidden = False
            self._mode.stand_aside(False)
            self._shy = self._attempt(self._exposed) or ExitStack()
            self._session.guarded(self._steps.unseen, versions)

        return appear

    def _failed(self, error: Exception) -> None:
        self._session.fail(error, self)

    def _attempt(self, work: Callable[[], T]) -> T | None:
        """As `guarded`, for what changes the stack of modes, and for what must be done even where watching has failed."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the script must go on
            self._session.fail(error, self)
            return None

    def __exit__(self, *error: object) -> None:
        _watching.remove(self)
        try:
            self._open.close()
        finally:
            self._session.abandon()
            self._session.frames.forget()

    def abandon(self) -> None:
        """In a forked child, a worker that loads data for one: no code will read what is seen there."""
        self._session.abandon()
        self._mode.stand_aside(True)
        for observer in self._observers:
            self._session.guarded(observer.abandoned)

    def crashed(self, error: BaseException) -> None:
        """The script ends by this exception."""
        stack = self._session.guarded(self._session.frames.raised_at, error)
        for observer in self._observers:
            self._session.guarded(observer.crashed, error, stack)

    def report_so_far(self, listener: Callable[[Event], None]) -> None:
        """Gives the listener, and no other one, what the end of the run would bring if it came now."""
        assert isinstance(self._session, PausingSession)
        with self._session.listening(listener):
            for observer in self._observers:
                self._session.guarded(observer.so_far)
            self._session.emit(End(held=self._session.held()))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While open, what runs is not the script's: nothing is watched."""
        with self._session.unwatched():
            left = self._mode.leave()
            try:
                yield
            finally:
                if left:
                    self._mode.come_back()

    def meet(self, frame: FrameType | None) -> None:
        """Learns the names of parameters from the code that runs in `frame`."""
        if self._lives is not None:
            self._session.guarded(self._lives.meet, frame)

    def is_user_frame(self, frame: FrameType) -> bool:
        """Whether it runs code of the user's."""
        return self._session.frames.is_user(frame.f_code.co_filename)

    def user_frame_of(self, traceback: TracebackType) -> FrameType | None:
        """The innermost frame of the user's in which an exception was raised."""
        return next(filter(self.is_user_frame, reversed(frames_of(traceback))), None)

    def gradients(self, frame: FrameType) -> tuple[GradientNow, ...]:
        """The gradients, as they are now, of the parameters that the code running in `frame` can name."""
        return self._session.guarded(gradients_now, frame, self._session) or ()

    def names_of(self, value: object) -> tuple[str, ...]:
        """What the run calls a parameter or an input, or the parameters of a module; empty for what no backward call gave
        a gradient and no optimizer holds."""
        tensors: list[torch.Tensor] = [value] if isinstance(value, torch.Tensor) else []
        if isinstance(value, torch.nn.Module):
            tensors += value.parameters()
        return self._lives.names_of(tensors) if self._lives is not None else ()

    def cuts_behind(self, value: object) -> tuple[Cut, ...]:
        """What cut the paths behind a tensor without a graph, as far as that was seen."""
        return self._session.guarded(self._origins.behind, [value]) or ()

    def _end(self) -> None:
        for observer in self._observers:
            self._session.guarded(observer.at_end)
        self._session.emit(End(held=self._session.held()))

    @property
    def backward_calls(self) -> int:
        return self._session.backward_calls

    @property
    def optimizer_steps(self) -> int:
        return self._session.steps

    @property
    def colleagues(self) -> Colleagues | None:
        """The other ranks of the job, where there are any."""
        return self._session.colleagues

    @property
    def last_places(self) -> tuple[Stack, Stack]:
        """Where the last backward call and the last step were made, in a job of several ranks."""
        groups = self._groups
        return ((), ()) if groups is None else (groups.last_call, groups.last_step)

    @property
    def lives(self) -> tuple[Life, ...]:
        """What became of each parameter so far."""
        return self._lives.lives if self._lives is not None else ()

    def user_files(self) -> tuple[str, ...]:
        """The files of the user's code that were loaded."""
        # not by `module.__file__`, at which a lazy module would load something
        modules: list[object] = [*sys.modules.values()]
        files = {vars(module).get("__file__") for module in modules if isinstance(module, ModuleType)}
        frames = self._session.frames
        return tuple(
            sorted({os.path.abspath(file) for file in files if isinstance(file, str) and frames.is_user(file)})
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the reader must know about the watching itself."""
        return (*compat.remarks(), *self._session.failures.remarks())

    @property
    def unseen(self) -> tuple[str, ...]:
        """What a judgement must say of the code that it is not about."""
        found = []
        number = compiled_pieces() - self._compiled
        if number > 0:
            found.append(compiled.remark(number))
        elsewhere = self._session.calls_elsewhere
        if elsewhere:
            calls = "1 backward call" if elsewhere == 1 else f"{elsewhere:,} backward calls"
            found.append(f"{calls} in other threads could not be watched, and no rule judged them")
        return tuple(found)


def graph_of(tensors: Sequence[torch.Tensor], frame: FrameType | None) -> Graph:
    """The graph behind tensors that a function of ours was called with from `frame`, as a running watch knows it:
    without one, no line and no module is known."""
    running = next((one.snapshots for one in reversed(_watching) if one.snapshots is not None), None)
    if running is None:
        session = Session(lambda event: None, Frames())
        running = Snapshots()
        running.attach(session, Origins(session))
    return running.take(tensors, frame)


@contextmanager
def _contained(session: Session, observer: Observer) -> Iterator[None]:
    """While open, what an observer puts in place around the run is there. It may fail to, on entry and on leaving."""
    opened = ExitStack()
    try:
        opened.enter_context(observer.watched())
    except Exception as error:  # noqa: BLE001 - the script must run even so
        session.fail(error, observer)
    try:
        yield
    finally:
        try:
            opened.close()
        except Exception as error:  # noqa: BLE001 - the report must come even so
            session.fail(error, observer)


@contextmanager
def _engine(calls: Calls) -> Iterator[None]:
    with ExitStack() as opened:
        for module in ENGINE_MODULES:
            opened.enter_context(patched(module, ENGINE, calls.wrap))
        yield
