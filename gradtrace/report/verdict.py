"""What is judged, and what becomes of the findings: some are silenced, the rest decide about the exit code."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from gradtrace import rules
from gradtrace.errors import ExitCode, UsageError
from gradtrace.host import streams
from gradtrace.model.finding import Ended, Finding, Level, Report, Silenced
from gradtrace.renderers.output import must_be_writable
from gradtrace.report import suppressions
from gradtrace.report.baseline import Baseline
from gradtrace.report.config import Settings
from gradtrace.report.recording import RecordedRun
from gradtrace.rules import Judge


class Verdict:
    """Made before the run, since the script may change the directory and the files. `directory` is that of the run,
    where it is not the working directory.

    Raises `UsageError`, `OutputError` or `DocumentError` where the baseline cannot be used.
    """

    def __init__(self, settings: Settings, write_baseline: bool = False, directory: str | None = None) -> None:
        self._settings = settings
        self._fail_on = settings.fail_on or Level.WARNING
        self._root = _root(directory or os.getcwd())
        self._known = {rule.id for rule in rules.all_rules()}
        self._manuals = rules.manuals()
        self._baseline: Baseline | None = None
        self._written: Path | None = None
        if write_baseline:
            if settings.baseline is None:
                raise UsageError("--write-baseline: where to? name a file with --baseline")
            self._written = settings.baseline.absolute()
            self._baseline = Baseline(self._written)
            must_be_writable(self._written)
        elif settings.baseline is not None:
            self._baseline = Baseline.read(settings.baseline)

    def judge(self, without: Collection[str] = ()) -> Judge:
        """A judge with the rules and levels that are wanted."""
        wanted = [rule() for rule in rules.all_rules() if self._settings.wants(rule.id) and rule.id not in without]
        return Judge(wanted, self._settings.levels)

    def is_silenced(self, finding: Finding) -> bool:
        """Whether a comment, or the baseline, keeps a finding out of the report."""
        if suppressions.is_silenced(finding):
            return True
        return self._baseline is not None and not self._baseline.apply([finding])[0]

    def report(self, judge: Judge, run: RecordedRun, calls: int, steps: int) -> Report:
        """The result, after the run's last event."""
        findings, silenced = self._sifted(judge, run)
        return Report(
            run.script,
            tuple(findings),
            run.ended,
            run.torch,
            calls,
            steps,
            _exit_code(judge, findings, run.ended, calls, self._fail_on),
            run.remarks + judge.remarks,
            tuple(silenced),
            judge.unjudged,
            tuple(manual for manual in self._manuals if manual.rule in judge.judged),
            self._fail_on,
            self._root,
            str(self._settings.source or "") or None,
            truths=judge.truths,
            incomplete=judge.failed,
        )

    def _sifted(self, judge: Judge, run: RecordedRun) -> tuple[list[Finding], list[Silenced]]:
        complete = run.ended.how in ("finished", "exit") and not run.ended.status
        judged = judge.judged if complete else frozenset[str]()
        findings, silenced, useless = suppressions.apply(judge.findings, run.files, judged, self._known)
        findings += useless if suppressions.UNUSED in judge.judged else []
        if self._baseline is None:
            return findings, silenced
        if self._written is not None:
            streams.put_file(self._written, self._baseline.document(findings).encode())
            return [], silenced + [Silenced(finding, "baseline") for finding in findings]
        new, known = self._baseline.apply(findings)
        return new, silenced + known


def _root(directory: str) -> str:
    """What paths are relative to: the checkout in a job of GitHub's, where the run is in it; else the directory."""
    checkout = os.environ.get("GITHUB_WORKSPACE", "")
    return checkout if checkout and Path(directory).is_relative_to(checkout) else directory


def _exit_code(judge: Judge, findings: Sequence[Finding], ended: Ended, calls: int, fail_on: Level) -> ExitCode:
    failing = [finding for finding in findings if finding.level >= fail_on]
    failed = ended.how not in ("finished", "stopped") and ended.status != 0
    if failed and not judge.explains(ended.exception, failing):
        return ExitCode.SCRIPT_FAILED
    if failing:
        return ExitCode.FINDINGS
    # silence is no health where not all was seen
    return ExitCode.OK if calls and not judge.failed else ExitCode.NOTHING_TO_CHECK
