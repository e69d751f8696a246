"""The processes of one job: each one leaves an account of its run, and one of them reads all and writes the report.

Rank 0 writes it, unless it is gone: then the first of the others that notices does. Nobody waits for long, so that a rank
that was killed or hangs delays the report, and does not prevent it.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from gradtrace.host.boards import Board, BoardLostError, DirectoryBoard, named_board
from gradtrace.model.ranks import LastSeen

#: seconds without any news from the others after which the writer gives up on them, and seconds at most, also for a run
#: that a signal ended (torchrun kills 30 seconds after that)
_PATIENCE, _LONGEST, _HURRIED = 10.0, 60.0, 15.0
#: seconds without any news where the writer itself has failed
_IMPATIENCE = 4.0
#: seconds that another rank stays to see whether its account is read
_STAYS = 5.0
#: seconds at most until those that stayed have left
_LEAVING = 1.0
_PAUSE = 0.02
#: seconds between two signs of life, after the first few
_EVERY, _FIRST = 0.1, 4
#: further writers, should one die while it writes
_WRITERS = 8


@dataclass(frozen=True, slots=True)
class RankEnvironment:
    """What the launcher says of this process. `job` is a name that all ranks on this machine have in common, and these are
    `beside` of the job's, as far as that is known."""

    rank: int
    size: int
    job: str = ""
    beside: range = range(0)


def environment() -> RankEnvironment | None:
    """None where no launcher started several processes."""
    known = os.environ
    number, size = known.get("RANK", ""), known.get("WORLD_SIZE", "")
    if not number and known.get("TORCHELASTIC_RUN_ID"):
        number, size = known.get("LOCAL_RANK", ""), known.get("LOCAL_WORLD_SIZE", "")
    if not (number.isdecimal() and size.isdecimal() and int(size) > 1 and int(number) < int(size)):
        return None
    return RankEnvironment(int(number), int(size), _job_name(), _beside(int(number), int(size)))


def _beside(rank: int, size: int) -> range:
    number, local = (os.environ.get(name, "") for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    if not (number.isdecimal() and local.isdecimal() and int(number) < int(local)):
        return range(size)
    return range(rank - int(number), rank - int(number) + int(local))


def _job_name() -> str:
    """From what all ranks of a machine have: the launcher's name for the job, or the address at which they meet."""
    known = os.environ
    job = known.get("TORCHELASTIC_RUN_ID", "")
    if not job and known.get("MASTER_PORT"):
        job = f"{known.get('MASTER_ADDR', '')}-{known['MASTER_PORT']}"
    return f"{job}-{known.get('TORCHELASTIC_RESTART_COUNT', '')}-{os.getppid()}" if job else ""


@dataclass(slots=True)
class Gathered:
    """What the writer of the report got: accounts by rank, and the last sign of life of those that are missing."""

    accounts: dict[int, bytes] = field(default_factory=dict)
    missing: dict[int, LastSeen | None] = field(default_factory=dict)
    #: what these had found so far, when they last found something
    drafts: dict[int, bytes] = field(default_factory=dict)


class Colleagues:
    """The other ranks, as this process reaches them: through the store of the job, or a directory of this machine."""

    def __init__(self, rank: int, size: int, local: DirectoryBoard | None, beside: range = range(0)) -> None:
        self.rank, self.size = rank, size
        #: the ranks that can be reached: those of this machine, until the job has a store
        self._reach = beside or range(size)
        #: this process only collects, for ranks that it has started; this one was started by such a process
        self.collects = False
        self.collected_elsewhere = False
        self._local = local
        self._store: Board | None = None
        #: the process that keeps the store is rank 0
        self._store_in_rank_0 = False
        self._seen = LastSeen(rank, socket.gethostname(), os.getpid(), time.time())
        self._due, self._beats = 0.0, 0
        self._writer = 0
        if rank >= 0:
            self.beat("starting")

    @classmethod
    def here(cls) -> Colleagues | None:
        """Those that a launcher has started beside this process."""
        known = environment()
        if known is None:
            return None
        return cls(known.rank, known.size, named_board(known.job) if known.job else None, known.beside)

    @classmethod
    def started_here(cls, size: int) -> Colleagues:
        """For a process that starts so many ranks itself, and reports for them."""
        board = DirectoryBoard(Path(tempfile.mkdtemp(prefix="gradtrace-")))
        found = cls(-1, size, board)
        found.collects = True
        return found

    @classmethod
    def of_starter(cls, rank: int, size: int, directory: str) -> Colleagues:
        """For such a rank; `directory` is the `meeting_place` of the process that started it."""
        found = cls(rank, size, DirectoryBoard(Path(directory)))
        found.collected_elsewhere = True
        return found

    @property
    def meeting_place(self) -> str:
        """The directory on this machine."""
        return str(self._local.path) if self._local is not None else ""

    @property
    def leader(self) -> int:
        """The rank that writes the report, unless it is gone: of those in reach the first."""
        return self._reach[0] if self.connected else self.rank

    @property
    def connected(self) -> bool:
        """Whether there is any way to reach them."""
        return self._store is not None or self._local is not None

    def meet(self, store: Board, rank: int, size: int, in_rank_0: bool) -> None:
        """The job has a store: from here on it is the way to reach them."""
        self._store, self._store_in_rank_0 = store, in_rank_0
        self.rank, self.size, self._reach = rank, size, range(size)
        self._seen = replace(self._seen, rank=rank)
        self._beats = 0
        self.beat("joining")

    def leave(self) -> None:
        """The store is needed for something else."""
        self._store = None

    def beat(self, doing: str, calls: int = 0, steps: int = 0, path: str = "", line: int = 0) -> None:
        """A sign of life, if one is due."""
        now = time.monotonic()
        if now < self._due and self._beats >= _FIRST:
            return
        self._due, self._beats = now + _EVERY, self._beats + 1
        self._seen = replace(self._seen, at=time.time(), doing=doing, calls=calls, steps=steps, path=path, line=line)
        self._put(f"seen-{self.rank}", json.dumps(asdict(self._seen)).encode())

    def draft(self, account: bytes) -> None:
        """What this rank would hand over by now, should it be killed."""
        self._put(f"draft-{self.rank}", account)

    def settle(self, account: bytes, orderly: bool, hurried: bool) -> Gathered | None:
        """Hands over the account of this rank; what all ranks handed over if this one is to write the report, else None.

        `orderly`: the script came to its own end; `hurried`: a signal ended it.
        """
        if self.collects:
            return self.gather(_HURRIED if hurried else _LONGEST)
        self._put(f"account-{self.rank}", account)
        if self.collected_elsewhere:
            return None
        leads = self.rank == self.leader
        if not (self._claim() if leads else self._must_write(orderly)):
            self._put(f"left-{self.rank}", b"1")
            return None
        self._put(f"writer-{self._writer}-seen", json.dumps(asdict(replace(self._seen, at=time.time()))).encode())
        # the others may wait for this rank in a collective, and will as long as it lives
        return self.gather(_HURRIED if hurried else _LONGEST, _PATIENCE if orderly else _IMPATIENCE)

    def reported(self, accounts: Iterable[int]) -> None:
        """The report is written, from the accounts of these ranks: nobody needs to stay. Those that do are waited for, since
        what tells them so may end with this process."""
        self._put("reported", b"1")
        end = time.monotonic() + _LEAVING
        staying = set() if self.collects else set(accounts)
        while staying and time.monotonic() < end:
            staying = {rank for rank in staying if self._get(f"left-{rank}") is None}
            time.sleep(_PAUSE)
        if self._local is not None:
            self._local.remove()

    def gather(self, longest: float = _LONGEST, patience: float = _PATIENCE) -> Gathered:
        """The accounts of the others, waited for as long as there is news, and not for those that are gone."""
        found = Gathered()
        others = set(self._reach) - (set() if self.collects else {self.rank})
        if not self.connected:
            others = set()
        end, news = time.monotonic() + longest, time.monotonic() + patience
        seen: dict[int, LastSeen | None] = {}
        while True:
            for rank in sorted(others - set(found.accounts)):
                account = self._get(f"account-{rank}")
                sign = self._last_seen(rank) if account is None else None
                if account is not None:
                    found.accounts[rank] = account
                if account is not None or sign != seen.get(rank):
                    news = time.monotonic() + patience
                seen[rank] = sign
            left = others - set(found.accounts)
            waits = [rank for rank in left if is_alive(seen[rank]) is not False]
            if not waits or time.monotonic() > min(news, end):
                break
            time.sleep(_PAUSE)
        # one that ended while the loop looked at others may have left its account just before
        for rank in sorted(left):
            account = self._get(f"account-{rank}")
            if account is not None:
                found.accounts[rank] = account
                continue
            found.missing[rank] = seen[rank]
            draft = self._get(f"draft-{rank}")
            if draft is not None:
                found.drafts[rank] = draft
        return found

    def _must_write(self, orderly: bool) -> bool:
        """Stays for a while: whether the one that should write the report is gone, and this rank is to."""
        end = time.monotonic() + _STAYS
        last = end + _WRITERS * _STAYS
        while self._get("reported") is None:
            if time.monotonic() > last or (self._local is not None and self._local.is_removed):
                return False  # the one that takes the directory away has written its report
            writer = self._present_writer()
            gone = is_alive(writer) is False
            late = time.monotonic() > end
            if late and (orderly or is_alive(writer)):
                return False
            if gone or late:
                self._writer += self._is_claimed()
                if self._writer >= _WRITERS:
                    return False
                if self._claim():
                    return True
                end = max(end, time.monotonic() + _STAYS)
            time.sleep(_PAUSE)
        return False

    def _present_writer(self) -> LastSeen | None:
        """The one that is writing the report, or the one that is to."""
        claimed = self._sign(f"writer-{self._writer}-seen")
        return claimed or (self._last_seen(self.leader) if not self._writer else None)

    def _is_claimed(self) -> bool:
        return self._sign(f"writer-{self._writer}-seen") is not None

    def _claim(self) -> bool:
        for board in self._boards():
            with suppress(BoardLostError):
                return board.claim(f"writer-{self._writer}")
        return self.rank == self.leader

    def _last_seen(self, rank: int) -> LastSeen | None:
        return self._sign(f"seen-{rank}")

    def _sign(self, name: str) -> LastSeen | None:
        signs = []
        for board in self._boards():
            with suppress(BoardLostError, ValueError, TypeError):
                text = board.get(name)
                signs += [LastSeen(**json.loads(text))] if text else []
        return max(signs, key=lambda sign: sign.at, default=None)

    def _get(self, name: str) -> bytes | None:
        for board in self._boards():
            with suppress(BoardLostError):
                found = board.get(name)
                if found is not None:
                    return found
        return None

    def _put(self, name: str, message: bytes) -> None:
        for board in self._boards():
            with suppress(BoardLostError):
                board.put(name, message)

    def _boards(self) -> Iterator[Board]:
        """Those that are in reach. A store that rank 0 kept is not asked once that process is gone."""
        if self._store is not None and self._store_in_rank_0 and self.rank != 0 and self._local is not None:
            with suppress(BoardLostError, ValueError, TypeError):
                text = self._local.get("seen-0")
                if text and is_alive(LastSeen(**json.loads(text))) is False:
                    self._store = None
        if self._store is not None:
            yield self._store
        if self._local is not None:
            yield self._local


def is_alive(seen: LastSeen | None) -> bool | None:
    """Whether a process lives; None where that cannot be known, since it is on another machine or was never seen."""
    if seen is None or seen.host != socket.gethostname():
        return None
    try:
        os.kill(seen.pid, 0)
        with open(f"/proc/{seen.pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except ProcessLookupError:
        return False
    except OSError:
        return os.path.exists(f"/proc/{seen.pid}") or not os.path.isdir("/proc/self")
