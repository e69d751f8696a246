"""Runs a script under watch and hands what was seen to a renderer: what the commands have in common."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

from gradtrace import script, streams
from gradtrace.errors import ExitCode, GradtraceError, OutputError, UsageError, no_such
from gradtrace.model.finding import Ended, Level, Report

CHECK_FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class Options:
    """What the commands have in common. `words` are the script and its arguments, or the arguments alone after -m."""

    words: Sequence[str]
    module: str | None
    steps: int | None = None
    output: Path | None = None
    format: str | None = None
    color: bool | None = None
    debug: bool = False

    @property
    def named(self) -> str:
        """What runs, as the user named it."""
        return self.words[0] if self.module is None and self.words else f"-m {self.module}"

    def load(self) -> script.Program:
        if self.module is not None:
            return script.load(self.module, self.words, module=True)
        if not self.words:
            raise UsageError("which script? name one, as in `gradtrace check train.py`, or use -m package.module")
        return script.load(self.words[0], self.words[1:])


def check(options: Options, fail_on: Level) -> int:
    """Runs the script and reports its faults; returns the exit code."""
    kind = options.format or by_ending(options.output, "text", CHECK_FORMATS)
    if kind not in CHECK_FORMATS:
        raise UsageError(f"--format {kind}: check writes {' or '.join(CHECK_FORMATS)}")
    program = options.load()
    out = Out(options, claim=kind == "json")

    # all of it now: later the script's directory comes first on the path
    from gradtrace.renderers import json, text
    from gradtrace.rules import Judge
    from gradtrace.watch import TORCH_VERSION, Watch

    judge = Judge()
    watch = Watch(judge.see, user_roots=program.roots, stop_after=options.steps, debug=options.debug)

    def finish(ended: Ended) -> int:
        code = exit_code(judge, ended, watch.backward_calls, fail_on)
        report = Report(
            program.name,
            judge.findings,
            ended,
            TORCH_VERSION,
            watch.backward_calls,
            watch.optimizer_steps,
            code,
            watch.remarks,
        )
        out.write(json.render(report) if kind == "json" else out.captured(lambda console: text.render(report, console)))
        return code

    return finish(program.run(watch, by_itself(finish)))


def exit_code(judge: Any, ended: Ended, backward_calls: int, fail_on: Level) -> int:
    failed = ended.how not in ("finished", "stopped") and ended.status != 0
    if failed and not judge.explains(ended.exception):
        return ExitCode.SCRIPT_FAILED
    if any(finding.level >= fail_on for finding in judge.findings):
        return ExitCode.FINDINGS
    return ExitCode.OK if backward_calls else ExitCode.NOTHING_TO_CHECK


def by_itself(finish: Callable[[Ended], int]) -> Callable[[Ended], int]:
    """For a script that leaves by `os._exit`: nobody above sees an error then."""

    def finishby_itself(ended: Ended) -> int:
        try:
            return finish(ended)
        except GradtraceError as error:
            streams.tell(str(error))
            return ExitCode.ERROR

    return finishby_itself


def rules(name: str | None, kind: str, color: bool | None) -> int:
    """Tells about all rules, or prints the manual of one; returns the exit code."""
    from gradtrace.renderers import rules
    from gradtrace.rules import manuals

    if kind not in ("text", "json"):
        raise no_such("format of rules", kind, ("text", "json"))
    found = [manual for manual in manuals() if name in (None, manual.rule)]
    if not found:
        raise no_such("rule", str(name), (manual.rule for manual in manuals()))
    out = Out(Options((), None, color=color))
    if kind == "json":
        out.write(rules.document(found))
    elif name is None:
        out.write(out.captured(lambda console: rules.listing(found, console)))
    else:
        out.write(out.captured(lambda console: rules.manual(found[0], console)))
    return ExitCode.OK


def by_ending(path: Path | None, default: str, known: Sequence[str]) -> str:
    ending = path.suffix.lstrip(".").lower() if path else ""
    return ending if ending in known or (path and default == "dot") else default


class Out:
    """Where the result goes: a file, stdout, or a stdout that the script cannot reach."""

    def __init__(self, options: Options, claim: bool = False) -> None:
        self._color = options.color
        self._path = options.output.absolute() if options.output else None
        if self._path is not None:
            _must_be_writable(self._path)
        self._stream: TextIO | None = None
        if self._path is None:
            self._stream = streams.claim_stdout() if claim else streams.keep_stdout()

    def captured(self, draw: Callable[[Any], None]) -> str:
        """What `draw` prints on a console made for this place."""
        terminal = self._stream is not None and self._stream.isatty()
        color = terminal and not os.environ.get("NO_COLOR") if self._color is None else self._color
        columns = os.environ.get("COLUMNS", "")
        console = Console(
            file=_Encoded(self._stream.encoding if self._stream else "utf-8"),
            force_terminal=color,
            no_color=not color,
            width=None if terminal else int(columns) if columns.isdecimal() and int(columns) else 100,
            highlight=False,
            soft_wrap=False,
            legacy_windows=False,
        )
        draw(console)
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text

    def write(self, text: str | None) -> None:
        if text is None:
            return
        if self._path is not None:
            streams.put_file(self._path, text.encode(errors="backslashreplace"))
        elif self._stream is not None:
            streams.flush(sys.stdout, sys.__stdout__)
            streams.deliver(text, self._stream)


def _must_be_writable(path: Path) -> None:
    """Said before the run, not after an hour."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputError(f"cannot write {path}: name a file in a directory that exists and is writable")


class _Encoded(io.StringIO):
    """Text in memory that says which encoding it will be written in, so that a renderer knows what it can draw."""

    def __init__(self, encoding: str | None) -> None:
        super().__init__()
        self._encoding = encoding or "utf-8"

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding
