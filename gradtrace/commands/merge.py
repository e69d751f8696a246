"""merge: judges the recordings of several ranks as one job, without the script and without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gradtrace import rules
from gradtrace.commands.check import CheckOptions, Outputs, changed_files
from gradtrace.errors import UsageError
from gradtrace.model.events import Backward, Event, Step
from gradtrace.model.finding import Ended, Report
from gradtrace.model.ranks import Account, RankFact, is_rank_fact
from gradtrace.model.site import Stack
from gradtrace.report import config
from gradtrace.report.accounts import judged_together, remarks
from gradtrace.report.recording import RecordedRun, Recording
from gradtrace.report.verdict import Verdict
from gradtrace.rules import Judge
from gradtrace.source import texts
from gradtrace.source.base_directory import relative_to


def merge(files: Sequence[Path], wanted: CheckOptions, color: bool | None) -> int:
    """Reads the recordings, one of each rank, and reports what was found on all of them; returns the exit code.

    Raises `UsageError` where they are not of the ranks of one job, and `DocumentError` where one cannot be read.
    """
    if len(files) < 2:
        raise UsageError("merge takes the recordings of two or more ranks, as in `gradtrace merge a.jsonl b.jsonl`")
    outputs = Outputs(wanted)
    known = frozenset(rule.id for rule in rules.all_rules())
    recordings = _by_rank([Recording(path) for path in files], files)
    first = next(iter(recordings.values())).run
    verdict = Verdict(
        wanted.settings(known).over(config.near(Path(first.directory, first.script), known)),
        wanted.write_baseline,
        first.directory,
    )
    outputs.open(color, wanted.detail)
    replays = [_Replay(rank, recording, verdict.judge()) for rank, recording in recordings.items()]
    files_of_all = {path: text for one in reversed(replays) for path, text in one.recording.files.items()}
    size = max(first.ranks, max(recordings) + 1)
    with texts.replayed(files_of_all), relative_to(first.directory):
        return outputs.write(_joined(replays, size, verdict, files_of_all))


def _by_rank(recordings: Sequence[Recording], files: Sequence[Path]) -> dict[int, Recording]:
    """Recordings that do not say of which rank they are count in the order in which they were named."""
    found: dict[int, Recording] = {}
    for at, (recording, path) in enumerate(zip(recordings, files, strict=True)):
        rank = recording.run.rank if recording.run.ranks else at
        if rank in found:
            raise UsageError(f"{path} is a second recording of rank {rank}; name one of each rank")
        found[rank] = recording
    return dict(sorted(found.items()))


class _Replay:
    """One recording, judged by itself."""

    def __init__(self, rank: int, recording: Recording, judge: Judge) -> None:
        self.recording = recording
        self.judge = judge
        self._calls = self._steps = 0
        self._last_call: Stack = ()
        self._last_step: Stack = ()
        self._facts: list[RankFact] = []
        with texts.replayed(recording.files), relative_to(recording.run.directory):
            for event in recording.events():
                self._see(event)
        run = recording.run
        self.account = Account(
            rank,
            "",
            run.ended,
            self._calls,
            self._steps,
            judge.findings,
            tuple(self._facts),
            run.remarks + judge.remarks,
            self._last_call,
            self._last_step,
            judge.failed,
        )

    def _see(self, event: Event) -> None:
        self.judge.see(event)
        if isinstance(event, Backward):
            self._calls, self._last_call = event.number, event.stack
        elif isinstance(event, Step):
            self._steps, self._last_step = event.number, event.stack
        elif is_rank_fact(event):
            self._facts.append(event)


def _joined(replays: Sequence[_Replay], size: int, verdict: Verdict, files: Mapping[str, Sequence[str]]) -> Report:
    first, accounts = replays[0], [one.account for one in replays]
    missing = dict.fromkeys(sorted(set(range(size)) - {one.rank for one in accounts}))
    ended: Ended | None = judged_together(first.judge, size, accounts[0], accounts[1:], missing)
    run: RecordedRun = first.recording.run
    since = "since the recording; the report shows the recorded text"
    run = replace(
        run,
        ended=ended or run.ended,
        remarks=run.remarks
        + remarks(size, accounts[0].rank, accounts[1:], missing)
        + changed_files(files, run.directory, since),
        files=tuple(dict.fromkeys(path for one in replays for path in one.recording.run.files)),
    )
    calls, steps = max(one.calls for one in accounts), max(one.steps for one in accounts)
    return verdict.report(first.judge, run, calls, steps)
