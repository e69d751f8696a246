"""When the script is to stop: what `--at` and `until` say."""

from __future__ import annotations

import linecache
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gradtrace.errors import UsageError, no_such
from gradtrace.model.finding import Finding, Level
from gradtrace.model.moments import Moment

_MOMENTS = {one.value: one for one in Moment}


@dataclass(frozen=True, slots=True)
class Wish:
    """Moments, rules, and lines as (file, line). Without any of them: errors."""

    moments: frozenset[Moment] = frozenset()
    rules: frozenset[str] = frozenset()
    lines: tuple[tuple[str, int], ...] = ()

    def fits(self, finding: Finding) -> bool:
        """Whether a finding is a reason to stop."""
        if finding.rule in self.rules or (Moment.FINDING in self.moments and finding.level > Level.NOTE):
            return True
        return not (self.moments or self.rules or self.lines) and finding.level is Level.ERROR

    @property
    def judges(self) -> bool:
        """Whether a finding may be a reason to stop."""
        return Moment.FINDING in self.moments or bool(self.rules) or not (self.moments or self.lines)


def read(texts: Iterable[str], rules: Collection[str]) -> Wish:
    """What these words of the command line mean. Raises `UsageError` where one of them means nothing."""
    moments, chosen, lines = set(), set(), []
    for text in texts:
        if text in _MOMENTS:
            moments.add(_MOMENTS[text])
        elif text in rules:
            chosen.add(text)
        elif ":" in text:
            lines.append(_line(text))
        else:
            raise no_such("moment, rule or FILE:LINE", text, [*_MOMENTS, *rules])
    return Wish(frozenset(moments), frozenset(chosen), tuple(lines))


def moment(text: str) -> Moment | None:
    """The moment that a word means."""
    return _MOMENTS.get(text)


def _line(text: str) -> tuple[str, int]:
    path, _, number = text.rpartition(":")
    if not number.isdecimal() or not int(number):
        raise UsageError(f"--at {text}: give a file and a line, as in train.py:12")
    if not os.path.isfile(path):
        raise UsageError(f"--at {text}: there is no file {path}")
    last = len(linecache.getlines(os.path.abspath(path)))
    if int(number) > last:
        raise UsageError(f"--at {text}: {path} has {last} lines")
    return os.path.abspath(path), int(number)
