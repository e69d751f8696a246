"""Decides where the script stops, and lets the user look around there.

    debugger = Debugger(wish, judge, ...)
    debugger.watch = Watch(debugger.see, stops=debugger.stops, pause=debugger.pause, ...)
    with debugger.attached(): ...

Between two pieces of watching `pause` is called: where something happened by then that is a reason to stop, the prompt
opens in the innermost frame of the user's.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from textwrap import shorten
from types import FrameType
from typing import Any

from gradtrace.debugger import terminal
from gradtrace.debugger.last_line import at_last_line
from gradtrace.debugger.questions import GradientPrompt
from gradtrace.debugger.wishes import Wish
from gradtrace.errors import UsageError
from gradtrace.host import streams
from gradtrace.host.script import StopRun, Terminated
from gradtrace.host.tracebacks import is_ours, without_our_frames
from gradtrace.model.events import Backward, Cut, End, Event, Step
from gradtrace.model.finding import Finding
from gradtrace.model.graph import Graph
from gradtrace.model.lives import GradientNow, Life, State
from gradtrace.model.moments import Halt, Moment
from gradtrace.model.site import Site
from gradtrace.renderers import wording
from gradtrace.report import reasons
from gradtrace.rules import Judge
from gradtrace.source import syntax
from gradtrace.watcher.pictures.latest import LatestPictures
from gradtrace.watcher.stops import Stops
from gradtrace.watcher.watch import Watch, graph_of

#: what would be found at the end is computed at each of so many first events, and then ever more rarely
_EACH, _SHARE = 64, 16
#: characters of an exception's message
_LONGEST = 140
#: why a parameter with a gradient is as it was, in the first iteration
_NO_STEP = "no optimizer has made a step yet"
_INTRODUCTION = (
    "(graph, path, why, grads, saved, cuts, findings, diff and until are about gradients; help explains them)"
)


class Debugger:
    """One run. `listener` gets each event, as without a debugger; `judge` judges it, and what `is_silenced` is no reason to
    stop."""

    def __init__(
        self,
        wish: Wish,
        judge: Judge,
        listener: Callable[[Event], None],
        is_silenced: Callable[[Finding], bool],
        color: bool,
    ) -> None:
        self._wish = self._standing = wish
        self._judge = judge
        self._is_silenced = is_silenced
        self._listener = listener
        self._color = color
        self.pictures = LatestPictures()
        self.stops = Stops(lambda: self._wish.moments, self._reached, self._in_child)
        self._watch: Watch | None = None
        self._prompt: GradientPrompt | None = None
        #: findings that were a reason to stop, or were there before the wish
        self._known: set[tuple[str, str, int]] = set()
        self._reason = ""
        #: where the line to blame is, of a reason that is a finding
        self._blamed: Site | None = None
        #: events that may complete a finding, and the number of them at which to judge next
        self._events = self._judged_at = 0
        self._busy = self._over = False
        #: the user left, or an exception ended the script: there is no end to stop at
        self._left = False
        #: all that the rules had to say is said
        self._complete = False
        self._introduced = False
        #: the exception at which it stopped while that was on its way
        self._met = ""

    def attach(self, watch: Watch) -> None:
        """Says of which run."""
        self._watch = watch
        self._prompt = GradientPrompt(watch.is_user_frame, self, self._color)

    @property
    def has_stopped(self) -> bool:
        """Whether the prompt was ever shown."""
        return self._introduced

    @property
    def _running(self) -> tuple[Watch, GradientPrompt]:
        assert self._watch is not None
        assert self._prompt is not None
        return self._watch, self._prompt

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Open while the script runs."""
        _, prompt = self._running
        with terminal.kept(), self._interrupts():
            for path, line in self._wish.lines:
                error = prompt.set_break(path, line)
                if error:
                    prompt.message(f"*** {error}")
            if self._wish.lines:
                prompt.wait_for_lines()
            try:
                yield
            finally:
                sys.settrace(None)
                self._over = True

    @contextmanager
    def _interrupts(self) -> Iterator[None]:
        """While open, Ctrl-C stops the script where it is; a second one, before that, ends it as without a debugger."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGINT) == self._interrupted:
                signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        users = self._users_frame(frame)
        if self._over or self._reason or self._busy or users is None:
            signal.default_int_handler(number, frame)
        self._reason = "interrupted by Ctrl-C"
        assert users is not None
        self._running[1].stop_soon(users)

    def _in_child(self) -> None:
        """A forked child: nothing is stopped there."""
        self._over = self._left = True
        sys.settrace(None)

    # reasons to stop

    def see(self, event: Event) -> None:
        """Something happened."""
        self._listener(event)
        self._events += isinstance(event, (Backward, Step))
        if not self._busy:
            self._look_for_reason(self._judge)
        if isinstance(event, End):
            self._complete = True
            self._stop_at_end()

    def _reached(self, halt: Halt) -> None:
        if not self._busy and not self._over:
            self._reason = self._reason or halt.text

    def _look_for_reason(self, judge: Judge) -> None:
        """Whether something was found that is a reason to stop and was none before."""
        if self._reason or not self._wish.judges or judge.places <= self._known:
            return
        fresh = [finding for finding in judge.findings if finding.place not in self._known]
        self._known |= judge.places
        wanted = [finding for finding in fresh if self._wish.fits(finding) and not self._is_silenced(finding)]
        if wanted:
            self._reason, self._blamed = _described(wanted[0]), wanted[0].site

    def _judge_so_far(self) -> None:
        """What the end would bring is a reason, too: many rules look at the run as a whole."""
        if self._events < self._judged_at or self._reason or not self._wish.judges:
            return
        self._judged_at = self._events + 1 + max(0, self._events - _EACH) // _SHARE
        watch, _ = self._running
        self._look_for_reason(self._so_far(watch))

    def _so_far(self, watch: Watch) -> Judge:
        judge = self._judge.copy()
        watch.report_so_far(judge.see)
        return judge

    def pause(self) -> None:
        """Between two pieces of watching: stops the script where there is a reason to. Raises `StopRun` where the user
        ends the run."""
        if self._busy or self._over or self._watch is None:
            return
        self._busy = True
        frame: FrameType | None = None
        try:
            self._judge_so_far()
            frame = self._users_frame(sys._getframe()) if self._reason else None
            if frame is not None:
                self._stop(frame)
        except Exception as error:  # noqa: BLE001 - whatever it is, the script must go on
            self._over = True
            streams.announce(f"internal error in the debugger, which stops no more: {_summary(error)}")
        finally:
            self._busy = False
        if frame is not None and not self._over:
            self._running[1].resume(frame)

    def _users_frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the user's, not of a library that was called by it."""
        watch, _ = self._running
        while frame is not None and (is_ours(frame) or not watch.is_user_frame(frame)):
            frame = frame.f_back
        return frame

    def _stop(self, frame: FrameType) -> None:
        error = sys.exc_info()[1]
        self._met = _summary(error) if error is not None else ""
        if self._met:
            self._reason += f"\nthis line raises {self._met}"
        if self._blamed is not None and not _runs(frame, self._blamed):
            self._reason += f"\n{_way_to(wording.place(self._blamed), goes_on=not self._met)}"
        self._running[1].stop_in(frame)

    def _stop_at_end(self) -> None:
        """The script is over, and all is judged: where that is a reason to stop, the prompt opens with the variables of
        the module."""
        main = vars(sys.modules["__main__"])
        path = main.get("__file__")
        if self._left or not self._reason or not path:
            return
        self._reason = f"at the end of the script, {self._reason}"
        if self._blamed is not None and syntax.function_statements(self._blamed):
            self._reason += f"\n{_way_to(wording.place(self._blamed), goes_on=False)}"
        with terminal.kept(), suppress(StopRun):
            at_last_line(path, main, self._running[1].stop_in)

    @contextmanager
    def at_prompt(self) -> Iterator[None]:
        """Open while the user looks around: what runs then is not watched."""
        watch, prompt = self._running
        was_busy, self._busy = self._busy, True
        self._wish = self._standing
        try:
            with watch.paused(), terminal.at_prompt():
                self._announce(prompt)
                yield
        except StopRun:
            # what the script still does on its way out is not stopped
            self._over = self._left = True
            raise
        finally:
            self._busy = was_busy

    def _announce(self, prompt: GradientPrompt) -> None:
        prompt.stdout = sys.stdout
        reason, self._reason, self._blamed = self._reason, "", None
        if reason:
            prompt.message(f"\nstopped: {reason}")
        if not self._introduced:
            self._introduced = True
            prompt.message(_INTRODUCTION)

    def post_mortem(self, error: BaseException) -> None:
        """The script ends by this exception: stops where it was raised."""
        watch, prompt = self._running
        self._left = not isinstance(error, SystemExit) or bool(error.code)
        traceback = without_our_frames(error.__traceback__)
        if isinstance(error, (StopRun, Terminated, SystemExit, KeyboardInterrupt)) or traceback is None:
            return
        if self._met == _summary(error) or watch.user_frame_of(traceback) is None:
            return
        sys.settrace(None)
        self._reason = f"{_summary(error)}, which nothing catches" + (f"\n{self._reason}" if self._reason else "")
        with suppress(StopRun):  # it ends in any case
            prompt.post_mortem(traceback)

    # what the prompt needs

    def graph(self, text: str, value: Any, frame: FrameType) -> Graph:
        """The graph behind a tensor, the value of an expression. Raises `UsageError` where it has none, and says why."""
        if not hasattr(value, "requires_grad") or not hasattr(value, "grad_fn"):
            raise UsageError(f"`{text}` is not a tensor but of type {type(value).__name__}{_entry_of(text, value)}")
        if not value.requires_grad:
            cuts = [_cut_in_words(cut) for cut in self._running[0].cuts_behind(value) if cut.stack]
            why = f"; cut off by {', '.join(cuts)}" if cuts else ""
            raise UsageError(f"`{text}` has no graph: it does not require grad{why}")
        return graph_of([value], frame)

    def names_of(self, value: object) -> Sequence[str]:
        """What the run calls a parameter, or the parameters of a module."""
        return self._running[0].names_of(value)

    def latest(self) -> tuple[Graph | None, Graph | None]:
        """The graph of the last backward call, and that of the call before on the same line."""
        return self.pictures.latest, self.pictures.previous

    def lives(self, frame: FrameType) -> Sequence[Life]:
        """What became of each parameter so far, with the reasons."""
        watch, _ = self._running
        watch.meet(frame)
        lives = reasons.explained(watch.lives, self.findings())
        if not watch.optimizer_steps and not self._complete:
            return [replace(one, reason=_NO_STEP) if one.state is State.UNMOVED else one for one in lives]
        return lives

    def gradients(self, frame: FrameType) -> Sequence[GradientNow]:
        """The gradients that there are now."""
        return self._running[0].gradients(frame)

    def findings(self) -> Sequence[Finding]:
        """What would be reported were the run to end now."""
        if self._complete:
            return self._judge.findings
        return self._so_far(self._running[0]).findings

    def until(self, moment: Moment) -> None:
        """Stops at this moment next, and then at those of before again."""
        self._wish = replace(self._standing, moments=frozenset({moment}), rules=frozenset())
        self._judged_at = 0


def _cut_in_words(cut: Cut) -> str:
    """`detach() of z at train.py:11`."""
    of = f" of `{cut.source}`" if cut.source else ""
    return f"{cut.op}{of} at {wording.place(cut.stack[0])}"


def _entry_of(text: str, value: Any) -> str:
    """Says how an entry of a container is named; empty for what is none."""
    key: object = None
    if isinstance(value, (list, tuple)) and value:
        key = -1
    elif isinstance(value, dict) and value:
        key = next(iter(value))
    return f"; name one in it, as in `graph {text}[{key!r}]`" if key is not None else ""


def _described(finding: Finding) -> str:
    place = wording.place(finding.site)
    advice = f"\nhelp: {finding.help}" if finding.help else ""
    return f"{finding.level}[{finding.rule}] at {place}: {finding.message}{advice}"


def _way_to(place: str, goes_on: bool) -> str:
    """How to stop in a line that has run."""
    again = f"type `tbreak {place}` and `c` if it runs again, or " if goes_on else ""
    return f"{place} has already run: to look around there, {again}start with `--at {place}`"


def _runs(frame: FrameType | None, site: Site) -> bool:
    """Whether a function that is still running holds the line: its variables are in sight."""
    while frame is not None:
        code = frame.f_code
        if os.path.abspath(code.co_filename) == site.path and site.line in (line for _, _, line in code.co_lines()):
            return True
        frame = frame.f_back
    return False


def _summary(error: BaseException) -> str:
    return shorten(f"{type(error).__name__}: {error}".rstrip(": "), _LONGEST, placeholder=" …")
