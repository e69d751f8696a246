"""Runs a script under watch and hands what was seen to a renderer: what the commands have in common."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from gradtrace.errors import ExitCode, GradtraceError, UsageError, no_such
from gradtrace.host import heap, script, streams
from gradtrace.host.shadowed_modules import ShadowedModules
from gradtrace.model.finding import Ended
from gradtrace.renderers.output import Out
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

    def load(self) -> script.Program:
        if self.module is not None:
            return script.load(self.module, self.words, module=True)
        if not self.words:
            raise UsageError("which script? name one, as in `gradtrace check train.py`, or use -m package.module")
        return script.load(self.words[0], self.words[1:])


def reported(
    program: script.Program,
    watching: AbstractContextManager[object],
    finish: Callable[[Ended], int],
    on_error: Callable[[BaseException], None] = lambda error: None,
) -> int:
    """Runs the script and has `finish` report it, from where the command began; returns the exit code."""
    begun = os.getcwd()
    shadowed = ShadowedModules(program.path_entry)

    def report(ended: Ended) -> int:
        with shadowed.away(), relative_to(begun), heap.uncollected():
            return finish(ended)

    def report_by_itself(ended: Ended) -> int:
        """After `os._exit`: nobody above sees an error then."""
        try:
            return report(ended)
        except GradtraceError as error:
            streams.tell(str(error))
            return ExitCode.ERROR

    return report(program.run(watching, report_by_itself, on_error))


def rules(name: str | None, kind: str, color: bool | None) -> int:
    """Tells about all rules, or prints the manual of one; returns the exit code."""
    from gradtrace.renderers.findings import rules
    from gradtrace.rules import manuals

    if kind not in ("text", "json"):
        raise no_such("format of rules", kind, ("text", "json"))
    found = [manual for manual in manuals() if name in (None, manual.rule)]
    if not found:
        raise no_such("rule", str(name), (manual.rule for manual in manuals()))
    out = Out(None, color)
    if kind == "json":
        out.write(rules.document(found))
    elif name is None:
        out.write(out.paper.printed(lambda console: rules.listing(found, console)))
    else:
        out.write(out.paper.printed(lambda console: rules.manual(found[0], console)))
    return ExitCode.OK


def by_ending(path: Path | None, command: str, default: str, known: Sequence[str]) -> str:
    """The format that the ending of a file asks for; `default` where it asks for none.

    Raises `UsageError` for the endings of formats that the command does not write: nobody wants a tree in a .svg.
    """
    ending = path.suffix.lstrip(".").lower() if path else ""
    if ending in known or not ending or (default == "text" and ending not in _ENDINGS):
        return ending if ending in known else default
    *first, last = [word if word == "text" else f".{word}" for word in known]
    raise UsageError(f"-o {path}: {command} writes {', '.join(first)} or {last}")
