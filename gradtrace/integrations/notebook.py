"""The cell magic for notebooks: after `%load_ext gradtrace`, a cell that begins with `%%gradtrace check` is checked.

    %%gradtrace check --ignore unneeded-retain
    for x, y in data: ...

The cell runs as it would without that line, in the notebook's own names; then the report follows. Functions of earlier
cells are watched too, as far as this cell calls them.
"""

from __future__ import annotations

import argparse
import asyncio
import linecache
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from traceback import format_exception_only
from typing import Any, NoReturn

from gradtrace import rules
from gradtrace.commands.check import CheckOptions
from gradtrace.errors import GradtraceError, UsageError
from gradtrace.model.finding import Ended, Finding, Related, Report
from gradtrace.model.site import Site
from gradtrace.renderers.findings import text
from gradtrace.renderers.paper import Paper
from gradtrace.report import config
from gradtrace.report.recording import RecordedRun
from gradtrace.report.verdict import Verdict


def load(shell: Any) -> None:
    """Gives the shell of IPython the magic."""

    def gradtrace(line: str, cell: str) -> None:
        """%%gradtrace check [--select RULES] [--ignore RULES] [--level RULE=LEVEL]"""
        try:
            _check(shell, _wishes(line), cell)
        except GradtraceError as error:
            sys.stderr.write(f"gradtrace: {error}\n")
            raise _AlreadyReportedError from None

    shell.register_magic_function(gradtrace, "cell")


class _AlreadyReportedError(Exception):
    """Ends the cell, as errors do, when there is nothing left to say."""

    def _render_traceback_(self) -> list[str]:
        return []


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%gradtrace check: {message}")


def _wishes(line: str) -> CheckOptions:
    parser = _Parser(prog="%%gradtrace", add_help=False, allow_abbrev=False)
    parser.add_argument("command", choices=["check"])
    for option in ("--select", "--ignore", "--level"):
        parser.add_argument(option, action="append", default=[])
    given = parser.parse_args(shlex.split(line))
    return CheckOptions(given.select, given.ignore, levels=given.level)


def _check(shell: Any, wishes: CheckOptions, cell: str) -> None:
    from gradtrace.watcher.watch import TORCH_VERSION, Watch

    if _loop_is_running() and _awaits(shell, cell):
        raise UsageError("%%gradtrace check: a cell with await at its top cannot be checked; put it into a function")
    known = frozenset(rule.id for rule in rules.all_rules())
    verdict = Verdict(wishes.settings(known).over(config.near(Path.cwd(), known)))
    judge = verdict.judge()
    with Watch(judge.see, launchers=_running_files()) as watch, _in_place(shell):
        # below another line, so that lines are counted as in the cell
        result = shell.run_cell(f"# checked\n{cell}")
    error = result.error_before_exec or result.error_in_exec
    ended = _ended(error)
    run = RecordedRun("the cell", TORCH_VERSION, os.getcwd(), ended, watch.remarks + watch.unseen)
    report = verdict.report(judge, run, watch.backward_calls, watch.optimizer_steps)
    sys.stdout.write(text.render(_named(report, shell), Paper(color=not os.environ.get("NO_COLOR"))))
    if error is not None:
        raise _AlreadyReportedError


def _ended(error: BaseException | None) -> Ended:
    if error is None:
        return Ended("finished")
    if isinstance(error, KeyboardInterrupt):
        return Ended("interrupted", 130)
    return Ended("exception", 1, format_exception_only(error)[-1].strip())


def _awaits(shell: Any, cell: str) -> bool:
    """Whether the cell has an `await` outside of functions."""
    try:
        transformed = shell.transform_cell(cell)
    except Exception:  # noqa: BLE001 - the shell reports it when the cell runs
        return False
    return bool(shell.should_run_async(cell, transformed_cell=transformed))


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _in_place(shell: Any) -> Iterator[None]:
    """Has the shell give what runs now the number of the cell with the magic, not one of its own."""
    names = (name[1] for file in _running_files() if (name := shell.compile.format_code_name(file)))
    number, following = re.search(r"\d+", next(names, "")), shell.execution_count
    if number is not None:
        shell.execution_count = int(number[0])
    try:
        yield
    finally:
        shell.execution_count = following


def _running_files() -> Iterator[str]:
    """The files of what runs now: the cell with the magic, which is none of what is to be watched, for one."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        yield frame.f_code.co_filename


def _named(report: Report, shell: Any) -> Report:
    """The report with `In[3]` in the place of the file that IPython made up for a cell."""

    def site(found: Site) -> Site:
        name = shell.compile.format_code_name(found.path)
        if name is None:
            return found
        linecache.cache[name[1]] = linecache.cache[found.path]
        return found._replace(path=name[1])

    def finding(found: Finding) -> Finding:
        related = tuple(Related(site(one.site), one.message) for one in found.related)
        return replace(found, site=site(found.site), related=related)

    silenced = tuple(replace(one, finding=finding(one.finding)) for one in report.silenced)
    return replace(report, findings=tuple(map(finding, report.findings)), silenced=silenced)
