"""why: what became of each parameter, or the life of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradtrace.commands.run import Options, WatchedRun, by_ending, named_recording
from gradtrace.errors import DocumentError, ExitCode, UsageError
from gradtrace.host import heap, streams
from gradtrace.model.finding import Ended, Finding
from gradtrace.model.graph import Graph
from gradtrace.model.lives import Life, State
from gradtrace.renderers import wording
from gradtrace.renderers.lives import html, text
from gradtrace.renderers.lives import json as as_json
from gradtrace.renderers.output import Out
from gradtrace.report import reasons
from gradtrace.report.recording import Recording
from gradtrace.rules import Judge
from gradtrace.source import texts
from gradtrace.source.base_directory import relative_to

FORMATS = ("text", "json", "html")
#: the parameters of an optimizer that are in one of these states do not train
_AT_FAULT = frozenset({State.UNREACHED, State.ZERO, State.NONFINITE, State.UNMOVED})


@dataclass(frozen=True, slots=True)
class Question:
    """Which parameter, all where that is empty, and which of its iterations."""

    name: str = ""
    iteration: int | None = None
    last: bool = False


def why(options: Options, question: Question) -> int:
    """Runs the script, or reads a recording of its run, and reports what became of its parameters; returns the exit code."""
    options.check_places(options.output)
    kind = options.format or by_ending(options.output, "why", "text", FORMATS)
    if kind not in FORMATS:
        raise UsageError(f"--format {kind}: why writes {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    recording = named_recording(options, {})
    out = Out(options.output, options.color, claim=kind != "text")
    answer = _Answer(kind, options.named, question, out)
    if recording is not None:
        return _of_recording(recording, answer)
    program = options.load()
    with heap.filled():
        from gradtrace.watcher.pictures.snapshot import Snapshots
        from gradtrace.watcher.watch import Watch

    judge = Judge()
    pictures = Snapshots(stop_when_repeated=False, remaining=False)
    watch = Watch(
        judge.see,
        user_roots=program.roots,
        stop_after=options.steps,
        snapshots=pictures,
        rules=True,
        lives=True,
        debug=options.debug,
    )

    def finish(ended: Ended) -> int:
        for remark in watch.remarks:
            streams.announce(remark)
        return answer.write(watch.lives, judge.findings, pictures.graphs, ended)

    return WatchedRun(program, watch, finish).run(options.timeout)


def _of_recording(recording: Recording, answer: _Answer) -> int:
    """Judges the recording again, for the reasons."""
    judge = Judge()
    with texts.replayed(recording.files), relative_to(recording.run.directory):
        for event in recording.events():
            judge.see(event)
        run = recording.run
        if not run.lives:
            raise DocumentError("the recording has no parameters: record the whole run with check --record")
        return answer.write(run.lives, judge.findings, (), run.ended)


@dataclass(frozen=True, slots=True)
class _Answer:
    """In which form, where to, and to what question."""

    kind: str
    script: str
    question: Question
    out: Out

    def write(self, lives: Sequence[Life], findings: Sequence[Finding], graphs: Sequence[Graph], ended: Ended) -> int:
        """Returns the exit code."""
        name = self.question.name
        if not lives:
            streams.announce("no parameter was seen: no backward call reached one, and no optimizer holds one")
            for finding in findings[:1]:
                streams.announce(f"{finding.message} ({wording.place(finding.site)})")
            return ExitCode.SCRIPT_FAILED if ended.status else ExitCode.NOTHING_TO_CHECK
        known = reasons.explained(lives, findings)
        shown = reasons.with_paths(reasons.chosen(known, name) if name else reasons.of_interest(known), graphs)
        self.out.write(self._rendered(shown))
        if ended.status:
            return ExitCode.SCRIPT_FAILED
        return ExitCode.FINDINGS if _fails(shown) else ExitCode.OK

    def _rendered(self, shown: Sequence[Life]) -> str:
        if self.kind == "json":
            return json.dumps(as_json.document(shown, self.script), indent=2) + "\n"
        if self.kind == "html":
            return html.page(shown, self.script)
        if self.question.name:
            asked = [_asked(life, self.question) for life in shown]
            return self.out.paper.printed(lambda console: text.stories(asked, console))
        return self.out.paper.printed(lambda console: text.table(shown, console))


def _fails(lives: Sequence[Life]) -> bool:
    return any(life.optimizer and life.state in _AT_FAULT for life in lives)


def _asked(life: Life, question: Question) -> Life:
    """The life, with the iteration alone that is wanted."""
    stretches = life.stretches
    if question.last:
        stretches = tuple(replace(one, first=one.last, times=1) for one in stretches[-1:])
    if question.iteration is not None:
        wanted = question.iteration
        stretches = tuple(one for one in stretches if one.first.number <= wanted <= one.last.number)
    return replace(life, stretches=stretches)
