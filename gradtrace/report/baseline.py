"""A file of findings that are known, so that only new ones are reported.

A finding is known by its rule, its file, its function and the text of its line: not by the line's number, so that it is
still known when lines are added above it. One entry is one finding.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from gradtrace.errors import DocumentError
from gradtrace.escapes import ascii_json
from gradtrace.model.finding import Finding, Silenced
from gradtrace.model.schema import DamagedError, Reader, parsed
from gradtrace.source import syntax

_FORMAT = {"format": "gradtrace.baseline", "version": 1}


class Entry(NamedTuple):
    """What a finding is known by."""

    rule: str
    path: str
    function: str
    source: str


class _BaselineFile(NamedTuple):
    findings: tuple[Entry, ...]


class Baseline:
    """The entries of one file; paths in it are relative to its directory."""

    def __init__(self, path: Path, entries: Iterable[Entry] = ()) -> None:
        self._directory = path.absolute().parent
        self._entries = Counter(entries)

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Raises `DocumentError` where the file cannot be read or is no baseline."""
        try:
            text = path.read_text(encoding="utf-8")
            document = parsed(text)
            if not isinstance(document, dict) or any(document.get(key) != value for key, value in _FORMAT.items()):
                raise DocumentError(f"{path} is not a gradtrace baseline; write one with --write-baseline")
            return cls(path, Reader().read(_BaselineFile, document).findings)
        except OSError as error:
            raise DocumentError(
                f"cannot read the baseline {path}: {error.strerror}; make it with --write-baseline"
            ) from error
        except UnicodeDecodeError as error:
            raise DocumentError(f"{path} is damaged: it is not text; write it again with --write-baseline") from error
        except DamagedError as error:
            raise DocumentError(f"{path} is damaged: {error}; write it again with --write-baseline") from None

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
        rows = [entry._asdict() for entry in sorted(map(self._entry, findings))]
        return ascii_json({**_FORMAT, "findings": rows}, indent=2) + "\n"

    def _entry(self, finding: Finding) -> Entry:
        site = finding.site
        path = site.path
        if os.path.isabs(path):
            path = Path(os.path.relpath(path, self._directory)).as_posix()
        text = " ".join(syntax.line_text(site.path, site.line).split())
        return Entry(finding.rule, path, site.function, text)
