"""Which rules judge, how bad their findings are, and when check fails: on the command line and in pyproject.toml."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gradtrace.errors import GradtraceError
from gradtrace.model.finding import Level
from gradtrace.report import config
from gradtrace.report.config import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conftest import Runner

#: stale-grad is an error, unneeded-retain a warning
BOTH = """
import torch
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(4):
    loss = weight.square().sum()
    loss.backward(retain_graph=True)
    optimizer.step()
"""
STALE, RETAIN = "error[stale-grad]", "warning[unneeded-retain]"
KNOWN = {"stale-grad", "unneeded-retain", "freed-graph"}


def found(out: str) -> set[str]:
    return {line.partition(":")[0] for line in out.splitlines() if line.split("[")[0] in map(str, Level)}


@pytest.mark.parametrize(
    ("options", "expected", "status"),
    [
        ((), {STALE, RETAIN}, 1),
        (("--select", "stale-grad"), {STALE}, 1),
        (("--select", "stale-grad,unneeded-retain"), {STALE, RETAIN}, 1),
        (("--select", "stale-grad", "--select", "unneeded-retain"), {STALE, RETAIN}, 1),
        (("--select", "stale-grad, unneeded-retain", "--ignore", "stale-grad"), {RETAIN}, 1),
        (("--ignore", "stale-grad"), {RETAIN}, 1),
        (("--ignore", "stale-grad", "--fail-on", "error"), {RETAIN}, 0),
        (("--ignore", "stale-grad,unneeded-retain"), set(), 0),
        (("--level", "stale-grad=note"), {"note[stale-grad]", RETAIN}, 1),
        (("--level", "stale-grad=note,unneeded-retain=note"), {"note[stale-grad]", "note[unneeded-retain]"}, 0),
        (("--level", "unneeded-retain=error", "--ignore=stale-grad"), {"error[unneeded-retain]"}, 1),
        (("--select", "freed-graph"), set(), 0),
    ],
)
def test_the_command_line_chooses(options: Sequence[str], expected: set[str], status: int, gradtrace: Runner) -> None:
    done = gradtrace.here("check", *options, gradtrace.write(BOTH))
    assert (found(done.out), done.status) == (expected, status)


@pytest.mark.parametrize(
    ("table", "options", "expected", "status"),
    [
        ('select = ["stale-grad"]', (), {STALE}, 1),
        ('ignore = ["stale-grad"]\nfail-on = "error"', (), {RETAIN}, 0),
        ('ignore = ["stale-grad"]\nfail-on = "error"', ("--fail-on", "warning"), {RETAIN}, 1),
        ('ignore = ["stale-grad"]', ("--ignore", "unneeded-retain"), {STALE}, 1),
        ('ignore = ["stale-grad"]', ("--select", "stale-grad"), {STALE}, 1),
        ('select = ["stale-grad"]', ("--select", "unneeded-retain"), {RETAIN}, 1),
        ("levels = { stale-grad = 'warning' }", (), {"warning[stale-grad]", RETAIN}, 1),
        ("levels.stale-grad = 'warning'", ("--level", "stale-grad=note"), {"note[stale-grad]", RETAIN}, 1),
    ],
)
def test_the_file_chooses_and_the_command_line_stands_above_it(
    table: str, options: Sequence[str], expected: set[str], status: int, gradtrace: Runner
) -> None:
    (gradtrace.directory / "pyproject.toml").write_text(f"[tool.gradtrace]\n{table}\n")
    done = gradtrace.here("check", *options, gradtrace.write(BOTH))
    assert (found(done.out), done.status) == (expected, status)


def test_the_file_is_the_nearest_with_a_table_of_ours(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "pyproject.toml").write_text("[tool.other]\nx = 1")
    (deep.parent / "pyproject.toml").write_text("this is not [[TOML")
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.gradtrace]\nfail-on = "note"\nbaseline = "x/old.json"')
    (tmp_path / "pyproject.toml").write_text('[tool.gradtrace]\nfail-on = "error"')
    found = config.near(deep / "train.py", KNOWN)
    assert (found.fail_on, found.baseline) == (Level.NOTE, tmp_path / "a" / "x" / "old.json")
    assert found.source == tmp_path / "a" / "pyproject.toml"
    assert config.near(deep, KNOWN) == found
    assert config.near(Path("/"), KNOWN) == Settings()


def test_the_file_is_that_of_the_script_not_of_the_working_directory(gradtrace: Runner) -> None:
    (gradtrace.directory / "project").mkdir()
    (gradtrace.directory / "pyproject.toml").write_text('[tool.gradtrace]\nignore = ["unneeded-retain"]')
    (gradtrace.directory / "project" / "pyproject.toml").write_text('[tool.gradtrace]\nignore = ["stale-grad"]')
    assert found(gradtrace.here("check", gradtrace.write(BOTH, "project/train.py")).out) == {RETAIN}
    assert found(gradtrace.here("check", "-m", "train", gradtrace.write(BOTH)).out) == {STALE}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('ignroe = ["stale-grad"]', "no key of [tool.gradtrace] is called 'ignroe'; did you mean ignore?"),
        ('ignore = ["stale-grd"]', "no rule is called 'stale-grd'; did you mean stale-grad?"),
        ('ignore = "stale-grad"', "ignore must be a list of strings"),
        ("ignore = [1]", "ignore must be a list of strings"),
        ("fail-on = 'eror'", "no level is called 'eror'; did you mean error?"),
        ("fail-on = 2", "fail-on must be a string"),
        ("levels = ['stale-grad']", "levels must be a table"),
        ("levels.stale-grad = 2", "no level is called '2'; there are error, note, warning"),
        ("levels.stale = 'note'", "no rule is called 'stale'; did you mean stale-grad?"),
        ("baseline = 1", "baseline must be a string"),
        ("levels = [", " is not TOML: "),
    ],
)
def test_a_file_that_is_wrong_is_told_in_a_line(table: str, message: str, gradtrace: Runner) -> None:
    (gradtrace.directory / "pyproject.toml").write_text(f"[tool.gradtrace]\n{table}\n")
    done = gradtrace.here("check", gradtrace.write("print('never reached')"))
    assert done.err.startswith(f"gradtrace: {gradtrace.directory / 'pyproject.toml'}")
    assert message in done.err
    assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)


def test_a_table_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\ngradtrace = 1")
    with pytest.raises(GradtraceError, match=r"\[tool.gradtrace\] must be a table"):
        config.near(tmp_path, KNOWN)
