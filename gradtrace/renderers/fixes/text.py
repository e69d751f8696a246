"""Prints what `fix` found, for people: the diff, a line of proof for each fix, and why the other findings stay."""

from __future__ import annotations

from collections.abc import Iterator

from gradtrace.escapes import visible
from gradtrace.model.finding import Finding
from gradtrace.model.fix import FixReport, Unfixed
from gradtrace.renderers.edits import diff
from gradtrace.renderers.wording import file


def render(report: FixReport) -> str:
    return "".join(_rows(report))


def _rows(report: FixReport) -> Iterator[str]:
    changes = diff(report.patch)
    if changes:
        yield changes + "\n"
    for one in report.fixes:
        yield f"fixed {_named(one.finding)}: {_line(one.title)}\n  {_line(one.proof)}\n"
    for left in report.unfixed:
        yield f"not fixed: {_named(left.finding)}: {_tried(left)}\n"
        for reason in left.reasons:
            yield f"  {_line(reason)}\n"
    yield from _end(report)


def _tried(left: Unfixed) -> str:
    if left.tried == 1:
        return "the one edit that was tried does not hold"
    if left.tried:
        return f"none of {left.tried} edits holds"
    return "nothing was tried" if left.reasons else "no edit is known for it"


def _end(report: FixReport) -> Iterator[str]:
    if report.interrupted:
        yield "interrupted: other findings were not taken on\n"
    elif not report.fixes and not report.unfixed:
        yield "nothing to fix: no gradient faults\n"
    if report.fixes and not report.written:
        yield "nothing was written; --write changes the files\n"


def _named(finding: Finding) -> str:
    return f"{finding.rule} ({file(finding.site.path)}:{finding.site.line})"


def _line(text: str) -> str:
    """Text from the user's program, without what a terminal would obey."""
    return " ".join(visible(text).split())
