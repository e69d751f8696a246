"""`check(script)` runs a script under the real watch and the real rules, without a new import of torch for each.

What is found is recorded for the golden texts of the messages (tests/messages.py), under the test that checks the script.
The script marks each line that must be found with the rule that must find it: `loss.backward()  # <- stale-grad`.
A script is a file of tests/cases, or a text that begins as if it had said `import torch`, `from torch import nn` and so on.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import casefiles
import messages
import pytest
from casefiles import Mark

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


@dataclass(frozen=True)
class Checked:
    """What was found in a script, and what its marks ask for."""

    script: str
    findings: list[dict[str, Any]]
    exit_code: int
    #: the error that ended the script, and whether a finding is about it
    exception: str | None
    explained: bool
    #: the script with its findings, for a failing test
    text: str

    @property
    def found(self) -> set[tuple[str, int]]:
        """Pairs of rule and line."""
        return {(finding["rule"], finding["line"]) for finding in self.findings}

    @property
    def marked(self) -> set[tuple[str, int]]:
        """The pairs that must be found."""
        return {(rule, line) for rule, line, _ in casefiles.demanded(self.script)}

    def by(self, rule: str) -> set[tuple[str, int]]:
        """What this rule found: others may have something to say of a bad script as well."""
        return {pair for pair in self.found if pair[0] == rule}

    @property
    def alarms(self) -> list[dict[str, Any]]:
        """What any rule found that is more than a note."""
        return [finding for finding in self.findings if finding["level"] != "note"]

    @property
    def missing(self) -> set[Mark]:
        """What a mark asks for, and no rule found."""
        return casefiles.demanded(self.script) - self._all()

    @property
    def unmarked(self) -> set[Mark]:
        """What a rule found, and no mark asks for or allows."""
        return self._all() - casefiles.demanded(self.script) - casefiles.allowed(self.script)

    def _all(self) -> set[Mark]:
        return {(finding["rule"], finding["line"], finding["level"] == "note") for finding in self.findings}


class Checker:
    """A process that checks one script after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._texts = 0
        program = Path(__file__).with_name("checker.py")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, program], stdin=pipe, stdout=pipe, text=True)

    def check(self, script: str | Path, gradcheck: bool = False) -> Checked:
        path = script if isinstance(script, Path) else self._file(script)
        text = path.read_text(encoding="utf-8")
        report = self._ask(path, gradcheck)
        assert not report["remarks"], report["remarks"]
        exception, findings = report["exception"], report["findings"]
        assert exception is None or report["explained"], f"{exception}\n{text}"
        story = f"{path}\n{text}\n{describe(findings)}\n{exception}"
        return Checked(text, findings, report["exit_code"], exception, report["explained"], story)

    def _file(self, script: str) -> Path:
        self._texts += 1  # what is known of a file is remembered by its path
        path = self._folder / f"script{self._texts}.py"
        path.write_text(PREAMBLE + dedent(script).lstrip("\n"), encoding="utf-8")
        return path

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

    def check(script: str | Path, size: int = 2) -> Checked:
        if isinstance(script, Path):
            script = script.read_text(encoding="utf-8")
        text = jobs_preamble.PREAMBLE + RANKED + dedent(script).lstrip("\n")
        done = jobs.run(text, size=size)
        assert (done.folder / "report.json").exists(), done.outputs
        report = done.report
        findings, exit_code = report["findings"], report["exit_code"]
        for finding in findings:
            finding["related"] = [[one["line"], one["message"]] for one in finding["related"]]
        story = "\n".join([text, describe(findings), *report["remarks"], *done.outputs])
        return Checked(text, findings, exit_code, None, exit_code != 3, story)

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
def check(checker: Checker, said: Said) -> Callable[..., Checked]:
    def check(script: str | Path, gradcheck: bool = False) -> Checked:
        checked = checker.check(script, gradcheck)
        said.append((checked.script, checked.findings))
        return checked

    return check


@pytest.fixture
def said() -> Said:
    """What `check` checks for one test."""
    return []


@pytest.fixture(autouse=True)
def golden(request: pytest.FixtureRequest, said: Said) -> Iterator[None]:
    """Compares the messages that a test gets with the golden texts."""
    yield
    test = request.node.nodeid.rpartition("tests/rules/")[2]
    recorded = request.config.stash[messages.RECORDED]
    made: list[messages.Entry] = []
    for script, findings in said:
        made += recorded.add(test, script, findings)
    complaint = "" if request.config.getoption("regold") else messages.complaint(test, made)
    assert not complaint, complaint
