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
from dataclasses import dataclass, field
from importlib.util import decode_source
from multiprocessing.connection import Connection, wait
from time import monotonic
from types import CodeType
from typing import Any

from gradtrace.host import script
from gradtrace.model.finding import Ended, Finding
from gradtrace.model.lives import Life, State


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
    #: seconds
    took: float = 0.0

    @property
    def failed(self) -> bool:
        return self.ended.status != 0

    @property
    def moving(self) -> frozenset[str]:
        """The parameters that a step, or the script itself, has changed."""
        moved = (State.TRAINS, State.BY_HAND)
        return frozenset(name for name, life in self.lives.items() if life.state in moved)


@dataclass(frozen=True, slots=True)
class Job:
    """Which script, how long, and with which texts in place of the files'."""

    words: Sequence[str]
    module: str | None
    steps: int | None
    texts: Mapping[str, str]


def run_all(jobs: Sequence[Job], at_once: int, seconds: float | None) -> list[Outcome | None]:
    """The outcome of each job; None where it took longer than so many seconds, or died without one."""
    context = multiprocessing.get_context("fork")
    found: list[Outcome | None] = [None] * len(jobs)
    waiting = list(enumerate(jobs))
    running: dict[Connection, tuple[int, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            number, job = waiting.pop(0)
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_child, args=(theirs, job))
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
                _end(process)
    return found


def _end(process: Any) -> None:
    """Waits for the run to leave, and kills it and its children where it does not."""
    process.join(1)
    if process.is_alive():
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    process.join()


def _child(pipe: Connection, job: Job) -> None:
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    pipe.send(_outcome(pipe, job))
    os._exit(0)


def _outcome(pipe: Connection, job: Job) -> Outcome:
    # torch: the command has loaded it before it forks
    from gradtrace.rules import Judge
    from gradtrace.watcher.watch import Watch

    _replace_sources(job.texts)
    if job.module is not None:
        program = script.load(job.module, job.words, module=True)
    else:
        program = script.load(job.words[0], job.words[1:], text=job.texts.get(os.path.abspath(job.words[0])))
    judge = Judge()
    watch = Watch(judge.see, user_roots=program.roots, stop_after=job.steps, rules=True, lives=True)
    began = monotonic()

    def seen(ended: Ended) -> Outcome:
        return Outcome(
            judge.findings,
            ended,
            judge.explains(ended.exception),
            watch.backward_calls,
            watch.optimizer_steps,
            {life.name: life for life in watch.lives},
            watch.user_files(),
            monotonic() - began,
        )

    def leave(ended: Ended) -> int:
        """The script calls `os._exit`."""
        pipe.send(seen(ended))
        return 0

    return seen(program.run(watch, leave, watch.crashed))


def _replace_sources(texts: Mapping[str, str]) -> None:
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

    loader.get_code = get_code
    for path, text in texts.items():
        # no modification time: linecache then never looks at the file
        linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path


def read_text(path: str) -> str:
    """The text of a source file, decoded as Python decodes it, with its own line ends. Raises `OSError`."""
    with open(path, "rb") as file:
        raw = file.read()
    text = decode_source(raw)
    return text.replace("\n", "\r\n") if b"\r\n" in raw else text
