"""why: what became of each parameter, or the life of one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradtrace.commands.run import Options, WatchedRun, by_ending
from gradtrace.errors import ExitCode, UsageError
from gradtrace.host import heap, streams
from gradtrace.model.finding import Ended
from gradtrace.model.lives import Life, State
from gradtrace.renderers.output import Out
from gradtrace.report import reasons
from gradtrace.rules import Judge

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
    """Runs the script and reports what became of its parameters; returns the exit code."""
    options.check_places(options.output)
    kind = options.format or by_ending(options.output, "why", "text", FORMATS)
    if kind not in FORMATS:
        raise UsageError(f"--format {kind}: why writes {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    program = options.load()
    with heap.filled():
        from gradtrace.renderers.lives import html, text
        from gradtrace.renderers.lives import json as as_json
        from gradtrace.watcher.watch import Watch

    judge = Judge()
    watch = Watch(
        judge.see, user_roots=program.roots, stop_after=options.steps, rules=True, lives=True, debug=options.debug
    )
    out = Out(options.output, options.color, claim=kind != "text")

    def finish(ended: Ended) -> int:
        for remark in watch.remarks:
            streams.announce(remark)
        lives = reasons.explained(watch.lives, judge.findings)
        if not lives:
            streams.announce("no parameter was seen: no backward call reached one, and no optimizer holds one")
            return ExitCode.SCRIPT_FAILED if ended.status else ExitCode.NOTHING_TO_CHECK
        shown = reasons.chosen(lives, question.name) if question.name else lives
        if kind == "json":
            out.write(json.dumps(as_json.document(shown, options.named), indent=2) + "\n")
        elif kind == "html":
            out.write(html.page(shown, options.named))
        elif question.name:
            asked = [_asked(life, question) for life in shown]
            out.write(out.paper.printed(lambda console: text.stories(asked, console)))
        else:
            out.write(out.paper.printed(lambda console: text.table(shown, console)))
        if ended.status:
            return ExitCode.SCRIPT_FAILED
        return ExitCode.FINDINGS if _fails(shown) else ExitCode.OK

    return WatchedRun(program, watch, finish).run(options.timeout)


def _fails(lives: Sequence[Life]) -> bool:
    return any(life.optimizer and life.state in _AT_FAULT for life in lives)


def _asked(life: Life, question: Question) -> Life:
    """The life, with the iteration alone that was asked for."""
    stretches = life.stretches
    if question.last:
        stretches = tuple(replace(one, first=one.last, times=1) for one in stretches[-1:])
    if question.iteration is not None:
        wanted = question.iteration
        stretches = tuple(one for one in stretches if one.first.number <= wanted <= one.last.number)
    return replace(life, stretches=stretches)
