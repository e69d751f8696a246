"""The result of a check in one line, and the rules that lacked data: the same words in every format."""

from __future__ import annotations

from collections import Counter
from textwrap import shorten

from gradtrace.errors import ExitCode
from gradtrace.model.finding import Ended, Level, Report
from gradtrace.renderers.wording import count


def verdict(report: Report, dots: str = "…") -> tuple[str, str]:
    """The result of a check in one line: the words that matter, and the rest."""
    levels = Counter(finding.level for finding in report.findings)
    counts = [count(levels[level], str(level)) for level in sorted(levels, reverse=True)]
    silenced = [f"{len(report.silenced):,} silenced"] * bool(report.silenced)
    found = ", ".join(counts + silenced)
    run = f"{count(report.backward_calls, 'backward call')}, {count(report.optimizer_steps, 'optimizer step')}"
    end = f"{run}, torch {report.torch}; {_ended(report.ended, dots)}{_unjudged(report)}"
    if report.exit_code == ExitCode.SCRIPT_FAILED and report.ended.how in ("interrupted", "killed"):
        found_so_far = found or "no gradient faults until then"
        return _ended(report.ended, dots), f": {found_so_far}; {run}, torch {report.torch}{_unjudged(report)}"
    if report.exit_code == ExitCode.SCRIPT_FAILED and not report.backward_calls and not found:
        return "the script failed before its first backward call", f": {_ended(report.ended, dots)}"
    if report.exit_code == ExitCode.SCRIPT_FAILED:
        return "the script failed for another reason", f": {found or 'no gradient faults until then'}; {end}"
    if report.exit_code == ExitCode.NOTHING_TO_CHECK:
        why = "no backward or autograd.grad call was seen"
        return "nothing to check", f": {why}; {_ended(report.ended, dots)}"
    if report.exit_code == ExitCode.OK and max(levels, default=Level.NOTE) is Level.NOTE:
        return "no gradient faults", f": {found}{'; ' if found else ''}{end}"
    # also where faults of this level were asked not to matter
    return counts[0], "".join(f", {more}" for more in counts[1:] + silenced) + f"; {end}"


def _ended(ended: Ended, dots: str) -> str:
    error = shorten(next(iter((ended.exception or "").splitlines()), ""), 90, placeholder=dots)
    match ended.how:
        case "stopped":
            return "the script was stopped early"
        case "exit":
            return f"the script exited with status {ended.status}"
        case "exception":
            return f"the script ended with {error}, its traceback is above" if error else "the script failed"
        case "interrupted":
            return "the script was interrupted"
        case "killed":
            return "the script was killed by a signal"
        case _:
            return "the script finished"


def _unjudged(report: Report) -> str:
    number = len(report.unjudged)
    return f"; {count(number, 'rule')} lacked data (-v lists them)" if number else ""


def unjudged(report: Report) -> list[str]:
    """The rules that lacked data, by reason: `no optimizer step was seen: late-clip, leaked-grad`."""
    if report.unjudged and not report.backward_calls:
        return ["no backward call was seen: no rule had data"]
    by_reason: dict[str, list[str]] = {}
    for one in report.unjudged:
        by_reason.setdefault(one.why, []).append(one.rule)
    return [f"{why}: {', '.join(rules)}" for why, rules in by_reason.items()]
