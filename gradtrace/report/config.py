"""What to judge and when to fail: set on the command line, or below [tool.gradtrace] in pyproject.toml.

    [tool.gradtrace]
    select = ["stale-grad", "freed-graph"]       # these rules alone
    ignore = ["unneeded-retain"]                 # all but these
    fail-on = "error"                            # the lowest level that fails: error, warning or note
    levels = { graph-growth = "error" }          # how bad the findings of a rule are
    baseline = "gradtrace-baseline.json"         # findings that are known, relative to pyproject.toml

The file is the nearest pyproject.toml with such a table, from the script's directory upwards. An option on the command
line overrides the same one of the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradtrace.errors import DocumentError, UsageError, no_such
from gradtrace.model.finding import Level

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_KEYS = ("select", "ignore", "fail-on", "levels", "baseline")


@dataclass(frozen=True, slots=True)
class Settings:
    """None where nothing was set."""

    select: frozenset[str] | None = None
    ignore: frozenset[str] | None = None
    fail_on: Level | None = None
    levels: Mapping[str, Level] = field(default_factory=dict)
    baseline: Path | None = None
    #: the file that these come from, if any
    source: Path | None = None

    def over(self, other: Settings) -> Settings:
        """These settings, and where they set nothing, those of `other`. What is selected here is not ignored there."""
        ignored = None if other.ignore is None else other.ignore - (self.select or frozenset())
        return Settings(
            other.select if self.select is None else self.select,
            ignored if self.ignore is None else self.ignore,
            other.fail_on if self.fail_on is None else self.fail_on,
            {**other.levels, **self.levels},
            self.baseline or other.baseline,
            other.source,
        )

    def wants(self, rule: str) -> bool:
        """Whether this rule is to judge."""
        return (self.select is None or rule in self.select) and rule not in (self.ignore or ())


def level(name: str) -> Level:
    """The level of that name; raises `UsageError`."""
    if name.lower() not in [str(known) for known in Level]:
        raise no_such("level", name, map(str, Level))
    return Level[name.upper()]


def rules(names: Iterable[str], known: Collection[str]) -> frozenset[str]:
    """The rules named, several of them in one word by commas; raises `UsageError` where one does not exist."""
    found = [name.strip() for word in names for name in word.split(",")]
    for name in found:
        if name not in known:
            raise no_such("rule", name, known)
    return frozenset(found)


def levels(words: Iterable[str], known: Collection[str]) -> dict[str, Level]:
    """`stale-grad=note` for each rule; raises `UsageError`."""
    pairs = [part.strip().partition("=") for word in words for part in word.split(",")]
    for rule, equals, name in pairs:
        if not equals:
            raise UsageError(f"--level {rule}: write RULE=LEVEL, as in --level graph-growth=error")
        rules([rule], known)
        level(name)
    return {rule: level(name) for rule, _, name in pairs}


def near(script: Path, known: Collection[str]) -> Settings:
    """The settings of the nearest pyproject.toml that has some, at the script or above it."""
    for directory in (script, *script.parents):
        path = directory / "pyproject.toml"
        table = _table(path) if os.path.isfile(path) else None  # what may not be looked at is not there
        if table is not None:
            return _settings(path, table, known)
    return Settings()


def _table(path: Path) -> Any:
    """What is set below [tool.gradtrace]; None where nothing is. A broken file that does not name us is not ours."""
    try:
        text = path.read_bytes()
        return tomllib.loads(text.decode()).get("tool", {}).get("gradtrace")
    except OSError as error:
        raise DocumentError(f"cannot read {path}: {error.strerror}; make it readable") from error
    except (ValueError, AttributeError) as error:
        if b"gradtrace" not in text:
            return None
        raise DocumentError(f"{path} is not TOML: {error}; fix it") from error


def _settings(path: Path, table: Any, known: Collection[str]) -> Settings:
    try:
        for key in _strings(table, "[tool.gradtrace]", mapping=True):
            if key not in _KEYS:
                raise no_such("key of [tool.gradtrace]", key, _KEYS)
        found = {
            key: frozenset(rules(_strings(table[key], key), known)) for key in ("select", "ignore") if key in table
        }
        given = table.get("levels", {})
        pairs = levels([f"{rule}={given[rule]}" for rule in _strings(given, "levels", mapping=True)], known)
        fail_on = level(_string(table["fail-on"], "fail-on")) if "fail-on" in table else None
        baseline = path.parent / _string(table["baseline"], "baseline") if "baseline" in table else None
    except UsageError as error:
        raise DocumentError(f"{path}: {error}") from error
    return Settings(found.get("select"), found.get("ignore"), fail_on, pairs, baseline, path)


def _string(value: Any, key: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{key} must be a string")
    return value


def _strings(value: Any, key: str, mapping: bool = False) -> list[str]:
    if not isinstance(value, dict if mapping else list) or not all(isinstance(one, str) for one in value):
        raise UsageError(f"{key} must be a {'table' if mapping else 'list of strings'}")
    return list(value)
