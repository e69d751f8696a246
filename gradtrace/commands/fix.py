"""fix: makes candidate edits for each finding, runs the edited script, and shows the edits that hold."""

from __future__ import annotations

from gradtrace import rules
from gradtrace.commands.run import Options, by_ending
from gradtrace.errors import ExitCode, UsageError
from gradtrace.fixes.search import Effort, Search
from gradtrace.fixes.trials import Script
from gradtrace.host import streams
from gradtrace.renderers.fixes import json, text
from gradtrace.renderers.output import Out
from gradtrace.report import config
from gradtrace.report.verdict import Verdict

RENDERERS = {"text": text.render, "json": json.render}


def fix(options: Options, effort: Effort) -> int:
    """Runs the script several times and shows the edits that hold; returns the exit code."""
    kind = options.format or by_ending(options.output, "fix", "text", tuple(RENDERERS))
    if kind not in RENDERERS:
        raise UsageError(f"--format {kind}: fix writes {' or '.join(RENDERERS)}")
    options.check_places(options.output)
    known = frozenset(rule.id for rule in rules.all_rules())
    search = begin(options, effort, Verdict(config.near(options.place, known)))
    out = Out(options.output, options.color)
    search.run()
    if effort.write:
        search.write()
    report = search.report(effort.write)
    out.write(RENDERERS[kind](report))
    if report.unfixed or report.interrupted:
        return ExitCode.FINDINGS
    failed = search.outcome.failed and not search.outcome.explained
    return ExitCode.SCRIPT_FAILED if failed else ExitCode.OK


def begin(options: Options, effort: Effort, verdict: Verdict) -> Search:
    """Runs the script as it is. Raises `GradtraceError` where its edits could not be tried."""
    if options.words[:1] == ["-"]:
        raise UsageError("fix runs the script several times: it cannot read it from stdin; name a file")
    options.load()  # says now what is wrong with the command line
    _load_torch()
    search = Search(Script(options.words, options.module, options.steps, verdict), effort)
    steps = search.suggested_steps()
    if steps is not None:
        outcome = search.outcome
        streams.announce(
            f"the script takes {outcome.took:.0f} s for {outcome.steps:,} steps, and each edit takes as long; "
            f"--steps {steps} shows the same findings"
        )
    return search


def _load_torch() -> None:
    """Once, before the first fork: a run then costs what the script costs."""
    import gradtrace.watcher.watch  # noqa: F401
