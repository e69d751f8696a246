"""A plugin for pytest: `pytest --gradtrace` watches every test, and fails those that break gradients.

    def test_training(gradtrace_watch): ...                     watched without the option, too
    @pytest.mark.gradtrace_allow("stale-grad", reason="...")    what these rules find does not count in this test

The settings are those of [tool.gradtrace] at the root of the tests or above it. Without the option and the fixture
nothing of gradtrace but this file is loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gradtrace.model.finding import Finding, Report
    from gradtrace.report.verdict import Verdict

_MARK = "gradtrace_allow"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gradtrace")
    group.addoption("--gradtrace", action="store_true", help="Fail tests that break gradients.")
    group.addoption("--gradtrace-fail-on", metavar="LEVEL", help="The lowest level that fails: error, warning or note.")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_MARK}(rule, ..., reason=None): what these rules of gradtrace find does not fail the test."
    )
    config.stash[_JUDGING] = _Judging(config)
    if config.getoption("--gradtrace"):
        config.stash[_JUDGING].verdict()  # so that wrong settings are reported now


@pytest.fixture
def gradtrace_watch(request: pytest.FixtureRequest) -> Watched:
    """Has gradtrace watch this test, and fail it if it breaks gradients; `findings` are those so far."""
    return _watched(request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watches the test's own call: what its fixtures do before and after is theirs."""
    if not item.config.getoption("--gradtrace") and "gradtrace_watch" not in getattr(item, "fixturenames", ()):
        return (yield)
    watched = _watched(item)
    watched.start()
    try:
        result = yield
    except BaseException as error:
        watched.stop(error)
        if watched.findings:
            item.add_report_section("call", "gradtrace", watched.text())
        raise
    watched.stop()
    if watched.failed:
        pytest.fail(watched.text(), pytrace=False)
    if watched.incomplete:
        item.warn(pytest.PytestWarning(watched.text()))
    return result


class Watched:
    """What gradtrace sees of one test."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        judging = item.config.stash[_JUDGING]
        self._verdict = judging.verdict()
        self._judge = self._verdict.judge(judging.allowed(item))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far in this test, the worst first; some faults show only when it ends."""
        return self._judge.findings

    def start(self) -> None:
        from gradtrace.watcher.watch import Watch

        main = getattr(sys.modules.get("__main__"), "__file__", None)
        launchers = [main] if main and os.path.abspath(main) != str(self._item.path) else []
        self._watch = Watch(self._judge.see, launchers=launchers).__enter__()

    def stop(self, error: BaseException | None = None) -> None:
        from gradtrace.host.tracebacks import hide_our_frames

        self._watch.__exit__()
        if error is not None:
            hide_our_frames(error)

    @property
    def failed(self) -> bool:
        from gradtrace.errors import ExitCode

        return self._report().exit_code == ExitCode.FINDINGS

    @property
    def incomplete(self) -> bool:
        """An internal error kept rules from judging."""
        return self._report().incomplete

    def text(self) -> str:
        """The report for people."""
        from gradtrace.renderers.findings import text
        from gradtrace.renderers.paper import Paper

        return text.render(self._report(), Paper(detail=-1)).rstrip()

    def _report(self) -> Report:
        from gradtrace.model.finding import Ended
        from gradtrace.report.recording import RecordedRun
        from gradtrace.watcher.watch import TORCH_VERSION

        watch = self._watch
        # "stopped": a test is never the whole of its file, so that no comment in it can be called unused
        run = RecordedRun(self._item.nodeid, TORCH_VERSION, os.getcwd(), Ended("stopped"), watch.remarks)
        return self._verdict.report(self._judge, run, watch.backward_calls, watch.optimizer_steps)


class _Judging:
    """The settings of this run of pytest, read when they are needed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._verdict: Verdict | None = None

    def verdict(self) -> Verdict:
        if self._verdict is None:
            self._verdict = _usable(self._made)
        return self._verdict

    def _made(self) -> Verdict:
        from gradtrace.report import config
        from gradtrace.report.config import Settings
        from gradtrace.report.verdict import Verdict

        named = self._config.getoption("--gradtrace-fail-on")
        given = Settings(fail_on=config.level(named) if named else None)
        return Verdict(given.over(config.near(self._config.rootpath, _rules())))

    def allowed(self, item: pytest.Item) -> frozenset[str]:
        """The rules that markers of the test allow."""
        from gradtrace.errors import UsageError
        from gradtrace.report import config

        marks = list(item.iter_markers(_MARK))
        if any(not mark.args for mark in marks):
            raise pytest.UsageError(f'{item.nodeid}: {_MARK} names no rule; write {_MARK}("stale-grad")')
        try:
            return config.rules([rule for mark in marks for rule in mark.args], _rules())
        except UsageError as error:
            raise pytest.UsageError(f"{item.nodeid}: {error}") from None


_JUDGING: pytest.StashKey[_Judging] = pytest.StashKey()
_WATCHED: pytest.StashKey[Watched] = pytest.StashKey()


def _watched(item: pytest.Item) -> Watched:
    if _WATCHED not in item.stash:
        item.stash[_WATCHED] = Watched(item)
    return item.stash[_WATCHED]


def _rules() -> frozenset[str]:
    from gradtrace.rules import all_rules

    return frozenset(rule.id for rule in all_rules())


def _usable(make: Any) -> Verdict:
    from gradtrace.errors import GradtraceError

    try:
        found: Verdict = make()
    except GradtraceError as error:
        raise pytest.UsageError(str(error)) from None
    return found
