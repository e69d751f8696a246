"""fix: makes candidate edits for each finding, runs the edited script, and shows the edits that hold."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradtrace.commands.run import Options
from gradtrace.errors import ExitCode, GradtraceError, UsageError
from gradtrace.fixes.candidates import Candidate, candidates
from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.proof import Fix, Unfixed, best, objection, proof
from gradtrace.fixes.trials import Job, Outcome, read_text, run_all
from gradtrace.host import streams
from gradtrace.model.finding import Finding, Level
from gradtrace.renderers.output import Out
from gradtrace.renderers.wording import count
from gradtrace.renderers.wording import file as shown

FORMATS = ("text", "json")
#: reasons named of a finding that stays
_REASONS = 3
#: edits tried for one finding, and findings taken on
_TRIES, _FINDINGS = 40, 40


@dataclass(frozen=True, slots=True)
class Effort:
    """How many runs at once, how many seconds each, and whether the files are changed in the end."""

    jobs: int = 2
    seconds: float | None = None
    write: bool = False


@dataclass(slots=True)
class Patch:
    """The texts as they were and as they are with the fixes so far."""

    before: dict[str, str] = field(default_factory=dict)
    now: dict[str, str] = field(default_factory=dict)

    def add(self, path: str) -> None:
        if path not in self.before:
            self.before[path] = self.now[path] = read_text(path)

    def changed(self) -> list[str]:
        return [path for path in self.now if self.now[path] != self.before[path]]

    def diff(self) -> str:
        """One unified diff, with paths as the user would type them."""
        rows: list[str] = []
        for path in self.changed():
            old = self.before[path].splitlines(keepends=True)
            new = self.now[path].splitlines(keepends=True)
            name = shown(path)
            rows += [row if row.endswith("\n") else row + "\n" for row in difflib.unified_diff(old, new, name, name)]
        return "".join(rows)

    def write(self) -> None:
        """Puts the new texts into the files. Raises `GradtraceError` where one is no longer what was run."""
        for path in self.changed():
            if read_text(path) != self.before[path]:
                raise GradtraceError(f"{shown(path)} has changed since it was run; nothing was written, run fix again")
        for path in self.changed():
            streams.put_file(Path(path), self.now[path].encode())


class Search:
    """Takes on one finding after the other: the runs of the next start from the edits that hold so far."""

    def __init__(self, options: Options, effort: Effort) -> None:
        self._options = options
        self._effort = effort
        self.patch = Patch()
        self.fixes: list[Fix] = []
        self.unfixed: list[Unfixed] = []
        self.outcome = self._first()

    def _first(self) -> Outcome:
        """The script as it is, twice: what differs from run to run proves nothing."""
        first, second = run_all([self._job({})] * 2, self._effort.jobs, self._effort.seconds)
        if first is None or second is None:
            raise GradtraceError(
                "the script gave no result in the time it had; give it --steps N, or more --timeout SECONDS"
            )
        if _facts(first) != _facts(second):
            raise GradtraceError(
                "two runs of the script differ in what they find, so that no edit can be proven; seed it, or narrow it "
                "down with --steps N"
            )
        for path in first.files:
            if os.access(path, os.R_OK):
                self.patch.add(path)
        return first

    def _job(self, texts: Mapping[str, str]) -> Job:
        return Job(self._options.words, self._options.module, self._options.steps, texts)

    def run(self) -> None:
        tried: set[tuple[str, str]] = set()
        while len(tried) < _FINDINGS:
            waiting = [one for one in self._findings() if (one.rule, one.message) not in tried]
            if not waiting:
                return
            finding = waiting[0]
            tried.add((finding.rule, finding.message))
            self._take_on(finding)

    def _findings(self) -> list[Finding]:
        return [finding for finding in self.outcome.findings if finding.level > Level.NOTE]

    def _take_on(self, finding: Finding) -> None:
        found = candidates(finding, self._files())[:_TRIES]
        if found:
            place = f"{shown(finding.site.path)}:{finding.site.line}"
            streams.announce(f"trying {count(len(found), 'edit')} for {finding.rule} at {place}")
        texts = {path: self.patch.now[path] for path in self.patch.changed()}
        jobs = [self._job({**texts, one.path: one.text}) for one in found]
        outcomes = run_all(jobs, self._effort.jobs, self._effort.seconds)
        holding: list[tuple[Candidate, Outcome]] = []
        reasons: list[str] = []
        for candidate, outcome in zip(found, outcomes, strict=True):
            against = objection(self.outcome, outcome, finding)
            if against:
                reasons.append(f"{candidate.title}: {against}")
            elif outcome is not None:
                holding.append((candidate, outcome))
        if not holding:
            self.unfixed.append(Unfixed(finding, len(found), tuple(reasons[:_REASONS])))
            return
        candidate, outcome = best(holding, self.patch.now)
        self.patch.now[candidate.path] = candidate.text
        self.fixes.append(Fix(finding, candidate, proof(outcome, finding)))
        self.outcome = outcome

    def _files(self) -> dict[str, SourceFile]:
        return {path: SourceFile(path, text) for path, text in self.patch.now.items()}


def _facts(outcome: Outcome) -> tuple[Any, ...]:
    """What must be the same in each run for a comparison to mean anything."""
    findings = sorted((finding.rule, *finding.site.place) for finding in outcome.findings)
    return findings, outcome.ended.how, outcome.ended.status, outcome.steps, outcome.moving


def fix(options: Options, effort: Effort) -> int:
    """Runs the script several times and shows the edits that hold; returns the exit code."""
    kind = options.format or "text"
    if kind not in FORMATS:
        raise UsageError(f"--format {kind}: fix writes {' or '.join(FORMATS)}")
    if options.words[:1] == ["-"]:
        raise UsageError("fix runs the script several times: it cannot read it from stdin; name a file")
    options.load()  # says now what is wrong with the command line
    _load_torch()
    search = Search(options, effort)
    search.run()
    if effort.write:
        search.patch.write()
    out = Out(options.output, options.color)
    out.write(_document(search) if kind == "json" else "".join(_rows(search, effort)))
    if search.unfixed:
        return ExitCode.FINDINGS
    failed = search.outcome.failed and not search.outcome.explained
    return ExitCode.SCRIPT_FAILED if failed else ExitCode.OK


def _load_torch() -> None:
    """Once, before the first fork: a run then costs what the script costs."""
    import gradtrace.rules
    import gradtrace.watcher.watch  # noqa: F401


def _rows(search: Search, effort: Effort) -> Iterator[str]:
    diff = search.patch.diff()
    if diff:
        yield diff + "\n"
    for one in search.fixes:
        site = one.finding.site
        yield f"fixed {one.finding.rule} ({shown(site.path)}:{site.line}): {one.candidate.title}\n  {one.proof}\n"
    for left in search.unfixed:
        site = left.finding.site
        tried = f"none of {left.tried} edits holds" if left.tried else "no edit is known for this kind"
        yield f"not fixed: {left.finding.rule} ({shown(site.path)}:{site.line}): {tried}\n"
        for reason in left.reasons:
            yield f"  {reason}\n"
    if not search.fixes and not search.unfixed:
        yield "nothing to fix: no gradient faults\n"
    elif search.fixes and not effort.write:
        yield "nothing was written; --write changes the files\n"


def _document(search: Search) -> str:
    fixes = [{**_finding(one.finding), "title": one.candidate.title, "proof": one.proof} for one in search.fixes]
    unfixed = [{**_finding(one.finding), "tried": one.tried, "reasons": list(one.reasons)} for one in search.unfixed]
    document = {
        "format": "gradtrace.fix",
        "version": 1,
        "diff": search.patch.diff(),
        "fixes": fixes,
        "unfixed": unfixed,
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "file": shown(finding.site.path),
        "line": finding.site.line,
        "message": finding.message,
    }
