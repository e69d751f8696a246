"""check: runs the script under watch, judges what was seen, and reports it in every form that was asked for."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gradtrace import config, rules, silence, streams
from gradtrace.baseline import Baseline
from gradtrace.config import Settings
from gradtrace.errors import ExitCode, UsageError, no_such
from gradtrace.model.events import Event
from gradtrace.model.finding import Ended, Finding, Level, Report, Silenced
from gradtrace.output import Out, must_be_writable
from gradtrace.progress import Progress
from gradtrace.renderers.paper import Paper
from gradtrace.rules import Judge
from gradtrace.run import Options, by_itself

if TYPE_CHECKING:
    from gradtrace.watch import Watch

#: what there is, and the ending of a file that asks for it
FORMATS = {"text": ".txt", "json": ".json", "sarif": ".sarif", "junit": ".xml", "github": ""}
#: those that a script must not print into
_DOCUMENTS = {"json", "sarif", "junit"}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line of check says beyond `Options`."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    fail_on: str | None = None
    levels: Sequence[str] = ()
    baseline: Path | None = None
    write_baseline: bool = False
    format: str | None = None
    outputs: Sequence[Path] = ()
    #: how much to tell people: less (-1), more (1)
    detail: int = 0

    def settings(self, known: frozenset[str]) -> Settings:
        return Settings(
            config.rules(self.select, known) if self.select else None,
            config.rules(self.ignore, known) if self.ignore else None,
            config.level(self.fail_on) if self.fail_on else None,
            config.levels(self.levels, known),
            self.baseline,
        )


def check(options: Options, wishes: Wishes) -> int:
    """Runs the script and reports its faults; returns the exit code."""
    forms = [_Form(kind, path) for kind, path in _wanted(wishes)]
    known = frozenset(rule.id for rule in rules.all_rules())
    program = options.load()
    settings = wishes.settings(known).over(config.near(options.place, known))
    verdict = _Verdict(settings, wishes.write_baseline, known)
    for form in forms:
        form.open(options.color, wishes.detail)

    # all of it now: later the script's directory comes first on the path
    from gradtrace.watch import TORCH_VERSION, Watch

    judge = Judge([rule() for rule in rules.all_rules() if settings.wants(rule.id)], settings.levels)

    def see(event: Event) -> None:
        judge.see(event)
        progress.tick()

    watch = Watch(see, user_roots=program.roots, stop_after=options.steps, debug=options.debug)
    progress = Progress(
        lambda: (watch.optimizer_steps, watch.backward_calls, len(judge.findings)), 2, wanted=wishes.detail >= 0
    )

    def finish(ended: Ended) -> int:
        progress.close()
        report = verdict.report(program.name, judge, watch, ended, TORCH_VERSION)
        for form in forms:
            form.write(report)
        return report.exit_code

    return finish(program.run(watch, by_itself(finish)))


class _Verdict:
    """What becomes of the findings: some are silenced, the rest decide about the exit code."""

    def __init__(self, settings: Settings, write: bool, known: frozenset[str]) -> None:
        self._known = known
        # now: the script may change the directory
        self._root = _root()
        self._manuals = rules.manuals()
        self._fail_on = settings.fail_on or Level.WARNING
        self._source = settings.source
        self._path = settings.baseline
        self._write = write
        if self._path is None:
            if write:
                raise UsageError("--write-baseline: where to? name a file with --baseline")
            return
        if write:
            must_be_writable(self._path.absolute())
        self._baseline = Baseline(self._path) if write else Baseline.read(self._path)

    def report(self, name: str, judge: Judge, watch: Watch, ended: Ended, torch: str) -> Report:
        findings, silenced = self._judged(judge, watch.user_files(), ended)
        calls, steps = watch.backward_calls, watch.optimizer_steps
        return Report(
            name,
            tuple(findings),
            ended,
            torch,
            calls,
            steps,
            _exit_code(judge, findings, ended, calls, self._fail_on),
            watch.remarks,
            tuple(silenced),
            judge.unjudged,
            tuple(manual for manual in self._manuals if manual.rule in judge.judged),
            self._fail_on,
            self._root,
            str(self._source) if self._source else None,
        )

    def _judged(self, judge: Judge, files: Sequence[str], ended: Ended) -> tuple[list[Finding], list[Silenced]]:
        judged = judge.judged if ended.how in ("finished", "exit") and not ended.status else frozenset[str]()
        findings, silenced, told = silence.apply(judge.findings, files, judged, self._known)
        findings += told if silence.UNUSED in judge.judged else []
        if self._path is None:
            return findings, silenced
        if self._write:
            streams.put_file(self._path.absolute(), self._baseline.document(findings).encode())
            self._baseline = Baseline.read(self._path)
        new, known = self._baseline.apply(findings)
        return new, silenced + known


def _root() -> str:
    """What paths are told relative to: the checkout in a job of GitHub's, where we are in it; else where we are."""
    here, checkout = os.getcwd(), os.environ.get("GITHUB_WORKSPACE", "")
    return checkout if checkout and Path(here).is_relative_to(checkout) else here


def _exit_code(judge: Judge, findings: Sequence[Finding], ended: Ended, calls: int, fail_on: Level) -> ExitCode:
    loud = [finding for finding in findings if finding.level >= fail_on]
    failed = ended.how not in ("finished", "stopped") and ended.status != 0
    if failed and not judge.explains(ended.exception, loud):
        return ExitCode.SCRIPT_FAILED
    if loud:
        return ExitCode.FINDINGS
    return ExitCode.OK if calls else ExitCode.NOTHING_TO_CHECK


def _wanted(wishes: Wishes) -> list[tuple[str, Path | None]]:
    """What goes where. A file's ending says what it gets; `--format` is for stdout, and for files that do not say."""
    if wishes.format not in (None, *FORMATS):
        raise no_such("format", str(wishes.format), FORMATS)
    endings = {ending: kind for kind, ending in FORMATS.items() if ending}
    said = [(endings.get(path.suffix.lower()), path) for path in wishes.outputs]
    files = [(kind or wishes.format or "text", path) for kind, path in said]
    to_stdout = not files or (wishes.format is not None and all(kind for kind, _ in said))
    return [*files, (wishes.format or "text", None)] if to_stdout else list(files)


class _Form:
    """One format at one place."""

    def __init__(self, kind: str, path: Path | None) -> None:
        self._kind, self._path = kind, path
        # now: later the script's directory comes first on the path
        self._render: Callable[[Report, Paper], str] = importlib.import_module(f"gradtrace.renderers.{kind}").render

    def open(self, color: bool | None, detail: int) -> None:
        self._out = Out(self._path, color, detail, claim=self._kind in _DOCUMENTS)

    def write(self, report: Report) -> None:
        self._out.write(self._render(report, self._out.paper))
