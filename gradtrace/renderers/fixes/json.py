"""What `fix` found as one JSON document, for programs. Lines count from 1."""

from __future__ import annotations

import json
from typing import Any

from gradtrace.model.finding import Finding
from gradtrace.model.fix import FixReport
from gradtrace.renderers.edits import between, diff
from gradtrace.renderers.wording import file


def render(report: FixReport) -> str:
    fixes = []
    for one in report.fixes:
        own = between(one.before, one.after, file(one.path))
        fixes.append({**_finding(one.finding), "title": one.title, "proof": one.proof, "diff": own})
    unfixed = [{**_finding(one.finding), "tried": one.tried, "reasons": list(one.reasons)} for one in report.unfixed]
    document = {
        "format": "gradtrace.fix",
        "version": 1,
        "diff": diff(report.patch),
        "fixes": fixes,
        "unfixed": unfixed,
        "written": report.written,
        "interrupted": report.interrupted,
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": str(finding.level),
        "file": file(finding.site.path),
        "line": finding.site.line,
        "message": finding.message,
    }
