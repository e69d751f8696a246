"""A run that ends from outside still gives its report, and ranks side by side give one."""

from __future__ import annotations

import os
import signal
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


STUBBORN = """\
def wait():
    while True:
        try:
            print('ready', flush=True)
            time.sleep(60)
        except:
            print('not me', flush=True)
import time
train(3)
wait()
"""
SLOW_REPORT = """\
train(3)
import atexit, gradtrace.renderers.findings.text as text
draw = text.draw
def slow(*given):
    for _ in range({signals}):
        os.kill(os.getpid(), signal.{name})
    draw(*given)
text.draw = slow
"""


def test_a_second_sigterm_ends_a_script_that_catches_everything(script: Path) -> None:
    script.write_text(LOOP + STUBBORN)
    process = start(script)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "not me\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert "error[stale-grad]" in out
    assert "the script was killed by a signal" in out
    assert process.returncode == 3


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("signals", [1, 2])
def test_signals_wait_until_the_report_is_written(name: str, signals: int, script: Path) -> None:
    script.write_text(LOOP + SLOW_REPORT.format(name=name, signals=signals))
    process = start(script)
    out, err = process.communicate(timeout=120)
    assert "error[stale-grad]" in out
    assert (err, process.returncode) == ("", 1)


def test_a_third_signal_ends_the_report(script: Path) -> None:
    script.write_text(LOOP + SLOW_REPORT.format(name="SIGTERM", signals=3))
    process = start(script)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGTERM


def test_the_script_finds_the_default_handler(script: Path) -> None:
    script.write_text(
        LOOP
        + "before = signal.signal(signal.SIGTERM, lambda *given: print('mine'))\n"
        + "assert before is signal.SIG_DFL, before\n"
        + "os.kill(os.getpid(), signal.SIGTERM)\n"
        + "signal.signal(signal.SIGTERM, before)\n"
        + "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
        + "train(3)\nos.kill(os.getpid(), signal.SIGTERM)\n"
    )
    process = start(script)
    out, err = process.communicate(timeout=120)
    assert out.startswith("mine\n"), err
    assert "error[stale-grad]" in out
    assert process.returncode == 3


AGAIN = """\
if 'AGAIN' not in os.environ:
    os.environ['AGAIN'] = '1'
    os.{call}
print(sys.argv[1:])
train(3)
"""


@pytest.mark.parametrize(
    "call",
    ["execv(sys.executable, [sys.executable, *sys.argv, 'more'])", "execlp('python3', 'python3', *sys.argv, 'more')"],
)
def test_a_script_that_starts_itself_again_is_watched_again(call: str, script: Path) -> None:
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    script.write_text(LOOP + f"os.environ['PATH'] = {path!r}\n" + AGAIN.format(call=call))
    process = start(script, "one")
    out, err = process.communicate(timeout=120)
    assert out.startswith("['one', 'more']\n"), err
    assert out.count("error[stale-grad]") == 1
    assert process.returncode == 1


def test_what_was_seen_is_reported_before_another_program_runs(script: Path) -> None:
    script.write_text(LOOP + "train(3)\nos.execvp('echo', ['echo', 'another'])\n")
    process = start(script)
    out, err = process.communicate(timeout=120)
    assert "error[stale-grad]" in out
    assert out.endswith("another\n")
    assert "which is not watched" in err


def test_a_program_that_is_not_there_is_the_scripts_error(script: Path) -> None:
    script.write_text(LOOP + "try:\n    os.execv('/none', ['none'])\nexcept OSError:\n    print('went on')\ntrain(3)\n")
    process = start(script)
    out, err = process.communicate(timeout=120)
    assert out.startswith("went on\n")
    assert out.count("error[stale-grad]") == 1
    assert (err, process.returncode) == ("", 1)
