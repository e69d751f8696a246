"""The scripts in tests/cases, and the marks in scripts that say what must be found: see tests/cases/README.md."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
#: the folder of scripts that run as jobs of two ranks
RANKS = "ranks"
_MARK = re.compile(r"# (<-|also) (note: )?([a-z-]+)")
#: a rule, a line, and whether the finding is a note
Mark = tuple[str, int, bool]


def case(name: str) -> Path:
    """The script `stale-grad/bad/zero_grad_once_an_epoch`."""
    return FOLDER / f"{name}.py"


def cases(kind: str, topic: str = "*") -> list[str]:
    """The names of all scripts that are `bad` or `good`, without that word: `stale-grad/zero_grad_once_an_epoch`."""
    return [f"{path.parts[-3]}/{path.stem}" for path in sorted(FOLDER.glob(f"{topic}/{kind}/*.py"))]


def demanded(script: str) -> set[Mark]:
    """What must be found: `# <- stale-grad` and `# <- note: unused-loss`."""
    return _marks(script, "<-")


def allowed(script: str) -> set[Mark]:
    """What may be found as well, since the script is about something else: `# also cleared-grad`."""
    return _marks(script, "also")


def _marks(script: str, wanted: str) -> set[Mark]:
    found = set()
    for number, row in enumerate(script.splitlines(), 1):
        for word, note, rule in _MARK.findall(row):
            if word == wanted:
                found.add((rule, number, bool(note)))
    return found
