"""What every test needs, and a fixture that runs the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import messages
import pytest

from gradtrace import cli
from tests.jobs import Jobs

ROOT = Path(__file__).parents[1]
#: scripts that the tests of rules check
collect_ignore = ["cases"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "OMP_NUM_THREADS": "1"}

# a shell that starts the tests in the background has them, and what they start, ignore Ctrl-C: its tests would wait for ever
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


#: topics and test files of which -k left something out
LEFT_OUT = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regold", action="store_true", help="Write the golden texts again, to be read by a person.")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[messages.RECORDED] = messages.Recorded()
    config.stash[LEFT_OUT] = set()


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    for item in items:
        item.config.stash[LEFT_OUT].add(messages.scope(item.nodeid))


def pytest_collection_finish(session: pytest.Session) -> None:
    rules = [item.nodeid for item in session.items if "tests/rules/" in item.nodeid]
    parts = session.config.stash[LEFT_OUT] & set(map(messages.scope, rules))
    if session.config.getoption("regold") and parts:
        raise pytest.UsageError(
            f"--regold with a part of {', '.join(sorted(parts))}: the texts of the other scripts would be lost; "
            "let -k name whole topics"
        )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of xdist hands over what it recorded."""
    entries = getattr(node, "workeroutput", {}).get("messages", [])
    node.config.stash[messages.RECORDED].entries += [messages.Entry(*entry) for entry in entries]


def pytest_sessionfinish(session: pytest.Session) -> None:
    entries = session.config.stash[messages.RECORDED].entries
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["messages"] = [(entry.rule, entry.test, entry.body) for entry in entries]
    elif session.config.getoption("regold"):
        messages.write(entries)


@dataclass
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


@dataclass
class Runner:
    """Runs the command line in a directory of its own."""

    directory: Path
    capture: pytest.CaptureFixture[str]
    patch: pytest.MonkeyPatch
    environment: dict[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))

    def write(self, source: str, name: str = "train.py") -> str:
        (self.directory / name).write_text(textwrap.dedent(source))
        return name

    def here(self, *arguments: str) -> Done:
        """In this process, which has torch already. What takes stdout away for good cannot run here."""
        self.capture.readouterr()
        self.patch.setattr(sys, "argv", ["gradtrace", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Done(int(ended.value.code or 0), *self.capture.readouterr())

    def alone(self, *arguments: str, **options: Any) -> Done:
        """In a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "gradtrace", *arguments],
            **{"capture_output": True, "text": True, "env": self.environment, "cwd": self.directory, **options},
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def shell(self, line: str) -> Done:
        """Through a shell: `gradtrace` in the line stands for the command."""
        line = re.sub(r"(?<![\w./-])gradtrace(?![\w./-])", f"{sys.executable} -m gradtrace", line)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.directory,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def document(self, *arguments: str) -> Any:
        """What `check` writes as JSON, with its exit code as `status of the process`."""
        done = self.here("check", "-o", "report.json", *arguments)
        return {**json.loads((self.directory / "report.json").read_text()), "status of the process": done.status}


@pytest.fixture
def gradtrace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Runner]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    yield Runner(tmp_path, capfd, monkeypatch)
    for name, module in [*sys.modules.items()]:
        if str(tmp_path) in f"{vars(module).get('__file__')} {vars(module).get('__path__')}":  # a namespace has no file
            del sys.modules[name]


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """Starts jobs of several ranks."""
    started = Jobs(tmp_path_factory.mktemp("jobs"))
    yield started
    started.close()
