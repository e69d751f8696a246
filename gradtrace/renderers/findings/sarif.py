"""Writes what `check` found as SARIF 2.1.0, which code hosts and editors read.

Findings that a comment or a baseline silences are there as suppressed results: a host that missed them would call them
fixed, and open them again later.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from gradtrace import __version__
from gradtrace.errors import ExitCode
from gradtrace.escapes import ascii_json
from gradtrace.model.finding import Finding, Report, Silenced
from gradtrace.model.manual import Manual
from gradtrace.model.site import Site
from gradtrace.renderers.edits import changes, fix_of
from gradtrace.renderers.paper import Paper
from gradtrace.renderers.wording import file
from gradtrace.source import texts

_Object: TypeAlias = dict[str, Any]
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_KINDS = {"comment": "inSource", "baseline": "external"}
_ROOT = "%SRCROOT%"


def render(report: Report, paper: Paper) -> str:
    """The document, in ASCII alone. Paths are relative to the root of the sources, percent-encoded."""
    run = {
        "tool": {
            "driver": {"name": "gradtrace", "version": __version__, "rules": [_rule(one) for one in report.rules]}
        },
        "originalUriBaseIds": {_ROOT: {"uri": _uri(report.root or os.getcwd()).rstrip("/") + "/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": list(_results(report)),
    }
    return ascii_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(manual: Manual) -> _Object:
    code = f"\n\nBad:\n\n```python\n{manual.bad}\n```\n\nGood:\n\n```python\n{manual.good}\n```\n\n"
    return {
        "id": manual.rule,
        "shortDescription": {"text": manual.summary},
        "fullDescription": {"text": manual.why},
        "help": {
            "text": f"{manual.why}\n\nBad:\n\n{manual.bad}\n\nGood:\n\n{manual.good}\n\n{manual.notes}",
            "markdown": manual.why + code + manual.notes,
        },
        "defaultConfiguration": {"level": str(manual.level)},
    }


def _invocation(report: Report) -> _Object:
    notes: list[tuple[str | None, str, str]]
    notes = [(one.rule, "note", f"{one.rule} lacked data: {one.why}") for one in report.unjudged]
    notes += [(None, "warning", remark) for remark in report.remarks]
    if report.exit_code == ExitCode.SCRIPT_FAILED:
        notes.append((None, "error", f"the script failed: {report.ended.exception or report.ended.how}"))
    return {
        "executionSuccessful": report.exit_code != ExitCode.SCRIPT_FAILED,
        "exitCode": int(report.exit_code),
        "toolExecutionNotifications": [
            {"level": level, "message": {"text": text}, **({"associatedRule": {"id": rule}} if rule else {})}
            for rule, level, text in notes
        ],
    }


def _results(report: Report) -> Iterable[_Object]:
    indices = {manual.rule: index for index, manual in enumerate(report.rules)}
    seen: Counter[str] = Counter()
    reported = [(finding, None) for finding in report.findings]
    for finding, silenced in [*reported, *((one.finding, one) for one in report.silenced)]:
        print_ = _fingerprint(finding, report)
        seen[print_] += 1
        yield {
            "ruleId": finding.rule,
            **({"ruleIndex": indices[finding.rule]} if finding.rule in indices else {}),
            "level": str(finding.level),
            "message": {"text": f"{finding.message}\n{finding.help}".strip()},
            "locations": [{**_place(finding.site, report), "logicalLocations": _function(finding.site)}],
            "relatedLocations": [
                {"id": number, **_place(related.site, report), "message": {"text": related.message}}
                for number, related in enumerate(finding.related)
            ],
            "partialFingerprints": {"gradtrace/v1": f"{print_}:{seen[print_]}"},
            "occurrenceCount": finding.occurrences,
            "suppressions": _suppressions(silenced),
            **_fixes(finding, report),
        }


def _fixes(finding: Finding, report: Report) -> _Object:
    """The edit that holds, as replacements of whole lines of the file as it was."""
    fix = fix_of(finding, report.fixes)
    found = changes(fix, report.patch.before[fix.path]) if fix is not None and report.patch is not None else []
    if fix is None or not found:
        return {}
    replacements = []
    for one in found:
        region = {"startLine": one.first, "startColumn": 1, "endLine": one.end, "endColumn": 1}
        replacements.append({"deletedRegion": region, "insertedContent": {"text": "".join(one.lines)}})
    change = {"artifactLocation": _artifact(fix.path, report), "replacements": replacements}
    return {"fixes": [{"description": {"text": f"{fix.title} ({fix.proof})"}, "artifactChanges": [change]}]}


def _suppressions(silenced: Silenced | None) -> list[_Object]:
    if silenced is None:
        return []
    why = {"justification": silenced.reason} if silenced.reason else {}
    return [{"kind": _KINDS[silenced.how], **why}]


def _place(site: Site, report: Report) -> _Object:
    return {"physicalLocation": {"artifactLocation": _artifact(site.path, report), "region": _region(site)}}


def _artifact(path: str, report: Report) -> _Object:
    relative = file(path, report.root)
    if os.path.isabs(relative):
        return {"uri": _uri(relative)}
    return {"uri": quote(_encoded(relative)), "uriBaseId": _ROOT}


def _uri(path: str) -> str:
    """The URI of an absolute path."""
    encoded = quote(_encoded(path))
    return f"file://{encoded}" if encoded.startswith("/") else f"file:///{encoded}"


def _encoded(path: str) -> bytes:
    """With slashes, and as the file system has it; also where no file system could."""
    path = Path(path).as_posix()
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:
        return path.encode(errors="surrogatepass")


def _region(site: Site) -> _Object:
    """Lines and columns count from 1 here, and the end column is the first that is not meant."""
    region: _Object = {"startLine": site.line}
    if site.end_line is not None:
        region["endLine"] = site.end_line
    if site.column is not None:
        region["startColumn"] = site.column + 1
        if site.end_column is not None:
            region["endColumn"] = site.end_column + 1
    text = texts.line(site.path, site.line)
    return region | ({"snippet": {"text": text}} if text and site.end_line in (None, site.line) else {})


def _function(site: Site) -> list[_Object]:
    return [{"fullyQualifiedName": site.function, "kind": "function"}] if site.function else []


def _fingerprint(finding: Finding, report: Report) -> str:
    """The same while rule, file, function and source text are: lines may come and go above it."""
    site = finding.site
    text = " ".join(texts.line(site.path, site.line).split())
    parts = finding.rule, Path(file(site.path, report.root)).as_posix(), site.function, text
    return hashlib.sha256("\0".join(parts).encode(errors="backslashreplace")).hexdigest()[:32]
