"""Whatever a process prints, stdout carries the document alone."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gradtrace.errors import OutputError
from gradtrace.host.streams import deliver, flush

if TYPE_CHECKING:
    from tests.conftest import Runner

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONIOENCODING": "latin-1"}
CLAIM = "import atexit, os, subprocess, sys\nfrom gradtrace.host import streams\ndocument = streams.claim_stdout()\n"
DELIVER = "\ndocument.deliver('the document →\\n')"
NOISE = {
    "print": "print('noise')",
    "file descriptor": "os.write(1, b'noise\\n')",
    "original stream": "sys.stdout = sys.__stdout__; print('noise')",
    "child": "subprocess.run(['echo', 'noise'])",
    "exit handler": "atexit.register(print, 'noise')",
    "other stream": "import io; sys.stdout = io.StringIO(); print('lost'); os.write(1, b'noise\\n')",
    "closed stream": "print('noise'); sys.stdout.close()",
    "closed descriptor": "os.write(1, b'noise\\n'); os.close(1)",
}


def start(source: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", source], stdout=stdout, stderr=subprocess.PIPE, env=ENVIRONMENT)


def start_in_shell(source: str, redirection: str) -> subprocess.CompletedProcess[bytes]:
    command = f'"$0" -c "$1" {redirection}'
    return subprocess.run(["sh", "-c", command, sys.executable, source], capture_output=True, env=ENVIRONMENT)


@pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
def test_noise_goes_to_stderr(noise: str) -> None:
    done = start(CLAIM + noise + DELIVER)
    assert done.stdout == "the document →\n".encode()
    assert b"noise" in done.stderr
    assert b"Traceback" not in done.stderr


def test_what_was_printed_before_stays_before() -> None:
    done = start("print('before')\n" + CLAIM + DELIVER)
    assert done.stdout == "before\nthe document →\n".encode()


def test_stdout_remains_the_same_object() -> None:
    facts = "(id(sys.stdout), sys.stdout.encoding, sys.stdout.line_buffering, sys.stdout.fileno())"
    done = start(f"import sys\nbefore = {facts}\n{CLAIM}assert before == {facts}{DELIVER}")
    assert done.stderr == b""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="cannot fork")
def test_a_forked_child_prints_to_stderr() -> None:
    done = start(CLAIM + "if not os.fork(): print('noise'); sys.exit()\nos.wait()" + DELIVER)
    assert (done.stdout, done.stderr) == ("the document →\n".encode(), b"noise\n")


@pytest.mark.parametrize("redirection", ["2>&-", "<&-", "<&- 2>&-"])
def test_other_closed_streams_do_no_harm(redirection: str) -> None:
    noise = (
        "os.write(1, b'noise\\n'); os.write(2, b'noise\\n') if sys.stderr else None; subprocess.run(['echo', 'noise'])"
    )
    done = start_in_shell(CLAIM + noise + DELIVER, redirection)
    assert (done.stdout, done.returncode) == ("the document →\n".encode(), 0)


@pytest.mark.parametrize("redirection", [">&-", "<&- >&- 2>&-"])
def test_a_closed_stdout_takes_nothing(redirection: str) -> None:
    done = start_in_shell(CLAIM + "print('lost')" + DELIVER, redirection)
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_a_reader_that_went_away_is_no_error(size: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = start(f"{CLAIM}document.deliver('x' * {size})", stdout=writing)
    os.close(writing)
    assert (done.stderr, done.returncode) == (b"", 0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
def test_a_full_disk_is_told() -> None:
    with open("/dev/full", "w") as full, pytest.raises(OutputError, match="No space left on device"):
        deliver("document", full)


def test_flushing_passes_over_streams_that_cannot() -> None:
    closed = io.StringIO()
    closed.close()
    flush(None, closed)


REPLACED = """
import os, sys
import torch
loss = torch.ones(2, requires_grad=True).exp().sum()
loss.backward()
os.closerange(3, 256)
mine = [open(f"mine{number}.txt", "w") for number in range(40)]
for file in mine:
    file.write("data\\n")
    file.flush()
loss.backward()
"""


def test_the_report_never_lands_in_a_file_of_the_script(gradtrace: Runner) -> None:
    gradtrace.write(REPLACED)
    done = gradtrace.alone("check", "--record", "run.jsonl", "train.py")
    texts = {path.read_text() for path in gradtrace.directory.glob("mine*.txt")}
    assert texts == {"data\n"}
    assert "error[freed-graph]" in done.out
    assert done.status == 1
    recorded = (gradtrace.directory / "run.jsonl").read_text().splitlines()
    assert '"end"' in recorded[-1]
    assert all(line.startswith("{") for line in recorded)
