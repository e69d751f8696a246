"""The golden texts of rules: tests/golden/messages/RULE.txt holds each message that a rule gives in the rule tests.

Every script that a rule test checks is recorded under the test that checked it. A message whose names and numbers alone
differ from those of an entry has no entry of its own, so that a file can be read in one sitting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "golden" / "messages"
ADVICE = "\nIf the new words are meant, `pytest --regold tests/rules` writes them: read the difference."
_HEAD = "── "
#: a test of a script in tests/cases, with its file and its topic
_CASE = re.compile(r"(.*)::\w+\[([a-z-]+)/")
#: what a test's script says to the test, not to the reader
_MARK = re.compile(r"\s*# (<-|also) .*$")
#: names, shapes and numbers of a script; kinds of optimizers
_NAMES = re.compile(r"`[^`]*`|\[[\d, ]*\]|\d[\d.e+-]*|\b(an?|[A-Z][A-Za-z]*[a-z][A-Z]?) (?=is created|step)")


@dataclass(frozen=True)
class Entry:
    """A message with its help and its related lines, and the test whose script gives it."""

    rule: str
    test: str
    body: str

    @property
    def wordings(self) -> list[str]:
        """The message with its help, then each note: without the names and numbers of this script and without its source."""
        rows = [_NAMES.sub("`…`", row) for row in self.body.splitlines() if not row.startswith(" ")]
        return ["\n".join(rows[:2]), *rows[2:]]


@dataclass
class Recorded:
    """The entries that the tests of this process make."""

    entries: list[Entry] = field(default_factory=list)

    def add(self, test: str, script: str, findings: Iterable[dict[str, Any]]) -> list[Entry]:
        made = [Entry(finding["rule"], test, body(finding, script.splitlines())) for finding in findings]
        self.entries += made
        return made


RECORDED = pytest.StashKey[Recorded]()


def body(finding: dict[str, Any], script: list[str]) -> str:
    """A finding as text: the source line that each of its sentences is about, then the sentence."""
    rows = [_source(script, finding["line"]), f"{finding['level']}: {finding['message']}", f"help: {finding['help']}"]
    for related in finding["related"]:
        line, message = related if isinstance(related, list) else (related["line"], related["message"])
        rows += [_source(script, line), f"note: {message}"]
    return "\n".join(rows)


def _source(script: list[str], line: int) -> str:
    text = script[line - 1] if line <= len(script) else "(in another file)"
    return f"    {_MARK.sub('', text).strip()}"


def read(rule: str) -> list[Entry]:
    path = FOLDER / f"{rule}.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    entries = []
    for part in text.split(_HEAD)[1:]:
        test, _, content = part.partition("\n")
        entries.append(Entry(rule, test, content.strip("\n")))
    return entries


def complaint(test: str, made: list[Entry]) -> str:
    """What is not as the golden texts have it, of the messages that one test got; else empty."""
    said = {entry.body for entry in made}
    for rule in sorted({entry.rule for entry in made}):
        golden = read(rule)
        known = {wording for entry in golden for wording in entry.wordings}
        for entry in made:
            if entry.rule == rule and not known.issuperset(entry.wordings):
                return f"tests/golden/messages/{rule}.txt does not have this message:\n{entry.body}\n{ADVICE}"
        for entry in golden:
            if entry.test == test and entry.body not in said:
                return (
                    f"tests/golden/messages/{rule}.txt has, for {test}:\n{entry.body}\nbut now it is:\n{made}\n{ADVICE}"
                )
    return ""


def write(made: Iterable[Entry]) -> None:
    """Writes the entries of each test file, and of each topic of tests/cases, that ran again; keeps those of the others."""
    made = list(made)
    ran = {scope(entry.test) for entry in made}
    FOLDER.mkdir(parents=True, exist_ok=True)
    for rule in {entry.rule for entry in made} | {path.stem for path in FOLDER.glob("*.txt")}:
        known = read(rule)
        kept = [entry for entry in known if scope(entry.test) not in ran]
        entries = kept + _distinct([entry for entry in made if entry.rule == rule], kept, known)
        entries.sort(key=lambda entry: (entry.wordings[0], entry.test))
        text = "\n".join(f"{_HEAD}{entry.test}\n{entry.body}\n" for entry in entries)
        (FOLDER / f"{rule}.txt").write_text(text, encoding="utf-8")


def _distinct(entries: Iterable[Entry], beside: Iterable[Entry] = (), known: Iterable[Entry] = ()) -> list[Entry]:
    """As many of these as it takes for each wording that is not `beside`: those that are known first, so that little
    changes, and one with many notes first."""
    wordings = {wording for entry in beside for wording in entry.wordings}
    known = set(known)
    chosen = []
    for entry in sorted(entries, key=lambda entry: (entry not in known, -len(entry.wordings), entry.test)):
        if not wordings.issuperset(entry.wordings):
            wordings.update(entry.wordings)
            chosen.append(entry)
    return chosen


def scope(test: str) -> str:
    """What is written again as a whole: a test file, or in test_cases.py a topic."""
    test = test.rpartition("tests/rules/")[2]
    case = _CASE.match(test)
    return f"{case[1]}/{case[2]}" if case else test.partition("::")[0]
