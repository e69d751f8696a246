"""pytest's plugin, in sessions of its own: which tests it fails, what it says, and that it is off by default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
import torch


def train(clear):
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)
    for _ in range(4):
        if clear:
            optimizer.zero_grad()
        weight.square().sum().backward()
        optimizer.step()


def test_clean():
    train(clear=True)


def test_stale():
    train(clear=False)


class TestMethods:
    @pytest.mark.parametrize("clear", [True, False])
    def test_method(self, clear):
        train(clear)


@pytest.mark.gradtrace_allow("stale-grad", reason="momentum by hand")
def test_allowed():
    train(clear=False)


@pytest.mark.gradtrace_allow("no-graph", "freed-graph")
def test_allowed_something_else():
    train(clear=False)


def test_ignored():
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1)
    for _ in range(4):
        weight.square().sum().backward()  # gradtrace: ignore[stale-grad] -- why
        optimizer.step()


def test_carried():
    weight, state = torch.ones(2, requires_grad=True), torch.zeros(2)
    for _ in range(3):
        state = torch.tanh(weight * state + 1)
        state.sum().backward()


def test_without_torch():
    pass


def test_fixture(gradtrace_watch):
    train(clear=False)
    assert [finding.rule for finding in gradtrace_watch.findings] == ["stale-grad"]


@pytest.fixture
def trained():
    train(clear=False)


def test_fixtures_are_not_watched(trained):
    pass
"""
FAILING = {"test_stale", "test_method[False]", "test_allowed_something_else", "test_carried", "test_fixture"}

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # whether it is installed or not
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    def run(*arguments: str, source: str = TESTS) -> pytest.RunResult:
        pytester.makepyfile(test_it=source)
        options = "-p", "gradtrace.integrations.pytest_plugin", "-rfE", "--strict-markers", *arguments
        return pytester.runpytest_subprocess(*options)

    return run


def failed(result: pytest.RunResult) -> set[str]:
    lines = [line.split(" ")[1] for line in result.outlines if line.startswith(("FAILED ", "ERROR "))]
    return {line.rpartition("::")[2] for line in lines}


def test_tests_with_findings_fail(run: Run) -> None:
    result = run("--gradtrace")
    assert failed(result) == FAILING
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*_ test_stale _*",
            "error[[]stale-grad]: *",
            "  --> test_it.py:11:9 in train (3 times)",
            "help: call `optimizer.zero_grad()` before this backward call",
        ]
    )
    # where the test fails by itself, what was found stands below its traceback
    result.stdout.fnmatch_lines(
        [
            "*_ test_carried _*",
            "> *state.sum().backward()",
            "*Captured gradtrace call*",
            "error[[]freed-graph]: `state` *",
            "  --> test_it.py:50:*",
        ]
    )
    result.stdout.no_fnmatch_line("*gradtrace/watcher/*")


def test_it_works_in_several_processes(run: Run) -> None:
    result = run("--gradtrace", "-p", "xdist.plugin", "-n", "2")
    assert failed(result) == FAILING
    result.stdout.fnmatch_lines(["*error[[]stale-grad]: *"])


def test_it_is_off_by_default_except_for_the_fixture(run: Run) -> None:
    assert failed(run()) == {"test_carried", "test_fixture"}


def test_settings_are_those_of_the_project(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.gradtrace]\nlevels = { stale-grad = 'warning' }\nfail-on = 'error'\n")
    source = TESTS.partition("class TestMethods")[0]
    assert failed(run("--gradtrace", source=source)) == set()
    assert failed(run("--gradtrace", "--gradtrace-fail-on", "warning", source=source)) == {"test_stale"}


@pytest.mark.parametrize(
    ("options", "settings", "message"),
    [
        (["--gradtrace-fail-on", "fatal"], "", "no level is called 'fatal'; there are error, note, warning"),
        ([], "ignroe = []", "no key of [[]tool.gradtrace[]] is called 'ignroe'; did you mean ignore?"),
        ([], "baseline = 'old.json'", "cannot read the baseline *old.json: No such file or directory; *"),
    ],
)
def test_wrong_settings_are_told_at_once(
    options: list[str], settings: str, message: str, run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyprojecttoml(f"[tool.gradtrace]\n{settings}\n")
    result = run("--gradtrace", *options, source="")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{message}"])


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("gradtrace_allow", 'gradtrace_allow names no rule; write gradtrace_allow("stale-grad")'),
        ("gradtrace_allow('stale')", "no rule is called 'stale'; did you mean stale-grad?"),
    ],
)
def test_a_wrong_marker_is_told(mark: str, message: str, run: Run) -> None:
    result = run("--gradtrace", source=f"import pytest\n@pytest.mark.{mark}\ndef test_it():\n    pass\n")
    assert failed(result) == {"test_it"}
    result.stdout.fnmatch_lines([f"*test_it.py::test_it: {message}"])


def test_what_is_not_asked_for_is_not_loaded(run: Run) -> None:
    source = """
        import sys
        def test_it():
            assert {name for name in sys.modules if name.startswith("gradtrace")} == {
                "gradtrace", "gradtrace.integrations", "gradtrace.integrations.pytest_plugin"}
            assert "torch" not in sys.modules
    """
    assert run(source=source).ret == pytest.ExitCode.OK


def test_an_internal_error_is_a_warning_and_fails_no_test(pytester: pytest.Pytester, run: Run) -> None:
    pytester.makeconftest(
        """
        from gradtrace.watcher.graph import walk

        def fail(*arguments):
            raise LookupError("broken")

        walk.visit = fail
        """
    )
    # in a process of its own: what its conftest breaks would stay broken here
    result = run("--gradtrace", source=TESTS.partition("class TestMethods")[0])
    result.assert_outcomes(passed=2, warnings=2)
    result.stdout.fnmatch_lines(["*PytestWarning:*", "*internal error in gradtrace while watching*broken*"])
