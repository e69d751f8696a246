"""A run that ends from outside still gives its report, and ranks side by side give one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOOP = """\
import os, signal, sys
import torch
weight = torch.ones(2, requires_grad=True)
def train(steps):
    for step in range(steps):
        weight.square().sum().backward()
        with torch.no_grad():
            weight.sub_(0.1 * weight.grad)
"""
STALE_AT = 6
FOREVER = "try:\n    train(10**9)\nfinally:\n    print('left in good order')\n"
HANDLED = "signal.signal(signal.SIGTERM, lambda *_: print('mine'))\ntrain(3)\n"
RANKED = "if os.environ['LOCAL_RANK'] == '1':\n    train(3)\nelse:\n    train(1)\n"


def start(*arguments: str | Path, rank: int | None = None) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    if rank is not None:
        environment |= {"LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "of-a-test"}
    command = [sys.executable, "-m", "gradtrace", "check", *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


@pytest.mark.parametrize(
    ("rest", "options", "status", "ended"),
    [
        (FOREVER, ("--timeout", "2"), 1, "the script was stopped early"),
        (HANDLED + FOREVER, ("--timeout", "2"), 1, "the script was stopped early"),
        (
            "train(3)\nos.kill(os.getpid(), signal.SIGTERM)\n" + FOREVER,
            (),
            3,
            "killed",
        ),
        (HANDLED + "os.kill(os.getpid(), signal.SIGTERM)\n", (), 1, "the script finished"),
    ],
    ids=["time", "time where SIGTERM is the script's", "SIGTERM", "SIGTERM that the script handles"],
)
def test_a_report_is_given(rest: str, options: Sequence[str], status: int, ended: str, script: Path) -> None:
    script.write_text(LOOP + rest)
    process = start(*options, script)
    out, err = process.communicate(timeout=120)
    assert "error[stale-grad]" in out, err
    assert f"train.py:{STALE_AT}:" in out
    assert ended in out
    assert process.returncode == status
    assert ("left in good order" in out) is ("--timeout" in options)
    assert ("mine" in out) is (rest == HANDLED + "os.kill(os.getpid(), signal.SIGTERM)\n")


def test_the_first_rank_reports_for_all(script: Path) -> None:
    script.write_text(LOOP + RANKED)
    processes = [start(script, rank=rank) for rank in (0, 1)]
    (out, err), (other, _) = (process.communicate(timeout=120) for process in processes)
    assert "nothing cleared it in between (on rank 1)" in out, err
    assert f"train.py:{STALE_AT}:" in out
    assert other == ""
    assert [process.returncode for process in processes] == [1, 0]
