"""Damaged graphs, recordings and baselines: each gives its result, or one line that says what is damaged.

A few hundred by default; `GRADTRACE_FUZZ=10000 pytest tests/test_damaged.py` tries that many of each.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from gradtrace.commands.check import FORMATS, CheckOptions, check
from gradtrace.commands.run import Options
from gradtrace.errors import GradtraceError
from gradtrace.graphs import document, fold
from gradtrace.renderers.graph import dot, html, tree

if TYPE_CHECKING:
    from tests.conftest import Runner

TRAIN = """
import torch
net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
unused = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([*net.parameters(), unused], 0.1)
state = torch.zeros(1)
for step in range(4):
    state = net(torch.ones(3, 2)).square().mean() + state
    state.backward(retain_graph=True)
    optimizer.step()
"""
TRIES = int(os.environ.get("GRADTRACE_FUZZ", "100"))
#: texts of JSON values
JUNK = [
    *("null", "true", "-1", "0", "1.5", "1e999", "9" * 4400, str(2**70), '""', '"x"', "[]", "{}", "[0]", "[[[]]]"),
    *('"\\ud800"', '"\\u001b[31m\\u0007\\u0000\\r\\n"', '{"a": 1}', "[" * 3000 + "]" * 3000, "NaN", "["),
]


def damaged(text: str, chance: random.Random) -> str:
    """A JSON text with one place changed."""
    if not chance.randrange(6):
        at = chance.randrange(len(text))
        return chance.choice([text[:at], text[:at] + chance.choice('{}[]",:x\x00') + text[at + 1 :]])
    value = json.loads(text)
    places = list(walk(value))
    if not places:
        return chance.choice(JUNK)
    holder, key = chance.choice(places)
    if isinstance(holder, dict) and not chance.randrange(4):
        del holder[key]
        return json.dumps(value)
    if isinstance(holder, list) and not chance.randrange(4):
        holder.append(holder[key])
        return json.dumps(value)
    holder[key] = "the place"
    return json.dumps(value).replace('"the place"', chance.choice(JUNK))


def walk(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from walk(inner)


def show(text: str) -> None:
    graphs = document.read(text, "graph.json")
    console = Console(file=StringIO(), width=100)
    tree.render([fold.fitted(graph, tree.height, tree.PAGE) for graph in graphs], console, saved=True)
    dot.source(graphs, "forward")
    html.page(graphs)
    document.written(graphs)


def judge(text: str) -> None:
    Path("damaged.jsonl").write_text(text)
    outputs = [Path(f"out{ending}") for ending in FORMATS.values() if ending]
    check(Options(["damaged.jsonl"], None), CheckOptions(format="github", outputs=outputs, detail=1))


def compare(text: str) -> None:
    Path("baseline.json").write_text(text)
    check(Options(["run.jsonl"], None), CheckOptions(baseline=Path("baseline.json"), outputs=[Path("out.txt")]))


def survives(use: Callable[[str], None], text: str) -> bool:
    """Whether the document was taken; otherwise it was refused in one line."""
    refusal = ""
    try:
        use(text)
    except GradtraceError as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert len(refusal) < 500
    return not refusal


@pytest.fixture
def saved(gradtrace: Runner) -> Path:
    script = gradtrace.write(TRAIN)
    gradtrace.here("show", "--to-end", "-o", "graph.json", script)
    gradtrace.here("check", "--record", "run.jsonl", "--baseline", "known.json", "--write-baseline", script)
    return gradtrace.directory


@pytest.mark.parametrize("what", ["graph.json", "run.jsonl", "known.json"])
def test_what_is_damaged_is_refused_or_read(what: str, saved: Path) -> None:
    chance = random.Random(0)
    use = {"graph.json": show, "run.jsonl": judge, "known.json": compare}[what]
    text = (saved / what).read_text()
    assert survives(use, text)
    refused = 0
    for _ in range(TRIES):
        if what == "run.jsonl":
            lines = text.splitlines()
            at = chance.randrange(len(lines))
            lines[at] = damaged(lines[at], chance)
            changed = "\n".join(lines) + "\n"
        else:
            changed = damaged(text, chance)
        refused += not survives(use, changed)
    assert refused > TRIES // 4
    shutil.rmtree(saved, ignore_errors=True)
