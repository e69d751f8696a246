"""check: runs the script under watch, judges what was seen, and reports it in every form that was asked for."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from gradtrace import rules
from gradtrace.commands.run import Options, reported
from gradtrace.errors import ExitCode, UsageError, no_such
from gradtrace.host import heap, ranks
from gradtrace.host.limits import limited, unhindered
from gradtrace.host.progress import Progress
from gradtrace.host.script import Program
from gradtrace.model.events import Backward, Event, Step
from gradtrace.model.finding import Ended, Report
from gradtrace.model.graph import Graph
from gradtrace.renderers.output import Out
from gradtrace.renderers.paper import Paper
from gradtrace.report import config
from gradtrace.report.config import Settings
from gradtrace.report.recording import Recorder, Recording, Run
from gradtrace.report.verdict import Verdict
from gradtrace.rules import Judge

#: what there is, and the ending of a file that asks for it
FORMATS = {"text": ".txt", "json": ".json", "sarif": ".sarif", "junit": ".xml", "github": "", "html": ".html"}
#: those that a script must not print into
_DOCUMENTS = {"json", "sarif", "junit", "html"}


_Reporting: TypeAlias = Callable[[Judge, Run, int, int], int]


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
    #: where to write the events to
    record: Path | None = None

    def settings(self, known: frozenset[str]) -> Settings:
        return Settings(
            config.rules(self.select, known) if self.select else None,
            config.rules(self.ignore, known) if self.ignore else None,
            config.level(self.fail_on) if self.fail_on else None,
            config.levels(self.levels, known),
            self.baseline,
        )


def check(options: Options, wishes: Wishes) -> int:
    """Runs the script, or reads a recording of its run, and reports its faults; returns the exit code."""
    forms = [_Form(kind, path) for kind, path in _wanted(wishes)]
    known = frozenset(rule.id for rule in rules.all_rules())
    told = wishes.settings(known)
    source = _recording(options, wishes) or options.load()
    place = Path(source.run.directory, source.run.script) if isinstance(source, Recording) else options.place
    verdict = Verdict(told.over(config.near(place, known)), wishes.write_baseline)
    for form in forms:
        form.open(options.color, wishes.detail)

    graphs: list[Graph] | None = [] if any(form.shows_graphs for form in forms) else None

    def report(judge: Judge, run: Run, calls: int, steps: int) -> int:
        result = replace(verdict.report(judge, run, calls, steps), graphs=tuple(graphs or ()))
        with ExitStack() as writing:  # where one place cannot be written to, the others still are
            for form in reversed(forms):
                writing.callback(form.write, result)
        return result.exit_code

    if isinstance(source, Recording):
        return _replay(source, verdict.judge(), report)
    return _watch(source, options, wishes, verdict.judge(), report, graphs)


def _recording(options: Options, wishes: Wishes) -> Recording | None:
    """The recording that was named in the place of a script."""
    if options.module is not None or not options.words or not options.words[0].endswith(".jsonl"):
        return None
    name = options.words[0]
    asked = {"--steps": options.steps, "--record": wishes.record, "arguments": options.words[1:]}
    if senseless := [option for option, value in asked.items() if value]:
        raise UsageError(f"{name} is a recording, which does not run: it takes no {senseless[0]}")
    return Recording(Path(name))


def _replay(recording: Recording, judge: Judge, report: _Reporting) -> int:
    calls = steps = 0
    for event in recording.events():
        judge.see(event)
        calls = event.number if isinstance(event, Backward) else calls
        steps = event.number if isinstance(event, Step) else steps
    return report(judge, recording.run, calls, steps)


def _watch(
    program: Program,
    options: Options,
    wishes: Wishes,
    judge: Judge,
    report: _Reporting,
    graphs: list[Graph] | None = None,
) -> int:
    """`graphs` is to be filled, if it is there."""
    # all of it now: later the script's directory comes first on the path
    with heap.filled():
        from gradtrace.watcher.pictures.snapshot import Snapshots
        from gradtrace.watcher.watch import TORCH_VERSION, Watch

    rank = ranks.here()
    alone = rank is None or rank.first
    recorder = Recorder(wishes.record, program.name, TORCH_VERSION) if wishes.record and alone else None
    start = Run(program.name, TORCH_VERSION, os.getcwd())

    def see(event: Event) -> None:
        judge.see(event)
        if recorder is not None:
            recorder.see(event)
        progress.tick()

    snapshots = None if graphs is None else Snapshots(stop_when_repeated=False, remaining=False)
    watch = Watch(
        see,
        user_roots=program.roots,
        stop_after=options.steps,
        snapshots=snapshots,
        rules=True,
        debug=options.debug,
    )
    progress = Progress(
        lambda: (watch.optimizer_steps, watch.backward_calls, len(judge.findings)),
        2,
        wanted=alone and wishes.detail >= 0,
    )

    def finish(ended: Ended) -> int:
        progress.close()
        if graphs is not None and snapshots is not None:
            graphs.extend(snapshots.graphs)
        if rank is not None:
            unhindered()  # torchrun ends all ranks where one has failed
            if not rank.first:
                rank.send(judge.findings)
                return ExitCode.SCRIPT_FAILED if ended.status else ExitCode.OK
            judge.join(rank.number, rank.receive())
        run = replace(start, ended=ended, remarks=watch.remarks + watch.unseen, files=watch.user_files())
        with ExitStack() as closing:
            if recorder is not None:
                closing.callback(recorder.close, run)
            return report(judge, run, watch.backward_calls, watch.optimizer_steps)

    return reported(program, limited(watch, options.timeout), finish, watch.crashed)


def _wanted(wishes: Wishes) -> list[tuple[str, Path | None]]:
    """What goes where. A file's ending says what it gets; `--format` is for stdout, and for files that do not say."""
    if wishes.format not in (None, *FORMATS):
        raise no_such("format", str(wishes.format), FORMATS)
    endings = {ending: kind for kind, ending in FORMATS.items() if ending}
    said = [(endings.get(path.suffix.lower()), path) for path in wishes.outputs]
    files = [(kind or wishes.format or "text", path) for kind, path in said]
    to_stdout = not files or (wishes.format is not None and all(kind for kind, _ in said))
    return [*files, (wishes.format or "text", None)] if to_stdout else list(files)


def _renderer(kind: str) -> str:
    """The module that writes this format: the page of findings is that of the graphs, with marks."""
    return f"gradtrace.renderers.{'graph' if kind == 'html' else 'findings'}.{kind}"


class _Form:
    """One format at one place."""

    def __init__(self, kind: str, path: Path | None) -> None:
        self._kind, self._path = kind, path
        # now: later the script's directory comes first on the path
        self._render: Callable[[Report, Paper], str] = importlib.import_module(_renderer(kind)).render

    @property
    def shows_graphs(self) -> bool:
        return self._kind == "html"

    def open(self, color: bool | None, detail: int) -> None:
        self._out = Out(self._path, color, detail, claim=self._kind in _DOCUMENTS)

    def write(self, report: Report) -> None:
        self._out.write(self._render(report, self._out.paper))
