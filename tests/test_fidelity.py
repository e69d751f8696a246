"""A script cannot notice that it is watched: what it prints, and how it ends, is what plain python gives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIXTURES = Path(__file__).parent / "fixtures" / "fidelity"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
#: lines of torch's own log, which carry the time
LOG = re.compile(r"^[IWE]\d{4} .*\n", re.MULTILINE)
#: pictures are taken in the same way for show and dot, which costs time
RUNS = [
    *(("train.py", command) for command in ("check", "show --to-end", "dot --to-end")),
    *(("guests.py", command) for command in ("check", "show --to-end")),
    *(("warned.py", command) for command in ("check", "show --to-end")),
    ("raised.py", "check"),
    *((script, "follow") for script in ("train.py", "guests.py", "raised.py")),
]


@dataclass(frozen=True)
class Seen:
    """All that can be seen of a process from outside."""

    stdout: str
    stderr: str
    status: int


def run(*command: str | Path) -> Seen:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=ENVIRONMENT)
    return Seen(done.stdout, LOG.sub("", done.stderr), done.returncode)


@cache
def plain(script: str) -> Seen:
    return run(FIXTURES / script)


@pytest.mark.parametrize(("script", "command"), RUNS)
def test_a_script_prints_what_it_prints_under_plain_python(script: str, command: str, tmp_path: Path) -> None:
    result = tmp_path / ("result.dot" if command.startswith("dot") else "result.txt")
    watched = run("-m", "gradtrace", *command.split(), "-o", result, FIXTURES / script)
    bare = plain(script)
    assert watched.stdout == bare.stdout
    assert watched.stderr == bare.stderr
    assert (watched.status == 3) is (bare.status != 0)
    assert "internal error" not in result.read_text()


def test_compiled_training_compiles_the_same_graphs_and_is_free_of_faults(tmp_path: Path) -> None:
    result = tmp_path / "report.txt"
    watched = run("-m", "gradtrace", "check", "-o", result, FIXTURES / "compiled.py")
    bare = plain("compiled.py")
    assert watched.stdout == bare.stdout
    assert watched.stderr == bare.stderr
    assert watched.status == 0, result.read_text()
    assert "14 backward calls, 14 optimizer steps" in result.read_text()
