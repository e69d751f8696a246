"""The manual of a rule, read from the docstring of its module.

What it finds, in one sentence.

Why it matters
    A paragraph.

Bad
    code that the rule reports

Good
    the same code, fixed

Where the finding is, what is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from textwrap import dedent

from gradtrace.model.finding import Level, Needs

_HEADINGS = ("Why it matters", "Bad", "Good")


@dataclass(frozen=True, slots=True)
class Manual:
    """One rule, as people read it. Paragraphs are unwrapped, code keeps its lines."""

    rule: str
    level: Level
    summary: str
    why: str
    bad: str
    good: str
    notes: str
    #: what a run must have for the rule to judge
    needs: Needs = field(default_factory=Needs)

    @property
    def silence(self) -> tuple[tuple[str, str], ...]:
        """What to write, and what that leaves out."""
        return (
            (
                f"# gradtrace: ignore[{self.rule}] -- why",
                "at the end of the line that is reported, or of a related one",
            ),
            (f"gradtrace check --ignore {self.rule}", "for one run"),
            (f'ignore = ["{self.rule}"]', "below [tool.gradtrace] in pyproject.toml, for the project"),
        )


def read(rule: str, level: Level, docstring: str, needs: Needs | None = None) -> Manual:
    """Reads the parts; one that is missing is empty."""
    parts = dict.fromkeys(("", *_HEADINGS, "notes"), "")
    for heading, block in _blocks(docstring):
        parts[heading] = f"{parts[heading]}\n\n{block}".strip("\n")
    summary, _, rest = parts[""].partition("\n\n")
    notes = _unwrapped(f"{rest}\n\n{parts['notes']}")
    why, bad, good = (dedent(parts[heading]) for heading in _HEADINGS)
    return Manual(rule, level, _unwrapped(summary), _unwrapped(why), bad, good, notes, needs or Needs())


def _blocks(docstring: str) -> Iterator[tuple[str, str]]:
    """Paragraphs with the heading they are under: an indented one belongs to the last heading."""
    heading, seen = "", False
    for block in docstring.strip("\n").split("\n\n"):
        first, _, rest = block.partition("\n")
        if first in _HEADINGS:
            heading, seen, block = first, True, rest
        elif not block.startswith(" "):
            heading = "notes" if seen else ""
        yield heading, block


def _unwrapped(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
