"""Runs a script under watch and hands what was seen to a renderer: what the commands have in common."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gradtrace.errors import ExitCode, GradtraceError, OutputError, UsageError
from gradtrace.host import heap, script, streams
from gradtrace.host.limits import Limits
from gradtrace.host.shadowed_modules import ShadowedModules
from gradtrace.model.finding import Ended
from gradtrace.report.recording import Recording
from gradtrace.source.base_directory import relative_to

#: of all that gradtrace writes, beside text
_ENDINGS = frozenset({"dot", "gv", "svg", "png", "pdf", "html", "json", "jsonl", "sarif", "xml"})


@dataclass(frozen=True, slots=True)
class Options:
    """What the commands have in common. `words` are the script and its arguments, or the arguments alone after -m."""

    words: Sequence[str]
    module: str | None
    steps: int | None = None
    #: seconds
    timeout: float | None = None
    output: Path | None = None
    format: str | None = None
    color: bool | None = None
    debug: bool = False

    def __post_init__(self) -> None:
        if self.timeout is not None and not 0 < self.timeout <= threading.TIMEOUT_MAX:
            raise UsageError(f"--timeout {self.timeout:g}: give a number of seconds above 0")

    @property
    def named(self) -> str:
        """What runs, as the user named it."""
        return self.words[0] if self.module is None and self.words else f"-m {self.module}"

    @property
    def place(self) -> Path:
        """Where the project's settings are looked for, and above it."""
        return Path.cwd() if self.module is not None or not self.words else Path(self.words[0]).absolute()

    def check_places(self, *paths: Path | None) -> None:
        """Raises `OutputError` where writing to one of these would overwrite the script or document that is named."""
        if self.module is not None or not self.words:
            return
        for path in paths:
            with suppress(OSError):  # what is not there is not overwritten
                if path is not None and os.path.samefile(path, self.words[0]):
                    raise OutputError(f"{path} is what is to be read, and would be overwritten; name another file")

    def load(self) -> script.Program:
        if self.module is not None:
            return script.load(self.module, self.words, module=True)
        if not self.words:
            raise UsageError("which script? name one, as in `gradtrace check train.py`, or use -m package.module")
        return script.load(self.words[0], self.words[1:])


def named_recording(options: Options, others: Mapping[str, object]) -> Recording | None:
    """The recording that was named instead of a script. Raises `UsageError` for options, `others` among them, that only a
    run can take."""
    if options.module is not None or not options.words or not options.words[0].endswith(".jsonl"):
        return None
    name = options.words[0]
    given = {"--steps": options.steps, **others, "arguments": options.words[1:]}
    for option, value in given.items():
        if value:
            raise UsageError(f"{name} is a recording, which does not run: it takes no {option}")
    return Recording(Path(name))


class Watching(AbstractContextManager[object], Protocol):
    """What watches the script: entered just around its code."""

    @property
    def backward_calls(self) -> int: ...

    def crashed(self, error: BaseException) -> None: ...


class WatchedRun:
    """One run of a script, from its start to its report; `finish` makes the report and returns the exit code."""

    def __init__(self, program: script.Program, watch: Watching, finish: Callable[[Ended], int]) -> None:
        self._program = program
        self._watch = watch
        self._finish = finish
        self._began_in = os.getcwd()
        self._shadowed = ShadowedModules(program.path_entry)

    def run(self, seconds: float | None = None) -> int:
        """Runs the script, for so many seconds at most, and reports it; returns the exit code."""
        _warn_of_own_name(self._program.path_entry)
        with Limits(seconds) as self._limits:
            ended = self._program.run(self._watching(), self._report_before_leaving, self._script_failed, self._used)
            return self._report(ended)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        with self._watch, self._limits.script_runs():
            yield

    def _script_failed(self, error: BaseException) -> None:
        self._watch.crashed(error)
        self._limits.script_ended()

    def _used(self) -> bool:
        return self._watch.backward_calls > 0

    def _report(self, ended: Ended) -> int:
        with self._shadowed.away(), relative_to(self._began_in), heap.uncollected():
            return self._finish(ended)

    def _report_before_leaving(self, ended: Ended) -> int:
        """After `os._exit` and its like: no caller sees an error then."""
        self._limits.script_ended()
        try:
            return self._report(ended)
        except GradtraceError as error:
            streams.announce(str(error))
            return ExitCode.ERROR


def _warn_of_own_name(directory: str | None) -> None:
    if directory is not None and os.path.isfile(os.path.join(directory, "gradtrace.py")):
        streams.announce("the script's own gradtrace.py cannot be imported under gradtrace; rename it")


def by_ending(path: Path | None, command: str, default: str, known: Sequence[str]) -> str:
    """The format that the ending of a file selects; `default` where it selects none.

    Raises `UsageError` for the endings of formats that the command does not write, such as a tree in a .svg.
    """
    ending = path.suffix.lstrip(".").lower() if path else ""
    if ending in known or not ending or (default == "text" and ending not in _ENDINGS):
        return ending if ending in known else default
    *first, last = [word if word == "text" else f".{word}" for word in known]
    raise UsageError(f"-o {path}: {command} writes {', '.join(first)} or {last}")
