"""Writes the story of a run as one JSON document, for programs: every step with its facts, and what they say."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gradtrace.escapes import ascii_json
from gradtrace.model.finding import Finding
from gradtrace.model.story import Fact, FunctionCall, Item, Loop, Story, StoryStep, Value
from gradtrace.renderers.paper import Paper
from gradtrace.renderers.story.phrases import numbers, of_step
from gradtrace.renderers.wording import file


def render(story: Story, paper: Paper) -> str:
    """The document, in ASCII alone. Lines count from 1; NaN and infinity are strings, since JSON has none."""
    return ascii_json(document(story), indent=2)


def document(story: Story) -> dict[str, Any]:
    """`items` are steps and loops in the order in which they ran; a step's number says which one came first."""
    return {
        "format": "gradtrace.story",
        "version": 1,
        "script": story.script,
        "ended": story.ended.how,
        "exception": story.ended.exception,
        "items": _items(story.items, story),
        "elsewhere": [_finding(finding) for finding in story.elsewhere],
        "remarks": list(story.remarks),
    }


def _items(items: Iterable[Item], story: Story) -> list[dict[str, Any]]:
    return [_loop(item, story) if isinstance(item, Loop) else _step(item, story) for item in items]


def _step(step: StoryStep, story: Story) -> dict[str, Any]:
    return {
        "kind": "step",
        "number": step.number,
        "path": _path(step.path),
        "line": step.line,
        "source": step.source,
        "calls": [_call(call, story) for call in step.calls],
        "facts": [_fact(fact) for fact in step.facts],
        "says": of_step(step, set()),
        "findings": [_finding(finding) for finding in story.findings.get(step.number, ())],
    }


def _loop(loop: Loop, story: Story) -> dict[str, Any]:
    return {
        "kind": "loop",
        "path": _path(loop.path),
        "line": loop.line,
        "source": loop.source,
        "count": loop.count,
        "alike": loop.alike,
        "shown": [
            {"number": iteration.number, "differences": iteration.differences, "items": _items(iteration.items, story)}
            for iteration in loop.shown
        ],
        "series": [_plain(dataclasses.asdict(series)) for series in loop.series],
        "printed": list(loop.printed),
    }


def _call(call: FunctionCall, story: Story) -> dict[str, Any]:
    found = {"function": call.function, "path": _path(call.path), "line": call.line, "given": list(call.given)}
    return {**found, "like": call.like or None, "items": _items(call.items, story)}


def _fact(fact: Fact) -> dict[str, Any]:
    """Its kind in lower case and its fields, every value with its text."""
    return {"kind": type(fact).__name__.lower()} | {
        field.name: _plain(getattr(fact, field.name)) for field in dataclasses.fields(fact)
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it; NaN, infinity and complex numbers are strings."""
    if dataclasses.is_dataclass(value):
        found = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        if isinstance(value, Value):
            found["text"] = numbers(value)
        return found
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, complex):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _finding(finding: Finding) -> dict[str, Any]:
    related = [{"path": _path(one.site.path), "line": one.site.line, "message": one.message} for one in finding.related]
    return {
        "rule": finding.rule,
        "level": str(finding.level),
        "message": finding.message,
        "help": finding.help,
        "path": _path(finding.site.path),
        "line": finding.site.line,
        "occurrences": finding.occurrences,
        "related": related,
    }


def _path(path: str) -> str:
    return Path(file(path)).as_posix()
