"""The result of a check in one line, and the rules that lacked data: the same words in every format."""

from __future__ import annotations

from collections import Counter
from textwrap import shorten

from gradtrace.errors import ExitCode
from gradtrace.model.finding import Ended, Level, Report
from gradtrace.renderers.wording import count


def verdict(report: Report, dots: str = "…") -> tuple[str, str]:
    """The result of a check in one line: the words that matter, and the rest."""
    found = _counts(report)
    how = _ended(report.ended, dots)
    run = _run(report)
    if report.exit_code == ExitCode.SCRIPT_FAILED:
        return _failed(report, ", ".join(found), run, how)
    if report.exit_code == ExitCode.NOTHING_TO_CHECK:
        if report.incomplete:
            so_far = ", ".join(found) or "nothing found"
            return "an internal error", f" kept gradtrace from checking the whole run: {so_far}; {run}; {how}"
        return "nothing to check", f": no backward or autograd.grad call was seen; {how}"
    end = f"{run}; {how}{_unjudged(report)}"
    worst = max((finding.level for finding in report.findings), default=Level.NOTE)
    if report.exit_code == ExitCode.OK and worst is Level.NOTE:
        # a note on something that should hold of each run is more than advice
        sound = not report.findings or not any(truth.broken for truth in report.truths)
        return "no gradient faults" if sound else "no errors or warnings", ": " + "; ".join(
            [", ".join(found), end] if found else [end]
        )
    # also where faults of this level do not fail the check
    return found[0], "".join(f", {more}" for more in found[1:]) + f"; {end}"


def _counts(report: Report) -> list[str]:
    """`2 errors`, `1 warning`, `3 silenced`: what there is, the worst first."""
    levels = Counter(finding.level for finding in report.findings)
    found = [count(levels[level], str(level)) for level in sorted(levels, reverse=True)]
    if report.silenced:
        found.append(f"{len(report.silenced):,} silenced")
    return found


def _run(report: Report) -> str:
    calls = count(report.backward_calls, "backward call")
    steps = count(report.optimizer_steps, "optimizer step")
    return f"{calls}, {steps}, torch {report.torch}"


def _failed(report: Report, found: str, run: str, how: str) -> tuple[str, str]:
    """The line of a script that failed for a reason which no finding explains."""
    so_far = found or "no gradient faults until then"
    if report.ended.how in ("interrupted", "killed"):
        return how, f": {so_far}; {run}{_unjudged(report)}"
    if not report.backward_calls and not found:
        return "the script failed before its first backward call", f": {how}"
    return "the script failed for another reason", f": {so_far}; {run}; {how}{_unjudged(report)}"


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


def truths(report: Report) -> list[str]:
    """What must hold of each sound run, one line each: `steps change parameters: 9 of 12`."""
    lines = []
    for one in report.truths:
        held = one.checked - one.broken
        names = f" (not: {', '.join(one.names)})" if one.broken and one.names else ""
        if one.checked:
            lines.append(f"{one.kind}: {f'all {held:,}' if not one.broken else f'{held:,} of {one.checked:,}'}{names}")
    return lines


def unjudged(report: Report) -> list[str]:
    """The rules that lacked data, by reason: `no optimizer step was seen: late-clip, leaked-grad`."""
    if report.unjudged and not report.backward_calls:
        return ["no backward call was seen: no rule had data"]
    by_reason: dict[str, list[str]] = {}
    for one in report.unjudged:
        by_reason.setdefault(one.why, []).append(one.rule)
    return [f"{why}: {', '.join(rules)}" for why, rules in by_reason.items()]
