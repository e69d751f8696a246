"""Truths that hold for any script: random small ones are held to them.

Watched is as bare, bit for bit; `freed-graph` is found where torch refuses a freed graph, and nowhere else; `stale-grad`
where a reference count of uncleared gradients says so; a snapshot has the nodes, edges and leaves of a plain walk.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradtrace.host import script
from gradtrace.model.graph import Graph, Kind
from gradtrace.rules import Judge
from gradtrace.watcher.pictures.snapshot import Snapshots
from gradtrace.watcher.watch import Watch

PREAMBLE = """\
import torch
torch.manual_seed(0)
a, b = torch.rand(3, requires_grad=True), torch.rand(3, requires_grad=True)
one, two = torch.optim.SGD([a], 0.1, momentum=0.9), torch.optim.Adam([b], 0.1)
x = y = a * b
failed = ""
"""
ENDING = """\
result = [t.detach().clone() for t in (a, b, x, y) if t is not None] + [torch.rand(2)]
result += [t.grad.clone() for t in (a, b) if t.grad is not None]
"""

#: each saves something, so that torch refuses it once it is freed
MAKES = [
    "x = y * a",
    "y = x * b",
    "x = (x * y).exp()",
    "y = a * a",
    "y = x.sin() * b",
    "x = b.exp()",
    "x = torch.tanh(y * x)",
]
TURNS = ["x.sum().backward()", "y.prod().backward()", "(x * y).sum().backward(retain_graph=True)", "x = x.detach() * a"]
MORE = [
    *("one.step()", "two.step()", "one.zero_grad()", "two.zero_grad()", "y = y.detach()", "x = x[1:].repeat(3)[:3]"),
    *(
        "y = y.clone().mul_(2.0) * b",
        "with torch.no_grad(): y = x * 2.0",
        "g = torch.autograd.grad(x.sum(), a, retain_graph=True, allow_unused=True)",
    ),
]
FEW = settings(max_examples=60, deadline=None, derandomize=True)


@dataclass
class Run:
    values: dict[str, Any] = field(default_factory=dict)
    found: set[str] = field(default_factory=set)
    remarks: tuple[str, ...] = ()
    graphs: Sequence[Graph] = ()

    @property
    def result(self) -> list[torch.Tensor]:
        return self.values.get("result", [])


@contextmanager
def written(lines: Sequence[str]) -> Iterator[str]:
    """A script of these lines, of which those that torch refuses are passed over."""
    tried = [f"try:\n    {line}\nexcept RuntimeError as error:\n    failed += str(error)" for line in lines]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "script.py"
        path.write_text("\n".join([PREAMBLE, *tried, ENDING]))
        yield str(path)


def bare(lines: Sequence[str]) -> Run:
    with written(lines) as path:
        return Run(runpy.run_path(path))


def watched(lines: Sequence[str], snapshots: Snapshots | None = None) -> Run:
    argv, path_before, main = sys.argv[:], sys.path[:], sys.modules["__main__"]
    judge = Judge()
    try:
        with written(lines) as path, redirect_stderr(StringIO()) as said:
            program = script.load(path, [])
            watch = Watch(judge.see, user_roots=program.roots, snapshots=snapshots)
            ended = program.run(watch, lambda ended: ended.status)
            values = dict(vars(sys.modules["__main__"]))
            assert ended.how == "finished", said.getvalue()
    finally:
        sys.argv[:], sys.path[:], sys.modules["__main__"] = argv, path_before, main
    return Run(
        values, {finding.rule for finding in judge.findings}, watch.remarks, snapshots.graphs if snapshots else ()
    )


@FEW
@given(st.lists(st.sampled_from(MAKES + TURNS + MORE), min_size=2, max_size=14))
def test_watched_is_as_bare_and_freed_graphs_are_those_that_torch_refuses(lines: list[str]) -> None:
    plain, seen = bare(lines), watched(lines)
    assert seen.remarks == ()
    assert len(seen.result) == len(plain.result) > 0
    assert all(mine.equal(theirs) or mine.isnan().any() for mine, theirs in zip(seen.result, plain.result, strict=True))
    assert seen.values["failed"] == plain.values["failed"]
    assert ("freed-graph" in seen.found) is ("a second time" in plain.values["failed"])


ACCOUNTS = {
    "a.exp().sum().backward()": ("add", "a"),
    "b.exp().sum().backward()": ("add", "b"),
    "(a * b).sum().backward()": ("add", "ab"),
    "one.step()": ("use", "a"),
    "two.step()": ("use", "b"),
    "one.zero_grad()": ("clear", "a"),
    "two.zero_grad(set_to_none=False)": ("clear", "b"),
    "a.grad = None": ("clear", "a"),
}


def mixes(lines: Sequence[str]) -> bool:
    """Whether some step uses a sum of gradients of which an earlier step has used a part."""
    fresh, used = dict.fromkeys("ab", 0), dict.fromkeys("ab", 0)
    mixed = False
    for what, leaves in map(ACCOUNTS.__getitem__, lines):
        for leaf in leaves:
            if what == "add":
                fresh[leaf] += 1
            elif what == "clear":
                fresh[leaf] = used[leaf] = 0
            else:
                mixed |= fresh[leaf] > 0 and used[leaf] > 0
                used[leaf] += fresh[leaf]
                fresh[leaf] = 0
    return mixed


@FEW
@given(st.lists(st.sampled_from(list(ACCOUNTS)), min_size=3, max_size=14))
@example(["a.exp().sum().backward()", "one.step()", "a.exp().sum().backward()", "one.step()"])
def test_stale_gradients_are_those_of_a_reference_count(lines: list[str]) -> None:
    seen = watched(lines)
    assert seen.remarks == ()
    assert ("stale-grad" in seen.found) is mixes(lines)


@FEW
@given(st.lists(st.sampled_from([*MAKES, "x = x[1:].repeat(3)[:3]", "y = y.detach()"]), min_size=1, max_size=12))
def test_a_snapshot_is_what_a_plain_walk_finds(lines: list[str]) -> None:
    graph = watched([*lines, "root = (x + y).sum()", "root.backward()"], Snapshots()).graphs[0]
    root = bare([*lines, "root = (x + y).sum()"]).values["root"].grad_fn
    nodes, edges, waiting = {root}, 0, [root]
    while waiting:
        for child, _ in waiting.pop().next_functions:
            edges += child is not None
            if child is not None and child not in nodes:
                nodes.add(child)
                waiting.append(child)
    kinds = Counter(node.kind for node in graph.nodes)
    real = {node.id for node in graph.nodes if node.kind in (Kind.OP, Kind.LEAF)}
    assert kinds[Kind.LEAF] == sum(type(node).__name__ == "AccumulateGrad" for node in nodes)
    assert len(real) == len(nodes)
    assert sum(edge.user in real and edge.source in real for edge in graph.edges) == edges
