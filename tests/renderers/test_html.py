"""The page: what is in it, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, Browser
from building import SHAPE, encoder

from gradtrace import cli
from gradtrace.graphs import fold
from gradtrace.graphs.outline import outline
from gradtrace.model.finding import Ended, Finding, Level, Related, Report
from gradtrace.model.graph import Gradient, Graph, Saved
from gradtrace.model.site import Site
from gradtrace.renderers.graph import html
from gradtrace.renderers.paper import Paper


@pytest.fixture(autouse=True)
def _source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["import torch", "def forward(x):", "    return net(x)", "loss = forward(x).mean()", "loss.backward()"]
    (tmp_path / "train.py").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)


def layers(count: int, **more: Any) -> Graph:
    """A net of equal layers at a line of a file that is there, with a loss of 0.5."""
    graph = encoder(count, {number: {"saved": (Saved("self", SHAPE[0], 24),)} for number in range(count)})
    stack = (Site(str(Path.cwd() / "train.py"), 3, "forward"),)
    nodes = [node._replace(stack=stack) if node.stack else node for node in graph.nodes]
    nodes[0] = nodes[0]._replace(name="loss", value="0.5", **more)
    place = (Site(str(Path.cwd() / "train.py"), 5, "<module>"),)
    return replace(graph, nodes=tuple(nodes), request="backward", stack=place)


def data(page: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document


class TestOutline:
    def test_has_a_room_for_each_repetition_its_turns_and_its_layers(self) -> None:
        found = outline(layers(4), 2)
        layers_ = [
            (node.box.times, node.box.more, block.inside, block.open)
            for block, node in zip(found.blocks, found.boxes, strict=True)
            if node.op == "Layer" and node.box
        ]
        whole = next(
            block.number
            for block, node in zip(found.blocks, found.boxes, strict=True)
            if node.box and node.box.times == 4
        )
        assert layers_[:3] == [(4, False, 1, True), (3, True, whole, False), (1, False, whole, True)]
        assert layers_[3:] == [(1, False, whole + 1, False)] * 3
        assert all(block.inside < block.number for block in found.blocks)

    def test_puts_every_node_into_the_block_of_its_users(self) -> None:
        graph = layers(4)
        found = outline(graph)
        inside = {block.number: block.inside for block in found.blocks}
        members = {node.id: node.box.members for node in found.boxes if node.box}
        for node in graph.nodes:
            block = found.block_of[node.id]
            while block:
                assert node.id in members[block]
                block = inside[block]


class TestSize:
    def test_a_large_graph_is_folded_for_good(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(html, "_MOST_NODES", 200)
        page = html.page([fold.fitted(layers(100), lambda one: len(one.nodes), html.PAGE)])
        (graph,) = data(page)["graphs"]
        assert 0 < len(graph["nodes"]) <= html.PAGE
        assert graph["blocks"] == []
        assert graph["header"][-1].startswith("too large to be opened here: ")

    def test_one_that_is_large_even_when_folded_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(html, "_MOST_BYTES", 60_000)
        page = html.page([layers(3), layers(100), layers(3)])
        first, large, last = data(page)["graphs"]
        assert first["blocks"]
        assert last["blocks"]
        assert large["nodes"] == []
        assert large["header"][-1].startswith("left out, since it is too large for a page")


class TestPage:
    def test_is_one_file_that_asks_for_nothing(self) -> None:
        page = html.page([layers(3)])
        assert len(page) < 2_500_000
        assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!data:)\w", page.partition("<script>")[0])
        assert "default-src 'none'" in page
        for licence in ("Copyright (c) 2016-2026, The Cytoscape Consortium.", "Copyright (c) Michael Daines"):
            assert licence in page

    def test_has_nodes_with_their_facts_and_source_lines(self) -> None:
        document = data(html.page([replace(layers(3), remarks=("a remark",))]))
        (graph,) = document["graphs"]
        add = next(node for node in graph["nodes"] if ["saved", "self [2, 3], 24 B"] in node["facts"])
        assert document["stacks"][add["stack"]] == [["train.py", 3, "train.py:3  forward"]]
        assert document["sources"]["train.py"]["3"] == "    return net(x)"
        assert "a remark" in graph["header"]
        assert graph["title"] == "loss = 0.5"

    def test_opens_at_first_what_the_folded_graph_shows(self) -> None:
        whole = layers(6)
        for depth in range(4):
            (graph,) = data(html.page([fold.folded(whole, depth)]))["graphs"]
            assert sum(block["open"] for block in graph["blocks"]) == sum(
                block.open for block in outline(whole, depth).blocks
            )

    def test_lets_no_name_end_its_script(self) -> None:
        evil = layers(2)
        first = evil.nodes[0]._replace(name="</script><script>alert(1)</script>{{style}}")
        page = html.page([replace(evil, nodes=(first, *evil.nodes[1:]))])
        assert "<script>alert" not in page
        assert data(page)["graphs"][0]["title"].startswith("</script>")


def judged(*graphs: Graph) -> Report:
    site = Site(str(Path.cwd() / "train.py"), 3, "forward")
    call = Site(str(Path.cwd() / "train.py"), 5, "<module>")
    finding = Finding("stale-grad", Level.ERROR, "`w` is stale", "clear it", site, (Related(call, "used here"),), 3)
    return Report("train.py", (finding,), Ended("finished"), "2.13.0", 1, 0, 1, graphs=graphs)


class TestFindings:
    def test_are_in_the_page_with_their_places(self) -> None:
        document = data(html.render(judged(layers(3)), Paper()))
        (finding,) = document["findings"]
        assert (finding["rule"], finding["level"], finding["help"]) == ("stale-grad", "error", "clear it")
        assert document["stacks"][finding["stack"]] == [["train.py", 3, "train.py:3  forward"]]
        assert [message for _, message in finding["related"]] == ["used here"]
        assert document["title"] == "train.py: 1 finding in 1 backward call"

    def test_are_none_where_nothing_was_judged(self) -> None:
        assert data(html.page([layers(3)]))["findings"] is None

    def test_come_from_check(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "bad.py").write_text(
            "import torch\nw = torch.ones(2, requires_grad=True)\nloss = w.exp().sum()\nloss.backward()\nloss.backward()\n"
        )
        monkeypatch.setattr(sys, "argv", ["gradtrace", "check", "-o", "report.html", "bad.py"])
        monkeypatch.setattr(sys, "path", sys.path[:])
        monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        document = data((tmp_path / "report.html").read_text(encoding="utf-8"))
        assert ended.value.code == 1
        assert [finding["rule"] for finding in document["findings"]] == ["freed-graph"]
        assert [graph["title"] for graph in document["graphs"]] == ["loss = 5.43656", "loss = 5.43656"]
        assert "ended with RuntimeError" in document["title"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


class TestBrowser:
    @pytest.fixture
    def page(self, browser: Browser, tmp_path: Path) -> Browser:
        """The page of eight layers, folded to depth 1, laid out."""
        gradient = Gradient(1e-9, 0.0, 0.5, 0.0)
        graph = fold.folded(layers(8, gradient=gradient), 1)
        (tmp_path / "graph.html").write_text(html.page([graph]), encoding="utf-8")
        browser.open(tmp_path / "graph.html")
        browser.run("new Promise((done) => { const wait = () => viz ? done() : setTimeout(wait, 10); wait(); })")
        return browser

    def test_opens_with_all_of_it_in_the_window(self, page: Browser) -> None:
        page.run("setAll(true)")
        page.run("fit()")
        inside = (
            "b = cy.elements().renderedBoundingBox(), b.x1 > 0 && b.y1 > 0 && b.x2 < cy.width() && b.y2 < cy.height()"
        )
        assert page.run("cy.zoom()") < 0.45, "such a graph was once opened at its end"
        assert page.run(inside)

    @staticmethod
    def shapes(page: Browser) -> list[str]:
        found: list[str] = page.run("cy.nodes().map((node) => node.data('label').split('\\n')[0]).sort()")
        return found

    def test_opens_without_a_complaint_or_a_request(self, page: Browser, tmp_path: Path) -> None:
        assert any("× " in name for name in self.shapes(page))
        assert page.run("document.getElementById('panel').textContent").startswith("loss = 0.5")
        assert page.requests == [(tmp_path / "graph.html").resolve().as_uri()]
        assert page.complaints == []
        assert page.picture().startswith(b"\x89PNG")

    def test_boxes_open_and_close(self, page: Browser) -> None:
        before = self.shapes(page)
        page.run("choose(cy.nodes('[kind = \"box\"]').filter((node) => node.data('label').includes('×')).id())")
        page.press("Enter")
        opened = self.shapes(page)
        assert len(opened) > len(before)
        page.press("Enter")
        assert self.shapes(page) == before
        page.press("o")
        assert "TBackward0" in self.shapes(page)
        page.press("c")
        assert len(self.shapes(page)) == 2
        assert page.complaints == []

    def test_searches_and_reveals_what_is_hidden(self, page: Browser) -> None:
        page.press("/", *"layers.2.up weight")
        assert page.run("[...document.querySelectorAll('#hits li')].map((item) => item.textContent)") == [
            "encoder.layers.2.up.weight"
        ]
        page.press("Enter")
        assert page.run("cy.nodes(':selected').map((node) => node.data('title'))") == ["encoder.layers.2.up.weight"]
        assert "kindleaf" in page.run("document.getElementById('panel').textContent")
        ways = page.run("cy.nodes('.way').map((node) => node.data('title'))")
        assert "loss = 0.5  MeanBackward0" in ways
        assert not any("layers.1" in title for title in ways)
        assert page.complaints == []

    def test_shows_the_source_line_of_what_is_chosen(self, page: Browser) -> None:
        page.run("choose('n1')")
        assert page.run("document.querySelector('#panel pre .here').textContent") == "3    return net(x)"
        page.press("Escape")
        assert page.run("cy.nodes(':selected').length") == 0

    def test_lists_and_marks_findings(self, browser: Browser, tmp_path: Path) -> None:
        (tmp_path / "report.html").write_text(html.render(judged(layers(3)), Paper()), encoding="utf-8")
        browser.open(tmp_path / "report.html")
        browser.run("new Promise((done) => { const wait = () => viz ? done() : setTimeout(wait, 10); wait(); })")
        panel = browser.run("document.getElementById('panel').textContent")
        assert "error stale-grad  (3 times)`w` is stale" in panel
        assert browser.run("cy.nodes('[?found]').length") > 0
        browser.run("document.querySelector('#panel a').click()")
        assert browser.run("cy.nodes(':selected').length") == 1
        assert browser.complaints == []

    def test_shows_findings_without_a_graph(self, browser: Browser, tmp_path: Path) -> None:
        (tmp_path / "report.html").write_text(html.render(judged(), Paper()), encoding="utf-8")
        browser.open(tmp_path / "report.html")
        browser.run("new Promise((done) => { const wait = () => viz ? done() : setTimeout(wait, 10); wait(); })")
        assert "`w` is stale" in browser.run("document.getElementById('panel').textContent")
        assert browser.complaints == []

    def test_follows_edges_zooms_and_turns_dark(self, page: Browser) -> None:
        page.run("choose('n1')")
        page.press("ArrowUp")
        assert page.run("cy.nodes(':selected').outgoers('node').map((node) => node.id())") == ["n1"]
        zoom = page.run("cy.zoom()")
        page.press("+")
        assert page.run("cy.zoom()") == pytest.approx(1.25 * zoom)
        theme = page.run("theme")
        page.press("d")
        assert page.run("document.documentElement.dataset.theme") == {"dark": "light", "light": "dark"}[theme]
        assert page.complaints == []
