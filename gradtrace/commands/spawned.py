"""check, in a process that the script has started as a rank: it is watched, and what was found goes to the one that
reports."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradtrace.host import heap
from gradtrace.host.limits import Limits
from gradtrace.host.ranks import Colleagues
from gradtrace.host.script import StopRun, Terminated
from gradtrace.model.events import Event
from gradtrace.model.finding import Ended
from gradtrace.model.ranks import Account, RankFact, is_rank_fact
from gradtrace.report.accounts import packed
from gradtrace.rules import Judge

if TYPE_CHECKING:
    from gradtrace.watcher.watch import Watch


def account(rank: int, watch: Watch, judge: Judge, facts: Sequence[RankFact], ended: Ended) -> Account:
    """What this process hands to the one that reports."""
    last_call, last_step = watch.last_places
    return Account(
        rank,
        os.uname().nodename if hasattr(os, "uname") else "",
        ended,
        watch.backward_calls,
        watch.optimizer_steps,
        tuple(judge.findings),
        tuple(facts),
        watch.remarks + watch.unseen + judge.remarks,
        last_call,
        last_step,
        judge.failed,
    )


class SpawnedRank:
    """Runs in the place of the function that `torch.multiprocessing.spawn` was given; it is sent to the new process."""

    def __init__(
        self,
        roots: Sequence[str],
        steps: int | None,
        gradcheck: bool,
        function: Callable[..., Any],
        starter: Colleagues,
    ) -> None:
        self._roots, self._steps, self._gradcheck = tuple(roots), steps, gradcheck
        self._function = function
        self._size, self._meeting_place = starter.size, starter.meeting_place

    def __call__(self, index: int, *args: Any) -> Any:
        """Runs the function as it would run, and leaves an account of it."""
        with heap.filled():
            from gradtrace.watcher.watch import Watch

        judge, facts = Judge(), list[RankFact]()

        def see(event: Event) -> None:
            judge.see(event)
            if is_rank_fact(event):
                facts.append(event)

        colleagues = Colleagues.of_starter(index, self._size, self._meeting_place)
        watch = Watch(
            see,
            user_roots=self._roots,
            stop_after=self._steps,
            rules=True,
            gradcheck=self._gradcheck,
            colleagues=colleagues,
        )
        ended = Ended("killed", 137)
        try:
            with Limits() as limits:
                try:
                    with watch, limits.script_runs():
                        try:
                            result = self._function(index, *args)
                        except BaseException as error:
                            watch.crashed(error)
                            raise
                    ended = Ended("finished")
                    return result
                except BaseException as error:
                    ended = _ended_by(error)
                    raise
                finally:
                    hand_over = packed(account(index, watch, judge, facts, ended))
                    colleagues.settle(hand_over, ended.how == "finished", hurried=True)
        except StopRun:
            sys.exit(0)
        except Terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)


def _ended_by(error: BaseException) -> Ended:
    if isinstance(error, StopRun):
        return Ended("stopped")
    if isinstance(error, Terminated):
        return Ended("killed", 128 + signal.SIGTERM)
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
        return Ended("exit", status & 0xFF)
    return Ended("exception", 1, f"{type(error).__name__}: {error}".strip())
