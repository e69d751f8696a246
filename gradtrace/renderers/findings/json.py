"""Writes what `check` found as one JSON document, for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gradtrace.errors import ExitCode
from gradtrace.escapes import ascii_json
from gradtrace.model.finding import Finding, Report
from gradtrace.model.fix import Fix
from gradtrace.model.site import Site
from gradtrace.renderers.edits import between, fix_of
from gradtrace.renderers.paper import Paper
from gradtrace.renderers.wording import file

_STATUS = {
    ExitCode.OK: "clean",
    ExitCode.FINDINGS: "findings",
    ExitCode.SCRIPT_FAILED: "failed",
    ExitCode.NOTHING_TO_CHECK: "nothing-to-check",
}


def render(report: Report, paper: Paper) -> str:
    """The document, in ASCII alone, so that no stream can refuse it. Lines and columns count from 1."""
    document = {
        "format": "gradtrace.check",
        "version": 1,
        "script": report.script,
        "status": _status(report),
        "exit_code": int(report.exit_code),
        "findings": [
            {**_finding(finding, report.root), **_fix(fix_of(finding, report.fixes), report.root)}
            for finding in report.findings
        ],
        "silenced": [
            {**_finding(silenced.finding, report.root), "silenced_by": silenced.how, "reason": silenced.reason}
            for silenced in report.silenced
        ],
        "run": {
            "torch": report.torch,
            "backward_calls": report.backward_calls,
            "optimizer_steps": report.optimizer_steps,
            "ended": report.ended.how,
        },
        "unjudged": [{"rule": one.rule, "why": one.why} for one in report.unjudged],
        "remarks": list(report.remarks),
    }
    return ascii_json(document, indent=2) + "\n"


def _status(report: Report) -> str:
    code = ExitCode(report.exit_code)
    return "incomplete" if report.incomplete and code is ExitCode.NOTHING_TO_CHECK else _STATUS[code]


def _finding(finding: Finding, root: str | None) -> dict[str, Any]:
    site = finding.site
    return {
        "rule": finding.rule,
        "level": str(finding.level),
        "message": finding.message,
        "help": finding.help,
        **_place(site, root),
        "column": None if site.column is None else site.column + 1,
        "function": site.function,
        "occurrences": finding.occurrences,
        **({"ranks": list(finding.ranks)} if finding.ranks else {}),
        "related": [{**_place(related.site, root), "message": related.message} for related in finding.related],
    }


def _fix(fix: Fix | None, root: str | None) -> dict[str, Any]:
    """The edit that holds, where edits were tried."""
    if fix is None:
        return {}
    diff = between(fix.before, fix.after, Path(file(fix.path, root)).as_posix())
    return {"fix": {"title": fix.title, "proof": fix.proof, "diff": diff}}


def _place(site: Site, root: str | None) -> dict[str, Any]:
    return {"path": Path(file(site.path, root)).as_posix(), "line": site.line}
