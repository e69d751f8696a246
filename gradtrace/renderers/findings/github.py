"""Writes what `check` found as commands that GitHub Actions turns into annotations beside the lines of the code.

GitHub shows at most ten of each level in a step: what lies beyond is counted in a last line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gradtrace.errors import ExitCode
from gradtrace.escapes import one_line, visible
from gradtrace.model.finding import Finding, Level, Report
from gradtrace.model.fix import Fix
from gradtrace.renderers.edits import between, fix_of
from gradtrace.renderers.findings.summary import unjudged, verdict
from gradtrace.renderers.paper import Paper
from gradtrace.renderers.wording import count, file, printable

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_MOST = 10


def render(report: Report, paper: Paper) -> str:
    """The commands, each on a line of its own, after a line for people."""
    lines = [f"gradtrace: {printable(''.join(verdict(report)))}"]
    for level in sorted(Level, reverse=True):
        commands = list(_commands(report, level))
        lines += commands[:_MOST]
        if len(commands) > _MOST:
            more = count(len(commands) - _MOST, f"more {level}")
            lines.append(f"gradtrace: {more}, beyond the {_MOST} that GitHub shows")
    return "\n".join(lines) + "\n"


def _commands(report: Report, level: Level) -> Iterator[str]:
    if level is Level.ERROR and report.exit_code == ExitCode.SCRIPT_FAILED:
        yield _command(level, f"the script failed: {report.ended.exception or report.ended.how}", title="gradtrace")
    for finding in report.findings:
        if finding.level is level:
            yield _annotation(finding, report.root, fix_of(finding, report.fixes))
    if level is Level.WARNING:
        for remark in report.remarks:
            yield _command(level, remark, title="gradtrace")
    if level is Level.NOTE and report.unjudged:
        yield _command(level, "\n".join(unjudged(report)), title="gradtrace: rules that lacked data")


def _annotation(finding: Finding, root: str | None, fix: Fix | None) -> str:
    site = finding.site
    place: dict[str, object] = {"file": Path(file(site.path, root)).as_posix(), "line": site.line}
    if site.end_line is not None:
        place["endLine"] = site.end_line
    if site.column is not None:
        place["col"] = site.column + 1
        if site.end_column is not None and site.end_line == site.line:
            place["endColumn"] = site.end_column
    related = [
        f"{Path(file(one.site.path, root)).as_posix()}:{one.site.line}: {one.message}" for one in finding.related
    ]
    body = "\n".join(
        [finding.message, *related, f"help: {finding.help}" if finding.help else "", _suggestion(fix, root)]
    ).strip()
    return _command(finding.level, body, **place, title=f"gradtrace: {finding.rule}")


def _suggestion(fix: Fix | None, root: str | None) -> str:
    if fix is None:
        return ""
    name = Path(file(fix.path, root)).as_posix()
    return f"fix: {fix.title} ({fix.proof})\n\n{between(fix.before, fix.after, name)}"


def _command(level: Level, body: str, **properties: object) -> str:
    given = ",".join(f"{name}={_property(one_line(str(value)))}" for name, value in properties.items())
    return f"::{_COMMANDS[level]} {given}::{_data(visible(body))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
