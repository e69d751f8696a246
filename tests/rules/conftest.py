"""Two ways to check many short scripts at the price of one import of torch; `check_all` is for scripts without marks.

The other: `check(text)` runs it under the real watch and the real rules.

What both find is recorded for the golden texts of the messages (tests/messages.py), under the test that checks the script.
The text marks each line that must be found with the rule that must find it: `loss.backward()  # <- stale-grad`.
Each script begins as if it had said `import torch`, `from torch import nn` and so on.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import messages
import pytest

from tests import jobs as jobs_preamble
from tests.jobs import Jobs

PREAMBLE = """\
import math, random
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
random.seed(0)
"""
#: scripts and what was found in each
Said = list[tuple[str, list[dict[str, Any]]]]
DRIVER = Path(__file__).parent.parent / "fixtures" / "batch.py"
MARK = re.compile(r"# <- ([a-z-]+)")


@dataclass(frozen=True)
class Checked:
    """What was found in a script, and what its marks ask for: pairs of rule and line."""

    marked: set[tuple[str, int]]
    found: set[tuple[str, int]]
    findings: list[dict[str, Any]]
    exception: str | None
    explained: bool
    script: str
    #: the script with its findings, for a failing test
    text: str

    def by(self, rule: str) -> set[tuple[str, int]]:
        """What this rule found: others may have something to say of a bad script as well."""
        return {pair for pair in self.found if pair[0] == rule}

    @property
    def alarms(self) -> list[dict[str, Any]]:
        """What any rule found that is more than a note."""
        return [finding for finding in self.findings if finding["level"] != "note"]


class Checker:
    """A process that checks one script after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scripts = 0
        program = Path(__file__).with_name("checker.py")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, program], stdin=pipe, stdout=pipe, text=True)

    def check(self, script: str, gradcheck: bool = False) -> Checked:
        text = PREAMBLE + dedent(script).lstrip("\n")
        self._scripts += 1  # what is known of a file is remembered by its path
        path = self._folder / f"script{self._scripts}.py"
        path.write_text(text, encoding="utf-8")
        report = self._ask(path, gradcheck)
        assert not report["remarks"], report["remarks"]
        assert report["exception"] is None or report["explained"], f"{report['exception']}\n{text}"
        marked = {(mark, line) for line, row in enumerate(text.splitlines(), 1) for mark in MARK.findall(row)}
        found = {(finding["rule"], finding["line"]) for finding in report["findings"]}
        story = f"{text}\n{describe(report['findings'])}\n{report['exception']}"
        return Checked(marked, found, report["findings"], report["exception"], report["explained"], text, story)

    def _ask(self, path: Path, gradcheck: bool) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path}\tgradcheck\n" if gradcheck else f"{path}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the checking process died on\n{path.read_text(encoding='utf-8')}"
        report: dict[str, Any] = json.loads(answer)
        return report

    def close(self) -> None:
        self._process.communicate()


#: what scripts of several ranks find beyond the preamble of jobs
RANKED = """\
from torch.distributed.algorithms.join import Join
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
def batches(number=6, size=8, seed=None):
    made = torch.Generator().manual_seed(rank if seed is None else seed)
    return [(torch.randn(size, 8, generator=made), torch.randn(size, 1, generator=made)) for _ in range(number)]
data = batches()
loss_fn = nn.MSELoss()
"""


@pytest.fixture
def check_ranks(jobs: Jobs) -> Callable[..., Checked]:
    """Checks a script as a job of two ranks, or of `size`."""

    def check(script: str, size: int = 2) -> Checked:
        text = jobs_preamble.PREAMBLE + RANKED + dedent(script).lstrip("\n")
        done = jobs.run(text, size=size)
        assert (done.folder / "report.json").exists(), done.outputs
        report = done.report
        marked = {(mark, line) for line, row in enumerate(text.splitlines(), 1) for mark in MARK.findall(row)}
        found = {(finding["rule"], finding["line"]) for finding in report["findings"]}
        for finding in report["findings"]:
            finding["related"] = [[one["line"], one["message"]] for one in finding["related"]]
        story = "\n".join([text, describe(report["findings"]), *report["remarks"], *done.outputs])
        return Checked(marked, found, report["findings"], None, report["exit_code"] != 3, text, story)

    return check


def describe(findings: list[dict[str, Any]]) -> str:
    rows = []
    for one in findings:
        rows.append(f"line {one['line']}: {one['level']} {one['rule']}: {one['message']}\n    help: {one['help']}")
        rows += [indent(f"line {line}: {message}", "    ") for line, message in one["related"]]
    return "\n".join(rows) or "nothing found"


@pytest.fixture(scope="session")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    checker = Checker(tmp_path_factory.mktemp("scripts"))
    yield checker
    checker.close()


@pytest.fixture
def check(checker: Checker, said: dict[str, Said]) -> Callable[..., Checked]:
    def check(script: str, gradcheck: bool = False) -> Checked:
        checked = checker.check(script, gradcheck)
        said.setdefault("", []).append((checked.script, checked.findings))
        return checked

    return check


@pytest.fixture(scope="module")
def said_by_name() -> dict[str, Said]:
    """The scripts that `check_all` checks for this module, with their findings."""
    return {}


@pytest.fixture
def said(said_by_name: dict[str, Said]) -> Iterator[dict[str, Said]]:
    """The same, for one test, and what `check` checks for it without a name."""
    yield said_by_name
    said_by_name.pop("", None)


@pytest.fixture(autouse=True)
def golden(request: pytest.FixtureRequest, said: dict[str, Said]) -> Iterator[None]:
    """Compares the messages that a test gets with the golden texts."""
    yield
    case = getattr(request.node, "callspec", None)
    test = request.node.nodeid.rpartition("rules/")[2]
    recorded = request.config.stash[messages.RECORDED]
    made: list[messages.Entry] = []
    for script, findings in (*said.get("", ()), *(said.get(case.id, ()) if case else ())):
        made += recorded.add(test, script, findings)
    complaint = "" if request.config.getoption("regold") else messages.complaint(test, made)
    assert not complaint, complaint


@pytest.fixture(scope="module")
def check_all(
    tmp_path_factory: pytest.TempPathFactory, said_by_name: dict[str, Said]
) -> Callable[[dict[str, str]], dict[str, Any]]:
    """The reports of scripts, by their names."""

    def check(scripts: dict[str, str]) -> dict[str, Any]:
        directory = tmp_path_factory.mktemp("scripts")
        for name, text in scripts.items():
            (directory / f"{name}.py").write_text(dedent(text), encoding="utf-8")
        done = subprocess.run([sys.executable, str(DRIVER), str(directory)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        reports = {name: json.loads((directory / f"{name}.json").read_text(encoding="utf-8")) for name in scripts}
        for name, report in reports.items():
            said_by_name[name] = [(dedent(scripts[name]), report["findings"])]
        return reports

    return check
