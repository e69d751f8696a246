"""DOT text on hand-written graphs, and what Graphviz makes of it."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import pytest

from gradtrace.errors import OutputError
from gradtrace.model.graph import Edge, Graph, Kind, Node, Saved, SavedState, TensorFact
from gradtrace.model.site import Site
from gradtrace.renderers.graph import dot

OP, LEAF, CONSTANT, CUT = Kind.OP, Kind.LEAF, Kind.CONSTANT, Kind.CUT
SVG = "{http://www.w3.org/2000/svg}"
TITLE = "{http://www.w3.org/1999/xlink}title"
ONE = (TensorFact((1,), "float32"),)
AT = (Site("train.py", 31, "<module>"),)
NASTY = [
    'say "hi"',
    r"C:\new\Node \N \G \l \E \T \H \L end\\",
    "back\\",
    r"quoted \" already",
    "<b>bold</b>",
    "<<table></table>>",
    "{a|b}",
    "&amp; &lt;b&gt; & ;",
    "größe 損失 🔥",
    "%s %n",
    "a -> b; }",
    "// no /* comment */ #",
    "node",
    "-1.5",
]


def graph(*nodes: Node, reads: Mapping[int, tuple[int, ...]], roots: tuple[int, ...] = (1,)) -> Graph:
    edges = tuple(Edge(user, source, i) for user, sources in reads.items() for i, source in enumerate(sources))
    return Graph(roots, nodes, edges, "backward", AT)


def small() -> Graph:
    """Everything there is: operations, leaves, a constant, a cut, saved tensors in all states, modules."""
    held, freed, modified = (Saved(f"self{i}", ONE[0], 4, state) for i, state in enumerate(SavedState))
    return graph(
        Node(1, OP, "MulBackward0", "loss", ONE, AT, saved=(held,), value="0.5"),
        Node(2, OP, "TanhBackward0", None, ONE, AT, "net.0.act", (freed,), tags=("freed",)),
        Node(3, OP, "ExpBackward0", None, ONE, AT, "net.1", (modified,), tags=("modified in place", "hook")),
        Node(4, LEAF, "", "w", ONE, grad="None"),
        Node(5, CONSTANT, "", "x", ONE),
        Node(6, CUT, "detach()", "h", ONE, AT),
        Node(7, OP, "SinBackward0", None, ONE, AT),
        Node(8, LEAF, "", "v", ONE, grad="zero"),
        reads={1: (2, 3), 2: (4, 5), 3: (4, 6), 6: (7,), 7: (8,)},
    )


def lstm(steps: int) -> Graph:
    """Steps of a cell that share three parameters."""
    names = "MulBackward0 SigmoidBackward0 TanhBackward0 AddBackward0 SplitBackward0 AddmmBackward0 MmBackward0".split()
    nodes, reads, size = [], {}, len(names)
    w, u, b = (steps * size + i for i in (1, 2, 3))
    for step in range(steps):
        h, o, t, c, s, a, m = (step * size + i for i in range(1, size + 1))
        after = step < steps - 1
        nodes += [Node(h + i, OP, name, None, ONE, AT, "cell") for i, name in enumerate(names)]
        reads |= {h: (o, t), o: (s,), t: (c,), c: (s, c + size) if after else (s,), s: (a,), a: (b, m, u)}
        reads[m] = (h + size, w) if after else (w,)
    leaves = [Node(number, LEAF, "", name, ONE, grad="None") for number, name in ((w, "w"), (u, "u"), (b, "b"))]
    return graph(*nodes, *leaves, reads=reads)


def svg_of(source: str, path: Path) -> ElementTree.Element:
    file = path / "graph.svg"
    dot.write(source, file, "svg")
    return ElementTree.fromstring(file.read_bytes())


def texts(svg: ElementTree.Element) -> list[str]:
    return [(text.text or "").replace("\xa0", " ") for text in svg.iter(f"{SVG}text")]


def tooltips(svg: ElementTree.Element) -> list[str]:
    return [link.attrib[TITLE] for link in svg.iter(f"{SVG}a") if TITLE in link.attrib]


def looks(source: str) -> dict[str, dict[str, str]]:
    """The attributes of each node in the DOT text."""
    found = {}
    for name, attributes in re.findall(r"^\s*(g\d+_n\w+) \[(.*)\]$", source, re.MULTILINE):
        found[name] = {key: value.strip('"') for key, value in re.findall(r'(\w+)=("(?:\\.|[^"\\])*"|\S+)', attributes)}
    return found


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_every_fact_is_in_the_picture(direction: Literal["forward", "backward"], tmp_path: Path) -> None:
    svg = svg_of(dot.source([small()], direction), tmp_path)
    shown = texts(svg)
    for text in (
        "loss = 0.5  [1]",
        "backward() at train.py:31",
        "8 nodes, 4 operations, 2 leaves, 1 constant, 1 cut, depth 5, 8 B saved for backward",
        "no gradient passes 1 cut: detach() (line 31)",
        *("net", "0.act", "1", "loss = 0.5", "MulBackward0", "[1]   line 31", "w", "[1]   grad None", "x", "hook"),
        *("detach() at train.py:31", "saved self0", "saved self1 already freed", "saved self2 modified in place"),
    ):
        assert text in shown, text
    told = "\n".join(tooltips(svg))
    for text in (
        "#1 loss = 0.5",
        "in net.0.act",
        "saves self0 [1] (4 B)",
        "cut: no gradient goes further",
        "grad zero",
    ):
        assert text in told, text


@pytest.mark.parametrize("text", [*NASTY, "two\nlines", "tab\there", "bell\x07 \x1b[31m \udc80"])
def test_no_text_of_the_user_is_read_as_dot(text: str, tmp_path: Path) -> None:
    nodes = (
        Node(1, OP, text, text, ONE, (Site(text, 3, text),), f"{text}.a", (Saved(text, ONE[0], 4),), value=text),
        Node(2, LEAF, "", text, ONE, grad=text, tags=(text,)),
        Node(3, CUT, text, text, ONE, tags=(text,), module=f"{text}.b"),
    )
    whole = Graph((1,), nodes, (Edge(1, 2, 0), Edge(1, 3, 1)), text, (Site(text, 1, text),), remarks=(text,))
    literal = text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    svg = svg_of(dot.source([whole, whole], "backward"), tmp_path)
    assert sum(literal in found for found in texts(svg)) >= 16
    assert sum(literal in found for found in tooltips(svg)) >= 12
    assert len(list(svg.iter(f"{SVG}g"))) > 20


def test_kinds_and_states_differ_in_shape_and_in_brightness() -> None:
    found = looks(dot.source([small()]))
    kinds = ["g1_n1", "g1_n2", "g1_n3", "g1_n4", "g1_n5", "g1_n6", "g1_n7", "g1_n1_s0"]
    outlines = [(found[name]["shape"], found[name]["style"]) for name in kinds]
    fills = [found[name].get("fillcolor", "none") for name in kinds]
    assert len(set(outlines)) == len(set(fills)) == len(kinds)


def test_arrows_follow_the_direction() -> None:
    forward, backward = dot.source([small()]), dot.source([small()], "backward")
    assert "g1_n4 -> g1_n2" in forward
    assert "rankdir=TB" in forward
    assert "g1_n2 -> g1_n4" in backward
    assert "rankdir=BT" in backward
    (no_gradient,) = (line for line in backward.splitlines() if "g1_n2 -> g1_n5" in line)
    assert "dir=none" in no_gradient
    (cut,) = (line for line in backward.splitlines() if "g1_n3 -> g1_n6" in line)
    assert "arrowhead=tee" in cut
    (behind,) = (line for line in backward.splitlines() if "g1_n7 -> g1_n8" in line)
    assert "dir=none" in behind


def test_a_leaf_is_drawn_once_for_each_node_that_reads_it() -> None:
    source = dot.source([small()])
    assert looks(source)["g1_n4"]["label"] == r"w\n[1]   grad None"
    assert looks(source)["g1_n4_2"]["label"] == "w"
    assert "g1_n4_2 -> g1_n3" in source
    square = dot.source([graph(Node(1, OP, "Mul", None, ONE), Node(2, LEAF, "", "w", ONE), reads={1: (2, 2)})])
    assert square.count("g1_n2 -> g1_n1") == 2
    assert "g1_n2_2" not in square


def test_modules_are_nested_boxes() -> None:
    modules = ["a.b.c", "a.b.d", "a.b", "e.f.g", "", "ab"]
    nodes = [Node(i, OP, f"Op{i}", None, ONE, module=module) for i, module in enumerate(modules, 1)]
    source = dot.source([graph(*nodes, reads={i: (i + 1,) for i in range(1, 6)})])
    inside, depth = {}, []
    for line in map(str.strip, source.splitlines()):
        if line.startswith("subgraph"):
            depth.append(line.split()[1])
        elif line == "}" and depth:
            depth.pop()
        elif node := re.match(r"g1_n(\d) \[", line):
            inside[int(node[1])] = len(depth)
    assert inside == {1: 2, 2: 2, 3: 1, 4: 1, 5: 0, 6: 1}
    for label in ("label=c", "label=d", 'label="a.b"', 'label="e.f.g"', "label=ab"):
        assert label in source


def test_many_saved_tensors_stand_in_the_labels() -> None:
    saved = Saved("result", ONE[0], 4)
    nodes = [Node(i, OP, "TanhBackward0", None, ONE, saved=(saved,)) for i in range(1, 40)]
    source = dot.source([graph(*nodes, reads={i: (i + 1,) for i in range(1, 39)})])
    assert source.count("shape=note") == 0
    assert source.count(r"saves result [1]") >= 39


def test_several_outputs_and_several_graphs(tmp_path: Path) -> None:
    split = graph(Node(1, OP, "Add", "y", ONE), Node(2, OP, "Split", None, ONE * 2), reads={1: (2,)})
    source = dot.source([Graph((1,), split.nodes, (Edge(1, 2, 0, 1),)), small()])
    assert 'label="output 1"' in source
    assert source.count("subgraph cluster_g1 {") == source.count("subgraph cluster_g2 {") == 1
    assert {"y  [1]", "loss = 0.5  [1]"} <= set(texts(svg_of(source, tmp_path)))


def test_edges_of_a_picture() -> None:
    assert dot.source([]).startswith("digraph")
    alone = Graph((1,), (Node(1, LEAF, "", None, (), grad="None"),), ())
    assert looks(dot.source([alone]))["g1_n1"]["label"] == "grad None"
    assert dot.source([Graph((), (), ())])


def test_the_text_is_the_same_each_time() -> None:
    assert dot.source([small(), lstm(3)]) == dot.source([small(), lstm(3)])


def test_a_recurrent_net_of_100_steps_is_laid_out_in_seconds(tmp_path: Path) -> None:
    start = time.monotonic()
    assert dot.write(dot.source([lstm(100)]), tmp_path / "graph.svg", "svg") == "dot"
    assert time.monotonic() - start < 15


@pytest.mark.parametrize(("format", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_formats(format: str, magic: bytes, tmp_path: Path) -> None:
    file = tmp_path / f"graph.{format}"
    file.write_text("of an earlier run")
    dot.write(dot.source([small()]), file, format)
    assert file.read_bytes().startswith(magic)
    assert os.listdir(tmp_path) == [file.name]


def test_a_link_is_written_through_and_a_device_directly(tmp_path: Path) -> None:
    (tmp_path / "real.svg").touch()
    (tmp_path / "link.svg").symlink_to("real.svg")
    dot.write("digraph {}", tmp_path / "link.svg", "svg")
    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "real.svg").stat().st_size
    dot.write("digraph {}", Path("/dev/null"), "svg")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("where", ["missing/graph.svg", "."])
def test_a_file_that_cannot_be_written(where: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write") as caught:
        dot.write("digraph {}", tmp_path / where, "svg")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("source", "format"), [("digraph {", "svg"), ("digraph {}", "nonsense")])
def test_what_graphviz_refuses(source: str, format: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"cannot draw .*dot: ") as caught:
        dot.write(source, tmp_path / "graph.svg", format)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_without_graphviz_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OutputError, match=r"apt-get install graphviz.*brew.*conda.*-o graph.dot") as caught:
        dot.write("digraph {}", tmp_path / "graph.svg", "svg")
    assert "\n" not in str(caught.value)


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\necho {name} >> {folder}/calls\n{script}\n")
    (folder / name).chmod(0o755)


def test_when_dot_takes_too_long_sfdp_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs := tmp_path / "bin").mkdir()
    program(programs, "dot", f"echo $$ > {programs}/pid; exec sleep 60")
    program(programs, "sfdp", "echo '<svg/>'")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    assert dot.write("digraph {}", tmp_path / "graph.svg", "svg", seconds=1) == "sfdp"
    assert (tmp_path / "graph.svg").read_text() == "<svg/>\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((programs / "pid").read_text()), 0)


def test_when_no_layout_comes_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs := tmp_path / "bin").mkdir()
    for name in ("dot", "sfdp"):
        program(programs, name, "exec sleep 60")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(OutputError, match=r"no layout within 1 seconds.*-o graph.dot.*fewer steps"):
        dot.write("digraph {}", tmp_path / "graph.svg", "svg", seconds=1)
    assert (programs / "calls").read_text().split() == ["dot", "sfdp"]
    assert not (tmp_path / "graph.svg").exists()


def test_sfdp_takes_what_is_too_much_for_dot(tmp_path: Path) -> None:
    options = ["sfdp", "-Tsvg", "-Goverlap=scale", "-Gsplines=line"]
    done = subprocess.run(options, input=dot.source([lstm(20)]).encode(), capture_output=True, check=True)
    assert len(list(ElementTree.fromstring(done.stdout).iter(f"{SVG}text"))) > 200
