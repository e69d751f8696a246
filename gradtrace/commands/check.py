"""check: runs the script under watch, judges what was seen, and reports it in every requested form."""

from __future__ import annotations

import importlib
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gradtrace import rules
from gradtrace.commands.run import Options, WatchedRun, Watching, named_recording
from gradtrace.commands.spawned import SpawnedRank, account
from gradtrace.debugger import terminal, wishes
from gradtrace.debugger.wishes import Wish
from gradtrace.errors import ExitCode, OutputError, no_such
from gradtrace.fixes.candidates import has_candidates
from gradtrace.host import heap, ranks, streams
from gradtrace.host.progress import Progress
from gradtrace.host.script import Program
from gradtrace.model.events import Backward, Event, Step
from gradtrace.model.finding import Ended, Report
from gradtrace.model.fix import FixReport
from gradtrace.model.ranks import RankFact, is_rank_fact
from gradtrace.renderers.output import Out, must_be_writable
from gradtrace.renderers.paper import Paper
from gradtrace.report import accounts, config
from gradtrace.report.accounts import judged_together, packed, unpacked
from gradtrace.report.config import Settings
from gradtrace.report.recording import RecordedRun, Recorder, Recording
from gradtrace.report.verdict import Verdict
from gradtrace.rules import Judge
from gradtrace.source import texts
from gradtrace.source.base_directory import relative_to

if TYPE_CHECKING:
    from gradtrace.debugger.debugger import Debugger
    from gradtrace.watcher.watch import Watch

#: what there is, and the file ending that selects it
FORMATS = {"text": ".txt", "json": ".json", "sarif": ".sarif", "junit": ".xml", "github": "", "html": ".html"}
#: those that a script must not print into
_DOCUMENTS = {"json", "sarif", "junit", "html"}
_NEVER_STOPPED = "nothing was a reason to stop: what follows is no error, or nothing that --at asks for (--at finding stops there too)"
#: changed files that a remark names
_NAMED = 3


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What the command line of check says beyond `Options`."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    fail_on: str | None = None
    levels: Sequence[str] = ()
    baseline: Path | None = None
    write_baseline: bool = False
    format: str | None = None
    outputs: Sequence[Path] = ()
    #: how much people want to read: less (-1), more (1)
    detail: int = 0
    #: where to write the events to
    record: Path | None = None
    #: try the backward of custom Functions
    gradcheck: bool = False
    #: try edits before the check, and report those that hold
    fix: bool = False
    #: where a debugger stops the run; None without one
    stop_at: Sequence[str] | None = None
    #: the rank that it stops, among those of torchrun
    stop_rank: int = 0

    def settings(self, known: frozenset[str]) -> Settings:
        """Raises `UsageError` for rules and levels that there are not."""
        return Settings(
            config.rules(self.select, known) if self.select else None,
            config.rules(self.ignore, known) if self.ignore else None,
            config.level(self.fail_on) if self.fail_on else None,
            config.levels(self.levels, known),
            self.baseline,
        )


def check(options: Options, wanted: CheckOptions) -> int:
    """Runs the script, or reads a recording of its run, and reports its faults; returns the exit code."""
    options.check_places(*wanted.outputs, wanted.record, wanted.baseline)
    if wanted.record is not None:
        must_be_writable(wanted.record)
    outputs = Outputs(wanted)
    known = frozenset(rule.id for rule in rules.all_rules())
    settings = wanted.settings(known)
    recording = _recording(options, wanted)
    if recording is not None:
        place = Path(recording.run.directory, recording.run.script)
        verdict = Verdict(settings.over(config.near(place, known)), wanted.write_baseline, recording.run.directory)
        outputs.open(options.color, wanted.detail)
        return _judge_again(recording, verdict, outputs)
    wish = _wish(wanted, known)
    program = options.load()
    settings = settings.over(config.near(options.place, known))
    verdict = Verdict(settings, wanted.write_baseline)
    outputs.open(options.color, wanted.detail)
    # before this process computes anything: a fork of one that has may hang
    fixes = _fixes(options, Verdict(settings)) if wanted.fix else None
    return _CheckedRun(program, options, wanted, verdict, outputs, wish, fixes).run()


def _wish(wanted: CheckOptions, known: frozenset[str]) -> Wish | None:
    """Where a debugger is to stop; None where there is none, or no terminal to type at."""
    if wanted.stop_at is None:
        return None
    wish = wishes.read(wanted.stop_at, known)
    rank = ranks.environment()
    if rank is not None and rank.rank != wanted.stop_rank:
        return None
    why = terminal.missing()
    if why:
        streams.announce(f"{why}: the run is checked without stopping")
    return None if why else wish


def _fixes(options: Options, verdict: Verdict) -> FixReport:
    """The edits that hold, from runs of their own."""
    from gradtrace.commands.fix import begin
    from gradtrace.fixes.search import Effort

    search = begin(replace(options, timeout=None), Effort(seconds=options.timeout), verdict)
    search.run()
    return search.report()


def _fix_command(options: Options) -> str:
    """What tries edits for this script; empty for one that came by stdin."""
    if options.words[:1] == ["-"] and options.module is None:
        return ""
    steps = ["--steps", str(options.steps)] if options.steps is not None else []
    module = ["-m", options.module] if options.module is not None else []
    return shlex.join(["gradtrace", "fix", *steps, *module, *options.words])


# --- a recording -----------------------------------------------------------------------------------------------------


def _recording(options: Options, wanted: CheckOptions) -> Recording | None:
    """The recording that was named instead of a script."""
    others = {
        "--record": wanted.record,
        "--gradcheck": wanted.gradcheck,
        "--fix": wanted.fix,
        "--pdb": wanted.stop_at is not None,
    }
    return named_recording(options, others)


def _judge_again(recording: Recording, verdict: Verdict, outputs: Outputs) -> int:
    """Judges a recording by the text that it carries, as if it were run where it was recorded."""
    judge = verdict.judge()
    calls = steps = 0
    with texts.replayed(recording.files), relative_to(recording.run.directory):
        for event in recording.events():
            judge.see(event)
            if isinstance(event, Backward):
                calls = event.number
            elif isinstance(event, Step):
                steps = event.number
        run = recording.run
        changed = changed_files(
            recording.files, run.directory, "since the recording; the report shows the recorded text"
        )
        run = replace(run, remarks=run.remarks + changed)
        return outputs.write(verdict.report(judge, run, calls, steps))


def changed_files(files: Iterable[str], directory: str, since: str) -> tuple[str, ...]:
    """Says which files are no longer what they were."""
    found = texts.changed(files)
    if not found:
        return ()
    names = [os.path.relpath(path, directory) for path in found[:_NAMED]]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    verb = "has" if len(found) == 1 else "have"
    return (f"{', '.join(names)}{more} {verb} changed {since}",)


# --- a script --------------------------------------------------------------------------------------------------------


class _CheckedRun:
    """One run of a script under watch, from its start to its report."""

    def __init__(
        self,
        program: Program,
        options: Options,
        wanted: CheckOptions,
        verdict: Verdict,
        outputs: Outputs,
        wish: Wish | None,
        fixes: FixReport | None,
    ) -> None:
        # all of it now: later the script's directory comes first on the path
        with heap.filled():
            from gradtrace.watcher.pictures.snapshot import Snapshots
            from gradtrace.watcher.watch import TORCH_VERSION, Watch

        self._program = program
        self._fixes = fixes
        self._command = _fix_command(options)
        self._timeout = options.timeout
        self._verdict = verdict
        self._outputs = outputs
        self._judge = verdict.judge()
        colleagues = ranks.Colleagues.here()
        self._start = RecordedRun(program.name, TORCH_VERSION, os.getcwd())
        if colleagues is not None:
            self._start = replace(self._start, rank=colleagues.rank, ranks=colleagues.size)
        self._facts: list[RankFact] = []
        #: how many findings the other ranks could know of
        self._drafted = 0
        self._recorder: Recorder | None = None
        if wanted.record is not None:
            place = _of_rank(wanted.record, colleagues.rank if colleagues is not None else 0)
            self._recorder = Recorder(place, program.name, TORCH_VERSION, self._start.rank, self._start.ranks)
        self._snapshots: Snapshots | None = None
        if outputs.show_graphs:
            self._snapshots = Snapshots(stop_when_repeated=False, remaining=False)
        self._debugger: Debugger | None = None
        if wish is not None:
            self._debugger = _debugger(wish, self._judge, self._hear, verdict, options.color)
        debugger = self._debugger
        self._watch = Watch(
            self._hear if debugger is None else debugger.see,
            user_roots=program.roots,
            stop_after=options.steps,
            snapshots=self._snapshots if debugger is None else debugger.pictures,
            rules=True,
            lives=debugger is not None or self._recorder is not None,
            stops=debugger.stops if debugger is not None else None,
            pause=debugger.pause if debugger is not None else None,
            gradcheck=wanted.gradcheck,
            debug=options.debug,
            colleagues=colleagues,
            in_child=partial(SpawnedRank, program.roots, options.steps, wanted.gradcheck),
        )
        reports = colleagues is None or colleagues.rank == colleagues.leader
        self._progress = Progress(self._so_far, 2, wanted=reports and wanted.detail >= 0 and debugger is None)

    def run(self) -> int:
        """Returns the exit code."""
        watch: Watching = self._watch
        if self._debugger is not None:
            watch = _debugged(self._watch, self._debugger)
        return WatchedRun(self._program, watch, self._finish).run(self._timeout)

    def _hear(self, event: Event) -> None:
        self._judge.see(event)
        if self._recorder is not None:
            self._recorder.see(event)
        if is_rank_fact(event):
            self._facts.append(event)
        if self._judge.found != self._drafted:
            self._draft()
        self._progress.tick()

    def _draft(self) -> None:
        """A rank that finds something says so at once: it may be killed before its end."""
        self._drafted = self._judge.found
        colleagues = self._watch.colleagues
        if colleagues is not None and not colleagues.collects:
            ended = Ended("killed", 137)
            colleagues.draft(packed(account(colleagues.rank, self._watch, self._judge, (), ended)))

    def _so_far(self) -> tuple[int, int, int]:
        return self._watch.optimizer_steps, self._watch.backward_calls, len(self._judge.findings)

    def _finish(self, ended: Ended) -> int:
        self._progress.close()
        if self._debugger is not None and self._judge.findings and not self._debugger.has_stopped:
            streams.announce(_NEVER_STOPPED)
        watch = self._watch
        run = replace(
            self._start, ended=ended, remarks=watch.remarks + watch.unseen, files=watch.user_files(), lives=watch.lives
        )
        with ExitStack() as closing:
            if self._recorder is not None:
                closing.callback(self._recorder.close, run)
            if watch.colleagues is None:
                return self._report(run, watch.backward_calls, watch.optimizer_steps)
            return self._report_for_all(run, watch.colleagues)

    def _report_for_all(self, run: RecordedRun, colleagues: ranks.Colleagues) -> int:
        """One rank reports for all; the others hand over what they found."""
        own = account(colleagues.rank, self._watch, self._judge, self._facts, run.ended)
        orderly = run.ended.how in ("finished", "exit", "stopped")
        gathered = colleagues.settle(packed(own), orderly, run.ended.how == "killed")
        if gathered is None:
            return ExitCode.SCRIPT_FAILED if run.ended.status else ExitCode.OK
        try:
            others = [unpacked(message) for message in gathered.accounts.values()]
            drafts = [unpacked(message) for message in gathered.drafts.values()]
            known = None if colleagues.collects else own
            ended = judged_together(self._judge, colleagues.size, known, others, gathered.missing, drafts)
            run = replace(
                run,
                ended=ended or run.ended,
                remarks=run.remarks + accounts.remarks(colleagues.size, colleagues.rank, others, gathered.missing),
            )
            if not colleagues.connected:
                self._outputs.number(colleagues.rank)
            calls, steps = max(one.calls for one in (own, *others)), max(one.steps for one in (own, *others))
            return self._report(run, calls, steps)
        finally:
            colleagues.reported(gathered.accounts)

    def _report(self, run: RecordedRun, calls: int, steps: int) -> int:
        report = self._verdict.report(self._judge, run, calls, steps)
        files = dict.fromkeys(finding.site.path for finding in report.findings)
        changed = changed_files(files, run.directory, "while the script ran; the report shows the text from before")
        report = replace(report, remarks=report.remarks + changed)
        if self._snapshots is not None:
            report = replace(report, graphs=tuple(self._snapshots.graphs))
        if self._fixes is not None:
            report = replace(report, fixes=self._fixes.fixes, patch=self._fixes.patch)
        elif any(map(has_candidates, report.findings)):
            report = replace(report, fix_command=self._command)
        return self._outputs.write(report)


def _of_rank(path: Path, rank: int) -> Path:
    """The file of one rank: `run.rank1.jsonl`; rank 0 has the name that was given."""
    return path if rank <= 0 else path.with_suffix(f".rank{rank}{path.suffix}")


def _debugger(
    wish: Wish, judge: Judge, listener: Callable[[Event], None], verdict: Verdict, color: bool | None
) -> Debugger:
    """Imported now: it loads torch, and later the script's directory comes first on the path."""
    with heap.filled():
        from gradtrace.debugger.debugger import Debugger

    colored = not os.environ.get("NO_COLOR") if color is None else color
    return Debugger(wish, judge, listener, verdict.is_silenced, colored)


def _debugged(watch: Watch, debugger: Debugger) -> Watching:
    from gradtrace.debugger.watching import DebuggedWatch

    debugger.attach(watch)
    return DebuggedWatch(watch, debugger)


# --- where the report goes -------------------------------------------------------------------------------------------


class Outputs:
    """The forms of the report and their places. A file's ending says what it gets; `--format` is for stdout, and for
    files that do not say."""

    def __init__(self, wanted: CheckOptions) -> None:
        if wanted.format not in (None, *FORMATS):
            raise no_such("format", str(wanted.format), FORMATS)
        endings = {ending: kind for kind, ending in FORMATS.items() if ending}
        otherwise = wanted.format or "text"
        chosen = [endings.get(path.suffix.lower()) for path in wanted.outputs]
        self._forms = [_Form(kind or otherwise, path) for kind, path in zip(chosen, wanted.outputs, strict=True)]
        if not wanted.outputs or (wanted.format is not None and all(chosen)):
            self._forms.append(_Form(otherwise, None))
        #: what stdout gets where a file cannot be written
        self._otherwise: _Form | None = None

    @property
    def show_graphs(self) -> bool:
        """Whether a form draws the graphs."""
        return any(form.shows_graphs for form in self._forms)

    def open(self, color: bool | None, detail: int) -> None:
        """Raises `OutputError` where a place could not be written to."""
        for form in self._forms:
            form.open(color, detail)
        if not any(form.on_stdout for form in self._forms):
            self._otherwise = _Form("text", None)
            self._otherwise.open(color, detail)

    def number(self, rank: int) -> None:
        """The files are those of one rank, beside those of the others."""
        for form in self._forms:
            form.number(rank)

    def write(self, report: Report) -> int:
        """Writes the report everywhere, also where one place fails; returns the exit code.

        Raises `OutputError` in the end where one failed; the text is then on stdout, if nothing else is.
        """
        failures: list[OutputError] = []
        for form in self._forms:
            form.try_to_write(report, failures)
        if not failures:
            return report.exit_code
        if self._otherwise is not None:
            self._otherwise.try_to_write(report, failures)
        for failure in failures[1:]:
            streams.announce(str(failure))
        raise failures[0]


class _Form:
    """One format at one place."""

    def __init__(self, kind: str, path: Path | None) -> None:
        self._kind, self._path = kind, path
        # now: later the script's directory comes first on the path
        self._render: Callable[[Report, Paper], str] = importlib.import_module(_renderer(kind)).render

    @property
    def shows_graphs(self) -> bool:
        return self._kind == "html"

    @property
    def on_stdout(self) -> bool:
        return self._path is None

    def open(self, color: bool | None, detail: int) -> None:
        self._out = Out(self._path, color, detail, claim=self._kind in _DOCUMENTS)

    def number(self, rank: int) -> None:
        """The file is that of one rank."""
        if self._path is not None:
            self._out.move(_of_rank(self._path.absolute(), rank))

    def try_to_write(self, report: Report, failures: list[OutputError]) -> None:
        """Adds to `failures` where it cannot be written."""
        try:
            self._out.write(self._render(report, self._out.paper))
        except OutputError as error:
            failures.append(error)


def _renderer(kind: str) -> str:
    """The module that writes this format: the page of findings is that of the graphs, with marks."""
    return f"gradtrace.renderers.{'graph' if kind == 'html' else 'findings'}.{kind}"
