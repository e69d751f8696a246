"""Runs scripts as jobs of several ranks, at the price of one import of torch for all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

PROGRAM = Path(__file__).parent / "fixtures" / "ranks.py"
#: what scripts of ranks begin with
PREAMBLE = """\
import contextlib, copy, datetime, os, sys
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
"""


@dataclass(frozen=True)
class JobRun:
    """What became of a job."""

    folder: Path
    #: exit statuses by rank; negative numbers are signals
    statuses: tuple[int, ...]

    @property
    def outputs(self) -> list[str]:
        """What each rank printed."""
        return [(self.folder / f"out{rank}").read_text(encoding="utf-8") for rank in range(len(self.statuses))]

    @property
    def report(self) -> dict[str, Any]:
        """The document that was written for all ranks."""
        found: dict[str, Any] = json.loads((self.folder / "report.json").read_text(encoding="utf-8"))
        return found


class Jobs:
    """A process from which ranks are forked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        pipe = subprocess.PIPE
        root = Path(__file__).parents[1]
        environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        self._process = subprocess.Popen([sys.executable, PROGRAM], stdin=pipe, stdout=pipe, text=True, env=environment)

    def run(
        self,
        script: str,
        *options: str,
        size: int = 2,
        arguments: Sequence[str] = (),
        environment: Mapping[str, object] | None = None,
        bare: bool = False,
        command: str = "check",
    ) -> JobRun:
        """Checks the script on so many ranks, with a report in `report.json`; `bare` runs it without gradtrace, and other
        commands write what they write.
        Variables of `environment` that are None are not set."""
        self._number += 1
        folder = self._folder / f"job{self._number}"
        folder.mkdir()
        path = folder / "train.py"
        path.write_text(dedent(script), encoding="utf-8")
        words = [str(path), *arguments]
        if not bare:
            words = [command, *(["-o", "report.json"] if command == "check" else []), *options, *words]
        job = {"size": size, "arguments": words, "folder": str(folder), "bare": bare}
        answer = self._ask(json.dumps(job | {"environment": dict(environment or {})}))
        return JobRun(folder, tuple(answer["statuses"]))

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that starts ranks has died"
        return json.loads(answer)

    def close(self) -> None:
        self._process.communicate()
