"""A file of findings that are known, so that only new ones are told.

A finding is known by its rule, its file, its function and the text of its line: not by the line's number, so that it is
still known when lines are added above it. One entry stands for one finding.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from gradtrace.errors import DocumentError
from gradtrace.model.finding import Finding, Silenced
from gradtrace.source import syntax

Entry: TypeAlias = tuple[str, ...]
_FIELDS = ("rule", "path", "function", "source")
_FORMAT = {"format": "gradtrace.baseline", "version": 1}


class Baseline:
    """The entries of one file; paths in it are relative to its directory."""

    def __init__(self, path: Path, entries: Iterable[Entry] = ()) -> None:
        self._directory = path.absolute().parent
        self._entries = Counter(entries)

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Raises `DocumentError` where the file cannot be read or is no baseline."""
        try:
            document: Any = json.loads(path.read_text(encoding="utf-8"))
            if {key: document.get(key) for key in _FORMAT} != _FORMAT:
                raise ValueError
            return cls(path, [tuple(str(row[field]) for field in _FIELDS) for row in document["findings"]])
        except OSError as error:
            raise DocumentError(
                f"cannot read the baseline {path}: {error.strerror}; make it with --write-baseline"
            ) from error
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise DocumentError(f"{path} is no baseline of gradtrace; make it anew with --write-baseline") from error

    def apply(self, findings: Iterable[Finding]) -> tuple[list[Finding], list[Silenced]]:
        """The findings that are new, and those that are known."""
        left, new, known = self._entries.copy(), [], []
        for finding in findings:
            entry = self._entry(finding)
            if left[entry]:
                left[entry] -= 1
                known.append(Silenced(finding, "baseline"))
            else:
                new.append(finding)
        return new, known

    def document(self, findings: Sequence[Finding]) -> str:
        """The file in which these findings are known."""
        rows = [dict(zip(_FIELDS, entry, strict=True)) for entry in sorted(map(self._entry, findings))]
        return json.dumps({**_FORMAT, "findings": rows}, indent=2) + "\n"

    def _entry(self, finding: Finding) -> Entry:
        site = finding.site
        path = site.path
        if os.path.isabs(path):
            path = Path(os.path.relpath(path, self._directory)).as_posix()
        text = " ".join(syntax.line_text(site.path, site.line).split())
        return finding.rule, path, site.function, text
