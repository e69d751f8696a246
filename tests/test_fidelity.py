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
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
#: lines of torch's own log, which carry the time
LOG = re.compile(r"^[IWE]\d{4} .*\n", re.MULTILINE)
COMMANDS = ("check", "show --to-end", "dot --to-end")


@dataclass(frozen=True)
class Seen:
    """All that can be seen of a process from outside."""

    stdout: str
    stderr: str
    status: int


def run(*command: str | Path, status: int | None = None) -> Seen:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=ENVIRONMENT)
    return Seen(done.stdout, LOG.sub("", done.stderr), done.returncode if status is None else status)


@cache
def plain(script: str) -> Seen:
    return run(FIXTURES / script)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("script", ["train.py", "guests.py", "warned.py", "raised.py"])
def test_a_script_prints_what_it_prints_under_plain_python(script: str, command: str, tmp_path: Path) -> None:
    if script == "guests.py" and command.startswith("dot"):
        pytest.skip("takes long, and is the same to the script as show")
    result = tmp_path / "result.dot"
    watched = run("-m", "gradtrace", *command.split(), "-o", result, FIXTURES / script)
    bare = plain(script)
    assert watched.stdout == bare.stdout
    assert watched.stderr == bare.stderr
    assert "gradtrace itself failed" not in result.read_text()
