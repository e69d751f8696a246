"""Runs a script with edited source, in a fork of this process, and says what came of it.

The user's files are not touched: the edited text takes the place of a file's in memory, also where a module imports it.
"""

from __future__ import annotations

import importlib.machinery
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from time import monotonic
from types import CodeType
from typing import Any

from gradtrace.host.script import Program, load
from gradtrace.model.events import End, Event
from gradtrace.model.finding import Ended, Finding
from gradtrace.model.lives import Life, State
from gradtrace.model.truths import Truth
from gradtrace.report.recording import RecordedRun
from gradtrace.report.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of the script showed."""

    findings: tuple[Finding, ...]
    ended: Ended
    explained: bool
    backward_calls: int
    steps: int
    #: by name of the parameter
    lives: Mapping[str, Life] = field(default_factory=dict)
    #: the files of the user's code that were loaded
    files: tuple[str, ...] = ()
    #: rules that lacked data
    unjudged: frozenset[str] = frozenset()
    #: seconds
    took: float = 0.0
    #: optimizer steps made when the last of the findings came
    found_by: int = 0

    @property
    def failed(self) -> bool:
        return self.ended.status != 0

    @property
    def reached(self) -> frozenset[str]:
        """The parameters that a backward call gave a gradient, as far as they have a name."""
        named = {name: life for name, life in self.lives.items() if " " not in name}
        return frozenset(name for name, life in named.items() if any(one.first.arrivals for one in life.stretches))

    @property
    def owned_reached(self) -> frozenset[str]:
        """Of these, those that an optimizer holds, or that the script itself updates."""
        lives = self.lives
        return frozenset(name for name in self.reached if lives[name].optimizer or lives[name].state is State.BY_HAND)

    @property
    def moving(self) -> frozenset[str]:
        """The parameters that a step, or the script itself, has changed."""
        moved = (State.TRAINS, State.BY_HAND)
        return frozenset(name for name, life in self.lives.items() if life.state in moved)


@dataclass(frozen=True, slots=True)
class Script:
    """Which script runs, for how many steps, and what judges it. `words` are as in `Options`."""

    words: Sequence[str]
    module: str | None
    steps: int | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Trial:
    """One run: the texts that take the place of files, by path."""

    texts: Mapping[str, str] = field(default_factory=dict)


def run_all(script: Script, jobs: Sequence[Trial], at_once: int, seconds: float | None) -> list[Outcome | None]:
    """The outcome of each job; None where it took longer than so many seconds, or died without one."""
    context = multiprocessing.get_context("fork")
    found: list[Outcome | None] = [None] * len(jobs)
    waiting = list(enumerate(jobs))
    running: dict[Connection, tuple[int, Any, float]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                number, job = waiting.pop(0)
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_child, args=(theirs, script, job))
                process.start()
                theirs.close()
                running[ours] = number, process, monotonic()
            for ready in wait(list(running), timeout=0.2):
                assert isinstance(ready, Connection)
                number, process, _ = running.pop(ready)
                with suppress(EOFError):  # it died without a word
                    found[number] = ready.recv()
                _end(process)
            for connection, (_, process, began) in list(running.items()):
                if seconds is not None and monotonic() - began > seconds:
                    del running[connection]
                    _kill(process)
    finally:
        for _, process, _ in running.values():
            _kill(process)
    return found


def _end(process: Any) -> None:
    """Waits for the run to leave, and kills it where it does not."""
    process.join(1)
    if process.is_alive():
        _kill(process)


def _kill(process: Any) -> None:
    """And the children of the run, which share its group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:  # it has no group of its own yet
        process.kill()
    process.join()


def _child(pipe: Connection, script: Script, job: Trial) -> None:
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    pipe.send(_RunningTrial(script, job, pipe).outcome())
    os._exit(0)


class _RunningTrial:
    """One run under watch, in a process of its own."""

    def __init__(self, script: Script, job: Trial, pipe: Connection) -> None:
        # torch: the command has loaded it before it forks
        from gradtrace.watcher.watch import TORCH_VERSION, Watch

        replace_sources(job.texts)
        self._pipe = pipe
        self._verdict = script.verdict
        self._program = _load(script, job)
        self._start = RecordedRun(self._program.name, TORCH_VERSION, os.getcwd())
        self._judge = script.verdict.judge()
        self._known = 0
        self._found_by = 0
        self._watch = Watch(self._see, user_roots=self._program.roots, stop_after=script.steps, rules=True, lives=True)

    def outcome(self) -> Outcome:
        self._began = monotonic()
        return self._seen(self._program.run(self._watch, self._leave, self._watch.crashed))

    def _see(self, event: Event) -> None:
        self._judge.see(event)
        found = self._judge.count
        if found > self._known and not isinstance(event, (End, Truth)):
            self._known = found
            self._found_by = self._watch.optimizer_steps

    def _leave(self, ended: Ended) -> int:
        """The script calls `os._exit`."""
        self._pipe.send(self._seen(ended))
        return 0

    def _seen(self, ended: Ended) -> Outcome:
        watch = self._watch
        run = replace(self._start, ended=ended, files=watch.user_files())
        report = self._verdict.report(self._judge, run, watch.backward_calls, watch.optimizer_steps)
        return Outcome(
            report.findings,
            ended,
            self._judge.explains(ended.exception),
            watch.backward_calls,
            watch.optimizer_steps,
            {life.name: life for life in watch.lives},
            run.files,
            frozenset(one.rule for one in report.unjudged),
            monotonic() - self._began,
            self._found_by,
        )


def _load(script: Script, job: Trial) -> Program:
    if script.module is not None:
        return load(script.module, script.words, module=True)
    return load(script.words[0], script.words[1:], text=job.texts.get(os.path.abspath(script.words[0])))


def replace_sources(texts: Mapping[str, str]) -> None:
    """From here on, importing one of these files gives this text."""
    import linecache

    loader: Any = importlib.machinery.SourceFileLoader
    read = loader.get_code

    def get_code(self: Any, fullname: str) -> CodeType | None:
        path = os.path.abspath(self.get_filename(fullname))
        if path not in texts:
            found: CodeType | None = read(self, fullname)
            return found
        code: CodeType = compile(texts[path], self.get_filename(fullname), "exec", dont_inherit=True)
        return code

    read_source = loader.get_source

    def get_source(self: Any, fullname: str) -> str | None:
        path = os.path.abspath(self.get_filename(fullname))
        return texts[path] if path in texts else read_source(self, fullname)

    loader.get_code = get_code
    loader.get_source = get_source
    for path, text in texts.items():
        # no modification time: linecache then never looks at the file
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
