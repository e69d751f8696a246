"""`gradtrace.show`, `gradtrace.dot` and `gradtrace.watch`, from Python."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import gradtrace
from gradtrace.errors import UsageError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def deep(layers: int = 12) -> torch.Tensor:
    net = nn.Sequential(*(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)) for _ in range(layers)))
    return net(torch.ones(1, 2)).sum()


class TestShow:
    def test_is_the_tree_of_a_tensor(self) -> None:
        weight = torch.ones(3, requires_grad=True)
        loss = (weight.exp() * 2).sum()
        shown = gradtrace.show(loss)
        assert str(shown).splitlines()[0] == "loss = 16.3097  scalar  as it is now"
        assert "● ExpBackward0  [3]  saves result [3]\n└─◆ weight  [3]  leaf, grad None" in repr(shown)

    def test_is_rich_in_a_notebook(self) -> None:
        weight = torch.ones(3, requires_grad=True)
        text = gradtrace.show(weight.exp())._repr_html_()
        assert text.startswith("<pre")
        assert re.search(r'<span style="[^"]*color: #[^"]*">◆ weight', text)

    def test_folds_as_asked(self) -> None:
        assert len(str(gradtrace.show(deep())).splitlines()) < 65
        assert len(str(gradtrace.show(deep(), depth=99)).splitlines()) > 20
        assert "saved for backward" in str(gradtrace.show(deep(), saved=True))

    def test_takes_several_tensors(self) -> None:
        weight = torch.ones(3, requires_grad=True)
        assert len(gradtrace.show(weight.sum(), weight.prod()).graphs[0].roots) == 2

    @pytest.mark.parametrize("tensors", [(), (torch.ones(2),), ("loss",)])
    def test_needs_a_tensor_with_a_graph(self, tensors: tuple[torch.Tensor, ...]) -> None:
        with pytest.raises(UsageError):
            gradtrace.show(*tensors)
        with pytest.raises(UsageError):
            gradtrace.dot(*tensors)

    def test_keeps_nothing_alive_and_changes_nothing(self) -> None:
        weight = torch.ones(3, requires_grad=True)
        loss = weight.exp().sum()
        shown = gradtrace.show(loss)
        loss.backward()
        assert weight.grad is not None
        assert "already freed" not in str(shown)
        assert "already freed" in str(gradtrace.show(loss))


class TestDot:
    def test_is_a_drawing(self) -> None:
        drawing = gradtrace.dot(torch.ones(3, requires_grad=True).exp().sum())
        assert drawing.source.startswith("digraph ")
        assert repr(drawing) == "<drawing of 3 nodes; save it with .save('graph.svg') or .save('graph.html')>"

    @pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz")
    def test_is_svg_in_a_notebook(self) -> None:
        drawing = gradtrace.dot(torch.ones(3, requires_grad=True).exp().sum())
        assert "<svg" in str(drawing._repr_svg_())
        assert drawing._repr_html_() is None

    def test_is_a_page_in_a_notebook_without_graphviz(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "")
        drawing = gradtrace.dot(torch.ones(3, requires_grad=True).exp().sum())
        assert drawing._repr_svg_() is None
        assert str(drawing._repr_html_()).startswith("<iframe srcdoc=")

    @pytest.mark.parametrize(
        ("name", "start"),
        [("a.txt", "loss"), ("a.json", "{"), ("a.dot", "digraph"), ("a.html", "<!doctype"), ("a.svg", "<?xml")],
    )
    def test_is_saved_in_the_format_of_the_ending(self, name: str, start: str) -> None:
        if name == "a.svg" and shutil.which("dot") is None:
            pytest.skip("no Graphviz")
        loss = torch.ones(3, requires_grad=True).exp().sum()
        gradtrace.dot(loss).save(name)
        assert Path(name).read_text(encoding="utf-8").startswith(start)

    def test_is_not_saved_as_what_nobody_knows(self) -> None:
        with pytest.raises(UsageError, match=r"a\.doc: graphs are saved as \.txt, "):
            gradtrace.dot(torch.ones(3, requires_grad=True).exp()).save("a.doc")


class TestWatch:
    def test_finds_what_check_finds_and_takes_each_graph_once(self) -> None:
        net = nn.Sequential(nn.Linear(2, 1))
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        with gradtrace.watch() as watched:
            for _ in range(3):
                loss = net(torch.ones(4, 2)).sum()
                loss.backward()
                optimizer.step()
        assert [finding.rule for finding in watched.findings] == ["stale-grad"]
        assert len(watched.graphs) == 1
        assert "in net.0" in str(watched.show())
        assert watched.dot().source.count("AddmmBackward0") > 0

    def test_knows_lines_and_modules_of_what_is_looked_at_inside(self) -> None:
        net = nn.Sequential(nn.Linear(2, 1))
        with gradtrace.watch():
            out = net(torch.ones(4, 2))
            inside = str(gradtrace.show(out))
        assert re.search(r"AddmmBackward0  \[4, 1\]  line \d+  in net.0", inside)
        assert " line " not in str(gradtrace.show(out))

    def test_of_nothing_is_empty(self) -> None:
        with gradtrace.watch() as watched:
            left = torch.ones(2, requires_grad=True).exp()
        assert (watched.findings, watched.graphs) == ((), ())
        assert left.requires_grad

    def test_ends_with_an_error_of_the_block(self) -> None:
        loss = torch.ones(2, requires_grad=True).exp().sum()
        watched = gradtrace.watch()
        loss.backward()
        with pytest.raises(RuntimeError, match="second time"), watched:
            loss.backward()
        assert [graph.request for graph in watched.graphs] == ["backward"]


def test_the_import_is_free_and_loads_torch_when_it_is_used() -> None:
    code = (
        "import sys, gradtrace; assert 'torch' not in sys.modules; first = gradtrace.watch(); "
        "print(type(first).__name__, type(gradtrace.watch()).__name__, gradtrace.show.__name__)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("watch watch show\n", "")


class TestWhy:
    def test_tells_the_life_of_a_parameter(self) -> None:
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with gradtrace.watch() as w:
            for _ in range(12):
                loss = model(torch.ones(2, 3)).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            inside = str(w.why("model[0].weight"))
        assert "model.0.weight  [4, 3]  held by SGD" in inside
        assert "iterations 1-12  loss.backward()" in inside
        assert "path from the loss: loss ← model.2 ← model.1 ← model.0 ← model.0.weight" in inside
        assert "4 of 4 parameters train" in str(w.why())
        assert "<pre" in w.why()._repr_html_()
        with pytest.raises(UsageError, match=r"did you mean model\.0\.weight"):
            w.why("model.0.wieght")
