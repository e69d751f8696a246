"""Prints the rules for people, and writes them for programs: a list of all, or the manual of one.

stale-grad   error   A step uses gradients that an earlier step has used already ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from gradtrace.escapes import ascii_json
from gradtrace.model.finding import Level
from gradtrace.model.manual import Manual

_STYLE = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "cyan"}
_NOTHING, _INDENT = Text(), Text(" " * 4)
_NARROWEST = 24
_CODE = r"`[^`\n]+`"


def document(manuals: Sequence[Manual]) -> str:
    """The manuals as one JSON document, in ASCII."""
    rows = [{**asdict(manual), "level": str(manual.level), "silence": manual.silence[0][0]} for manual in manuals]
    return ascii_json({"format": "gradtrace.rules", "version": 1, "rules": rows}, indent=2) + "\n"


def listing(manuals: Sequence[Manual], console: Console) -> None:
    """A line for each rule."""
    names = max(len(manual.rule) for manual in manuals) + 2
    levels = max(len(str(manual.level)) for manual in manuals) + 2
    for manual in manuals:
        head = Text.assemble((manual.rule.ljust(names), "bold"), (str(manual.level).ljust(levels), _style(manual)))
        console.print(Text.assemble(head, _prose(manual.summary)), soft_wrap=True)


def manual(manual: Manual, console: Console) -> None:
    """What the rule finds, why it matters, a bad and a good example, and how to silence it."""
    _print(console, Text.assemble((manual.rule, "bold"), "  ", (str(manual.level), _style(manual))))
    _print(console, _prose(manual.summary))
    for heading, body in (("Why it matters", manual.why), ("Bad", manual.bad), ("Good", manual.good)):
        _print(console, Text(f"\n{heading}", "bold"))
        _print(console, _prose(body), _INDENT)
    _print(console, _prose(f"\n{manual.notes}\n"))
    needs = f"To judge, it must see {manual.needs}." if str(manual.needs) else "It judges any run."
    _print(console, Text(f"{needs}\n"))
    _print(console, Text("How to silence it", "bold"))
    for what, where in manual.silence:
        _print(console, Text(what), _INDENT)
        _print(console, Text(where, "dim"), _INDENT + _INDENT)


def _style(manual: Manual) -> str:
    return _STYLE[manual.level]


def _prose(text: str) -> Text:
    prose = Text(text)
    prose.highlight_regex(_CODE, "bold")
    return prose


def _print(console: Console, text: Text, head: Text = _NOTHING) -> None:
    """Prints a text that is wrapped beside its head."""
    space = max(console.width - len(head), _NARROWEST)
    for number, line in enumerate(text.wrap(console, space)):
        row = Text.assemble(Text(" " * len(head)) if number else head, line)
        row.rstrip()
        console.print(row, soft_wrap=True)
