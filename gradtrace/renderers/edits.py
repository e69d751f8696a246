"""Edits of the user's files, as a unified diff that `patch` and `git apply` take, and as changes of single lines."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from gradtrace.model.finding import Finding
from gradtrace.model.fix import Fix, Patch
from gradtrace.renderers.wording import file


def diff(patch: Patch) -> str:
    """Paths as the user would type them; empty where nothing changes."""
    return "".join(between(patch.before[path], patch.after[path], file(path)) for path in patch.changed)


def between(before: str, after: str, name: str) -> str:
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    rows = difflib.unified_diff(old, new, name, name)
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


class LineChange(NamedTuple):
    """Lines of a file as it was: those from `first` on, before `end` (both count from 1), become `lines`."""

    first: int
    end: int
    lines: list[str]


def changes(fix: Fix, original: str) -> list[LineChange]:
    """What one fix changes in the file as it was; nothing where it builds on lines that an earlier fix has changed."""
    before = fix.before.splitlines(keepends=True)
    line_of = _lines_of_original(original.splitlines(keepends=True), before)
    found = []
    after = fix.after.splitlines(keepends=True)
    for kind, start, end, new_start, new_end in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        if kind == "equal":
            continue
        first, last = line_of.get(start), line_of.get(end - 1 if end > start else start)
        if first is None or last is None:
            return []
        found.append(LineChange(first, last + (end > start), after[new_start:new_end]))
    return found


def _lines_of_original(original: list[str], edited: list[str]) -> dict[int, int]:
    """For each index of a line of the edited text that is as it was: its number in the original, from 1."""
    found = {len(edited): len(original) + 1}
    for block in difflib.SequenceMatcher(None, original, edited, False).get_matching_blocks():
        for offset in range(block.size):
            found[block.b + offset] = block.a + offset + 1
    return found


def fix_of(finding: Finding, fixes: Sequence[Fix]) -> Fix | None:
    """The fix of a finding. Its line may have moved by the fixes before it."""
    for one in fixes:
        if one.finding.place == finding.place or (one.finding.rule, one.finding.message) == (
            finding.rule,
            finding.message,
        ):
            return one
    return None
