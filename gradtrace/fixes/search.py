"""Takes on one finding after the other: makes candidate edits, runs the edited script, and keeps the edits that hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from gradtrace.errors import GradtraceError
from gradtrace.fixes.candidates import candidates
from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.place import Candidate
from gradtrace.fixes.proof import objection, proof, size, unlikeness
from gradtrace.fixes.sources import is_installed, read_text, write_text
from gradtrace.fixes.trials import Outcome, Script, Trial, run_all
from gradtrace.host import streams
from gradtrace.model.finding import Finding, Level
from gradtrace.model.fix import Fix, FixReport, Patch, Unfixed
from gradtrace.renderers.wording import count
from gradtrace.renderers.wording import file as shown

#: reasons named of a finding that stays
_REASONS = 3
#: edits tried for one finding, and findings taken on
_TRIES, _FINDINGS = 40, 40
#: seconds that an edited script may take beyond ten times what it took before
_GRACE = 10.0
#: a run of this many seconds is worth shortening, to no fewer than so many steps
_LONG, _FEWEST_STEPS = 5.0, 10


@dataclass(frozen=True, slots=True)
class Effort:
    """How many runs at once, how many seconds each, and whether the files are changed in the end."""

    jobs: int = 2
    seconds: float | None = None
    write: bool = False


class Search:
    """The fixes so far, and the run that has them all: what comes next starts from there."""

    def __init__(self, script: Script, effort: Effort) -> None:
        self._script = script
        self._effort = effort
        self._seconds = effort.seconds
        self._before: dict[str, str] = {}
        self._now: dict[str, str] = {}
        self._fixes: list[Fix] = []
        self._unfixed: list[Unfixed] = []
        self._interrupted = False
        self.outcome = self._first()

    def _first(self) -> Outcome:
        """The script as it is, twice: what differs from run to run proves nothing."""
        first, second = run_all(self._script, [Trial()] * 2, self._effort.jobs, self._seconds)
        if first is None or second is None:
            raise GradtraceError(
                "the script gave no result in the time it had; give it --steps N, or more --timeout SECONDS"
            )
        differs = _difference(first, second)
        if differs:
            raise GradtraceError(
                f"two runs of the script, unedited, differ in {differs}, so that no edit can be proven; seed it, or "
                "narrow it down with --steps N"
            )
        if self._seconds is None:
            self._seconds = 10 * max(first.took, second.took) + _GRACE
        for path in first.files:
            if not is_installed(path):
                self._read(path)
        fixed = [path for path in self._before if not os.access(path, os.W_OK)]
        if fixed and self._effort.write:
            raise GradtraceError(f"--write: {shown(fixed[0])} is read-only; make it writable, or leave out --write")
        return first

    def _read(self, path: str) -> None:
        """What cannot be read or parsed, such as a template that another program fills, is not edited."""
        try:
            text = read_text(path)
            SourceFile(path, text)
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
            return
        self._before[path] = self._now[path] = text

    def suggested_steps(self) -> int | None:
        """So many steps show all findings as well, where the whole script takes long."""
        enough = max(_FEWEST_STEPS, 2 * self.outcome.found_by)
        if self._script.steps is not None or self.outcome.took < _LONG or self.outcome.steps <= 2 * enough:
            return None
        return enough

    def run(self) -> None:
        """Ctrl-C ends it; what holds so far remains."""
        try:
            self._run()
        except KeyboardInterrupt:
            self._interrupted = True

    def report(self, written: bool = False) -> FixReport:
        patch = Patch(self._before, self._now)
        return FixReport(tuple(self._fixes), tuple(self._unfixed), patch, written, self._interrupted)

    def _run(self) -> None:
        taken_on: set[tuple[str, str]] = set()
        while len(taken_on) < _FINDINGS:
            waiting = [one for one in self._findings() if (one.rule, one.message) not in taken_on]
            if not waiting:
                return
            finding = waiting[0]
            taken_on.add((finding.rule, finding.message))
            self._take_on(finding)

    def _findings(self) -> list[Finding]:
        return [finding for finding in self.outcome.findings if finding.level > Level.NOTE]

    def _take_on(self, finding: Finding) -> None:
        site = finding.site
        if site.path not in self._now:
            why = "is installed" if is_installed(site.path) else "is no Python file that can be read and parsed"
            self._unfixed.append(Unfixed(finding, 0, (f"{shown(site.path)} {why}, and is not edited",)))
            return
        files = {path: SourceFile(path, text) for path, text in self._now.items()}
        found = candidates(finding, files)[:_TRIES]
        # what changes least first; among equals the likeliest
        found.sort(key=lambda one: size(self._now[one.path], one.text))
        if found:
            streams.announce(f"trying {count(len(found), 'edit')} for {finding.rule} at {shown(site.path)}:{site.line}")
        reasons: list[str] = []
        holding = self._holding(finding, found, reasons)
        if holding is None:
            self._unfixed.append(Unfixed(finding, len(found), tuple(reasons[:_REASONS])))
            return
        candidate, outcome = holding
        before = self._now[candidate.path]
        self._now[candidate.path] = candidate.text
        line = proof(outcome, finding)
        self._fixes.append(Fix(finding, candidate.title, line, candidate.path, before, candidate.text))
        self.outcome = outcome

    def _holding(
        self, finding: Finding, found: Sequence[Candidate], reasons: list[str]
    ) -> tuple[Candidate, Outcome] | None:
        """Of the edits that hold the one that changes least: in lines, then in what the first step uses, then the
        likeliest. Larger ones are not tried then. Adds to `reasons` what is against those that do not hold."""
        changed = {path: text for path, text in self._now.items() if text != self._before[path]}
        best: tuple[Candidate, Outcome] | None = None
        for group in _by_size(found, self._now):
            for start in range(0, len(group), self._effort.jobs):
                batch = group[start : start + self._effort.jobs]
                jobs = [Trial({**changed, one.path: one.text}) for one in batch]
                outcomes = run_all(self._script, jobs, self._effort.jobs, self._seconds)
                for candidate, outcome in zip(batch, outcomes, strict=True):
                    against = objection(self.outcome, outcome, finding)
                    if against:
                        reasons.append(f"{candidate.title}: {against}")
                    elif outcome is not None and (
                        best is None or self._unlikeness(outcome) < self._unlikeness(best[1])
                    ):
                        best = candidate, outcome
                if best is not None and not self._unlikeness(best[1]):
                    return best
            if best is not None:
                return best
        return None

    def _unlikeness(self, outcome: Outcome) -> int:
        return unlikeness(self.outcome, outcome)

    def write(self) -> None:
        """Puts the new texts into the files. Raises `GradtraceError` where one is no longer what was run."""
        patch = Patch(self._before, self._now)
        for path in patch.changed:
            if read_text(path) != self._before[path]:
                raise GradtraceError(f"{shown(path)} has changed since it was run; nothing was written, run fix again")
        for path in patch.changed:
            write_text(path, self._now[path])


def _by_size(found: Sequence[Candidate], texts: dict[str, str]) -> list[list[Candidate]]:
    groups: dict[int, list[Candidate]] = {}
    for one in found:
        groups.setdefault(size(texts[one.path], one.text), []).append(one)
    return list(groups.values())


def _difference(first: Outcome, second: Outcome) -> str:
    """What must be the same in each run for a comparison to mean anything, and is not; empty where all is."""
    runs = first, second
    kinds: dict[str, list[object]] = {
        "what they find": [sorted((one.rule, *one.site.place) for one in run.findings) for run in runs],
        "how they end": [(run.ended.how, run.ended.status) for run in runs],
        "their number of optimizer steps": [run.steps for run in runs],
        "which parameters train": [run.moving for run in runs],
    }
    return next((kind for kind, (one, other) in kinds.items() if one != other), "")
