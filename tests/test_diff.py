"""`gradtrace diff`: what is matched, what is told, and the exit codes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from building import CONSTANT, CUT, Building, encoder

from gradtrace import cli
from gradtrace.graphs.diff import Version, compared, version
from gradtrace.model.graph import Graph, Node, TensorFact

ADD = ("AddBackward0", "encoder.layers.2")


def told(before: Graph, after: Graph) -> list[tuple[str, str, str]]:
    """Sign, module and text of each change."""
    (pair,) = compared(version("a", [before]), version("b", [after]))
    return [(one.sign, one.module, one.text) for one in pair.changes]


def changed(graph: Graph, change: Callable[[Node], Node]) -> Graph:
    return replace(graph, nodes=tuple(map(change, graph.nodes)))


def of_one(**values: object) -> Callable[[Node], Node]:
    """Changes the sum of one layer."""
    return lambda node: node._replace(**values) if (node.op, node.module) == ADD else node  # type: ignore[arg-type]


class TestGraphs:
    def test_that_are_equal_have_no_change(self) -> None:
        assert told(encoder(4), encoder(4)) == []

    def test_of_other_ids_values_and_lines_are_equal(self) -> None:
        moved = changed(
            encoder(4),
            lambda node: node._replace(
                value="7", stack=tuple(site._replace(line=site.line + 10) for site in node.stack)
            ),
        )
        texts = {("/train.py", line): f"line {line}" for line in range(40)}
        later = {("/train.py", line + 10): f"line {line}" for line in range(40)}
        (pair,) = compared(Version("a", (encoder(4),), texts), Version("b", (moved,), later))
        assert pair.equal

    def test_with_another_operation_at_the_same_place(self) -> None:
        after = changed(encoder(4), of_one(op="SubBackward0"))
        assert told(encoder(4), after) == [("~", "encoder.layers.2", "AddBackward0 → SubBackward0")]

    @pytest.mark.parametrize(
        ("values", "text"),
        [
            ({"outputs": (TensorFact((9, 3), "float32"),)}, "AddBackward0: [2, 3] → [9, 3]"),
            ({"outputs": (TensorFact((2, 3), "float16"),)}, "AddBackward0: [2, 3] → [2, 3] float16"),
            ({"tags": ("freed",)}, "AddBackward0: already freed"),
            ({"tags": ("in-place",)}, "AddBackward0: +in-place"),
        ],
    )
    def test_with_another_fact(self, values: dict[str, object], text: str) -> None:
        after = changed(encoder(4), of_one(**values))
        assert told(encoder(4), after) == [("~", "encoder.layers.2", text)]
        back = told(after, encoder(4))
        assert len(back) == 1

    def test_with_a_module_more_or_less(self) -> None:
        assert told(encoder(4), encoder(3)) == [
            ("-", "encoder.layers", "encoder.layers.3  Layer: 6 operations and 2 leaves gone")
        ]
        assert told(encoder(3), encoder(4)) == [
            ("+", "encoder.layers", "encoder.layers.3  Layer: 6 operations and 2 leaves more")
        ]

    def test_with_an_operation_more_or_less(self) -> None:
        plain, more = Building(), Building()
        plain.op("Sum", plain.op("Sin", plain.end("w")))
        more.op("Sum", more.op("Relu", more.op("Sin", more.end("w")), line=2))
        assert told(plain.graph(), more.graph()) == [("+", "", "ReluBackward0  [2, 3]")]
        assert told(more.graph(), plain.graph()) == [("-", "", "ReluBackward0")]

    def test_with_a_way_that_is_cut(self) -> None:
        whole, cut = Building(), Building()
        whole.op("Mul", whole.op("Sin", whole.end("v")), whole.op("Cos", whole.end("w")))
        cut.op("Mul", cut.op("Sin", cut.end("v")), cut.end("h", CUT, cut.end("", CONSTANT)))
        assert told(whole.graph(), cut.graph()) == [
            ("-", "", "CosBackward0"),
            ("~", "", "MulBackward0: input 1 is cut by detach()"),
            ("-", "", "leaf w  [2, 3]: no gradient reaches it"),
        ]
        assert ("~", "", "MulBackward0: input 1 is no longer cut by detach()") in told(cut.graph(), whole.graph())

    def test_that_are_rewired(self) -> None:
        def made(swap: bool) -> Graph:
            building = Building()
            sin, cos = building.op("Sin", building.end("w")), building.op("Cos", building.end("v"))
            building.op("Sub", *((cos, sin) if swap else (sin, cos)))
            return building.graph()

        assert told(made(False), made(True)) == [
            ("~", "", "SubBackward0: input 0 reads CosBackward0 instead of SinBackward0"),
            ("~", "", "SubBackward0: input 1 reads SinBackward0 instead of CosBackward0"),
        ]

    def test_with_a_frozen_leaf(self) -> None:
        def frozen(node: Node) -> Node:
            return node._replace(kind=CONSTANT) if node.name == "encoder.first.weight" else node

        assert told(encoder(2), changed(encoder(2), frozen)) == [
            ("~", "encoder.first", "TBackward0: input 0 encoder.first.weight no longer requires grad"),
            ("-", "encoder.first", "leaf encoder.first.weight  [2, 3]: no gradient reaches it"),
        ]

    def test_with_another_request(self) -> None:
        after = replace(encoder(2), retain_graph=True)
        assert told(encoder(2), after) == [("~", "", "retain_graph: False → True")]

    def test_more_of_them(self) -> None:
        one, two = encoder(2), replace(encoder(3), request="grad")
        first, second = compared(version("a", [one]), version("b", [one, two]))
        assert first.equal
        assert (second.before, second.after, second.equal) == (None, two, False)

    def test_of_thousands_of_nodes_are_compared_in_no_time(self) -> None:
        assert len(told(encoder(400), changed(encoder(400), of_one(op="SubBackward0")))) == 1


TRAIN = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
loss = net(torch.ones(4, 2)).mean()
loss.backward()
print("trained")
"""


class TestCommand:
    def run(self, capfd: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
        patch.setattr(sys, "argv", ["gradtrace", "diff", *words])
        patch.setattr(sys, "path", sys.path[:])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfd.readouterr()
        return int(ended.value.code or 0), out, err

    def test_runs_scripts_and_reads_graphs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("a.py").write_text(TRAIN)
        Path("b.py").write_text("# a comment\n" + TRAIN.replace("nn.ReLU()", "nn.Tanh()"))
        subprocess.run(
            [sys.executable, "-m", "gradtrace", "show", "-o", "a.json", "a.py"], capture_output=True, check=True
        )
        status, out, err = self.run(capfd, monkeypatch, "a.json", "b.py")
        assert (status, err) == (1, "trained\n")
        assert out.splitlines() == [
            "loss  backward() at b.py:7  was loss  backward() at a.py:6",
            "  1 changed; 11 → 11 nodes",
            "└─ net.1",
            "   └─ ~ ReluBackward0 → TanhBackward0  line 6  loss = net(torch.ones(4, 2)).mean()",
        ]
        status, out, err = self.run(capfd, monkeypatch, "a.json", "a.json")
        assert (status, out, err) == (0, "no difference between a.json and a.json: 1 graph, 11 nodes\n", "")

    @pytest.mark.parametrize(
        ("words", "told_"),
        [
            (("missing.json", "missing.json"), "cannot read missing.json: No such file or directory"),
            (("empty.py", "empty.py"), "there is no graph of empty.py to compare: its run ended with exit status 4"),
        ],
    )
    def test_tells_what_cannot_be_compared(
        self,
        words: tuple[str, ...],
        told_: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("empty.py").write_text("")
        status, out, err = self.run(capfd, monkeypatch, *words)
        assert (status, out) == (2, "")
        assert err.splitlines()[-1] == f"gradtrace: {told_}"

    def test_tells_changes_of_equal_modules_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        from gradtrace.graphs import document

        monkeypatch.chdir(tmp_path)
        Path("a.json").write_text(document.written([encoder(6)]))
        wide = changed(
            encoder(6),
            lambda node: node._replace(outputs=(TensorFact((5,), "float32"),)) if node.op == "ReluBackward0" else node,
        )
        Path("b.json").write_text(document.written([wide]))
        status, out, _ = self.run(capfd, monkeypatch, "a.json", "b.json")
        assert status == 1
        assert "└─ encoder.layers.*  × 6\n   └─ ~ ReluBackward0: [2, 3] → [5]" in out

    def test_counts_equal_changes_of_a_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        from gradtrace.graphs import document

        def chain(more: int) -> Graph:
            b = Building()
            at = b.op("Mul", b.end("w"))
            for _ in range(more):
                at = b.op("Tanh", at)
            b.op("Sum", at)
            return b.graph()

        monkeypatch.chdir(tmp_path)
        Path("a.json").write_text(document.written([chain(0)]))
        Path("b.json").write_text(document.written([chain(7)]))
        _, out, _ = self.run(capfd, monkeypatch, "a.json", "b.json")
        assert out.count("+ TanhBackward0") == 1
        assert "+ TanhBackward0  [2, 3]  × 7  line 1" in out
        assert "7 new" in out
