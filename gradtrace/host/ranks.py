"""Processes that torchrun starts side by side: the first one on a machine reports what all of them there found."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gradtrace.model.finding import Finding

#: seconds that the first one waits for the others, which end about when it does; torchrun kills after 30
_PATIENCE = 10.0
_PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Rank:
    """This process among those of one machine."""

    number: int
    size: int
    #: a directory that only they use
    _meeting: Path

    @property
    def first(self) -> bool:
        return self.number == 0

    def send(self, findings: Sequence[Finding]) -> None:
        """Leaves the findings where the first one looks for them."""
        self._meeting.mkdir(mode=0o700, exist_ok=True)
        place = self._meeting / str(self.number)
        place.with_suffix(".part").write_bytes(pickle.dumps(tuple(findings)))
        place.with_suffix(".part").rename(place)

    def receive(self) -> Mapping[int, Sequence[Finding]]:
        """What the others found, by rank; of one that has not come to its end in time, nothing."""
        found: dict[int, Sequence[Finding]] = {}
        self._meeting.mkdir(mode=0o700, exist_ok=True)
        if self._meeting.stat().st_uid != os.getuid():
            return found
        until = time.monotonic() + _PATIENCE
        while len(found) < self.size - 1 and time.monotonic() < until:
            for number in set(range(1, self.size)) - set(found):
                place = self._meeting / str(number)
                if place.exists():
                    found[number] = pickle.loads(place.read_bytes())
                    place.unlink()
            time.sleep(_PAUSE)
        with suppress(OSError):
            self._meeting.rmdir()
        return found


def here() -> Rank | None:
    """This process among the ranks of this machine, where torchrun has started several."""
    number, size = (os.environ.get(name, "") for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    job, restarts = (os.environ.get(f"TORCHELASTIC_{name}", "") for name in ("RUN_ID", "RESTART_COUNT"))
    # other launchers set some of these too, and then the ranks may have no common parent to meet by
    if not (job and number.isdecimal() and size.isdecimal() and int(size) > 1):
        return None
    name = f"gradtrace-{job}-{restarts}-{os.getppid()}".replace(os.sep, "_")
    return Rank(int(number), int(size), Path(tempfile.gettempdir()) / name)
