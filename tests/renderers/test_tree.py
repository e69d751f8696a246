"""The tree for people, on hand-written graphs."""

from __future__ import annotations

import io
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest
from rich.console import Console

from gradtrace.model.graph import Edge, Graph, Kind, Node, Saved, SavedState, TensorFact
from gradtrace.model.site import Site, Stack
from gradtrace.renderers.graph import tree

SOURCE = """\
import torch
from gan import D, G, bce
w1, b = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
x1, y = torch.ones(1), torch.ones(1)
z = w1 * x1 + b
y_hat = torch.sigmoid(z)
loss = torch.nn.functional.binary_cross_entropy(y_hat, y)
loss.backward()
"""
OP, LEAF, CONSTANT, CUT = Kind.OP, Kind.LEAF, Kind.CONSTANT, Kind.CUT


@pytest.fixture(autouse=True)
def _in_the_directory_of_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)


def at(line: int, file: str = "train.py") -> Stack:
    return (Site(str(Path.cwd() / file), line, "<module>"),)


def tensor(*shape: int, dtype: str = "float32", device: str = "cpu") -> TensorFact:
    return TensorFact(shape, dtype, device)


def saved(name: str, *shape: int, state: SavedState = SavedState.HELD) -> Saved:
    return Saved(name, tensor(*shape), 4 * max(sum(shape), 1), state)


def graph(*nodes: Node, reads: Mapping[int, tuple[int, ...]], roots: tuple[int, ...] = (1,), line: int = 8) -> Graph:
    edges = tuple(Edge(user, source, i) for user, sources in reads.items() for i, source in enumerate(sources))
    return Graph(roots, nodes, edges, "backward", at(line))


def bce() -> Graph:
    one = (tensor(1),)
    return graph(
        Node(
            1, OP, "BinaryCrossEntropyBackward0", "loss", (tensor(),), at(7),
            saved=(saved("self", 1), saved("target", 1)), value="0.6931",
        ),
        Node(2, OP, "SigmoidBackward0", "y_hat", one, at(6), saved=(saved("result", 1),)),
        Node(3, CONSTANT, "", "y", one),
        Node(4, OP, "AddBackward0", "z", one, at(5)),
        Node(5, OP, "MulBackward0", None, one, at(5), saved=(saved("self", 1), saved("other", 1))),
        Node(6, LEAF, "", "b", one, grad="None"),
        Node(7, LEAF, "", "w1", one, grad="None"),
        Node(8, CONSTANT, "", "x1", one),
        reads={1: (2, 3), 2: (4,), 4: (5, 6), 5: (7, 8)},
    )  # fmt: skip


def gan() -> Graph:
    wide = (tensor(64, 32),)
    return graph(
        Node(1, OP, "MeanBackward0", "loss_d", (tensor(),), at(43), value="1.39"),
        Node(2, OP, "MmBackward0", None, (tensor(64, 1),), at(20, "gan.py"), "fc", (saved("self", 64, 32),)),
        Node(3, CUT, "detach()", "fake", wide, at(41)),
        Node(4, LEAF, "", "D.fc.weight", (tensor(32, 1),), grad="zero"),
        Node(5, OP, "TanhBackward0", "fake", wide, at(15, "gan.py"), "out", (saved("result", 64, 32),)),
        Node(6, OP, "MmBackward0", None, wide, at(14, "gan.py"), "fc"),
        Node(7, CONSTANT, "", "noise", wide),
        Node(8, LEAF, "", "G.fc.weight", (tensor(32, 32),), grad="accumulated"),
        reads={1: (2,), 2: (3, 4), 3: (5,), 5: (6,), 6: (7, 8)},
        line=44,
    )


def residual(blocks: int) -> Graph:
    """`x = x + tanh(x)` again and again."""
    nodes, reads = [], {}
    for block in range(blocks):
        first = 2 * block + 1
        nodes.append(Node(first, OP, "AddBackward0", "x", (tensor(3),), at(3)))
        nodes.append(Node(first + 1, OP, "TanhBackward0", None, (tensor(3),), at(4)))
        reads |= {first: (first + 2, first + 1), first + 1: (first + 2,)}
    return graph(*nodes, Node(2 * blocks + 1, LEAF, "", "x0", (tensor(3),), grad="None"), reads=reads)


def chain(length: int, change: Callable[[Node], Node] = lambda node: node) -> Graph:
    shape, place, kept = (tensor(64, 32),), at(3), (saved("result", 64, 32),)
    nodes = [change(Node(i, OP, "TanhBackward0", "h", shape, place, saved=kept)) for i in range(1, length)]
    leaf = Node(length, LEAF, "", "x", shape, grad="None")
    return Graph((1,), (*nodes, leaf), tuple(Edge(i, i + 1, 0) for i in range(1, length)), "backward", at(4))


def recurrent(steps: int, losses: bool = False) -> Graph:
    """`h = tanh(h @ w)` at each step; with `losses`, `loss = loss + h.mean()` as well."""
    first, last = (2 * steps, 4 * steps) if losses else (1, 2 * steps + 1)
    nodes, reads = [], {}
    for step in range(steps if losses else 0):
        total, own = 2 * step + 1, 2 * step + 2
        reads |= {total: (total + 2, own) if step < steps - 1 else (own,), own: (first + 2 * step,)}
        nodes.append(Node(total, OP, "AddBackward0", "loss", (tensor(),), at(6)))
        nodes.append(Node(own, OP, "MeanBackward0", None, (tensor(),), at(5)))
    nodes = nodes[: first - 1]
    if losses:
        reads[2 * steps - 1] = (first,)
        del reads[2 * steps]
    for step in range(steps):
        h = first + 2 * step
        nodes.append(Node(h, OP, "TanhBackward0", "h", (tensor(9),), at(4), saved=(saved("result", 9),)))
        nodes.append(Node(h + 1, OP, "MmBackward0", None, (tensor(9),), at(3)))
        reads |= {h: (h + 1,), h + 1: (h + 2, last) if step < steps - 1 else (last,)}
    return graph(*nodes, Node(last, LEAF, "", "w", (tensor(9, 9),), grad="None"), reads=reads)


def shown(*graphs: Graph, width: int = 100, fold: bool = True, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    tree.render(graphs, Console(file=file, width=width), fold=fold)
    file.flush()
    return raw.getvalue().decode(encoding)


def body(*graphs: Graph, width: int = 100, fold: bool = True) -> str:
    return shown(*graphs, width=width, fold=fold).partition("\n\n")[2]


def test_a_small_graph_is_a_page_to_read() -> None:
    assert shown(bce()) == dedent(
        """\
        loss = 0.6931  scalar  backward() at train.py:8
          8 │ loss.backward()
          8 nodes  4 operations  2 leaves  2 constants  depth 5  20 B saved for backward

        ● loss = 0.6931  BinaryCrossEntropyBackward0  scalar  line 7  saves self [1], target [1]
        ├─· y  [1]  constant
        ● y_hat  SigmoidBackward0  [1]  line 6  saves result [1]
        ● z  AddBackward0  [1]  line 5
        ├─◆ b  [1]  leaf, grad None
        ● MulBackward0  [1]  line 5  saves self [1], other [1]
        ├─◆ w1  [1]  leaf, grad None
        └─· x1  [1]  constant
        """
    )


def test_a_cut_is_a_cut_and_what_lies_behind_is_hollow() -> None:
    assert shown(gan(), width=80) == dedent(
        """\
        loss_d = 1.39  scalar  backward() at train.py:44
          8 nodes  4 operations  2 leaves  1 constant  1 cut  depth 6
          768 B saved for backward
        ⚠ no gradient passes 1 cut: detach() (line 41)

        ● loss_d = 1.39  MeanBackward0  scalar  line 43
        ● MmBackward0  [64, 1]  gan.py:20  in fc  saves self [64, 32]
        ├─◆ D.fc.weight  [32, 1]  leaf, grad zero
        ✂ detach() at train.py:41  fake  [64, 32]  no gradient goes further
        ○ fake  TanhBackward0  [64, 32]  gan.py:15  in out  saves result [64, 32]
        ○ MmBackward0  [64, 32]  gan.py:14  in fc
        ├─· noise  [64, 32]  constant
        └─◇ G.fc.weight  [32, 32]  leaf, grad accumulated
        """
    )


def test_freed_and_modified_tensors_are_told_at_the_top_and_at_the_node() -> None:
    nodes = list(bce().nodes)
    freed = tuple(item._replace(state=SavedState.FREED) for item in nodes[0].saved)
    nodes[0] = nodes[0]._replace(saved=freed, tags=("freed",))
    broken = (nodes[4].saved[0], nodes[4].saved[1]._replace(state=SavedState.MODIFIED))
    nodes[4] = nodes[4]._replace(saved=broken, tags=("modified in place", "hook"))
    assert shown(replace(bce(), nodes=tuple(nodes), retain_graph=True), width=80) == dedent(
        """\
        loss = 0.6931  scalar  backward(retain_graph=True) at train.py:8
          8 │ loss.backward()
          8 nodes  4 operations  2 leaves  2 constants  depth 5  12 B saved for backward
        ⚠ this graph was already freed by an earlier backward: 1 operation lost what was
          saved for backward (line 7)
        ⚠ this graph was broken by an in-place write: 1 operation saved what was
          modified afterwards (line 5)

        ● loss = 0.6931  BinaryCrossEntropyBackward0  scalar
        │   saved self, target already freed  line 7
        ├─· y  [1]  constant
        ● y_hat  SigmoidBackward0  [1]  line 6  saves result [1]
        ● z  AddBackward0  [1]  line 5
        ├─◆ b  [1]  leaf, grad None
        ● MulBackward0  [1]  saved other modified in place  (hook)  line 5  saves self
        ├─◆ w1  [1]  leaf, grad None
        └─· x1  [1]  constant
        """
    )


def test_a_shared_node_stands_once_where_its_branches_part() -> None:
    assert body(residual(2)) == dedent(
        """\
        ● x  AddBackward0  [3]  line 3
        ├── see #3  x
        ● TanhBackward0  [3]  line 4
        ● #3  x  AddBackward0  [3]  line 3
        ├─◆ #5  x0  [3]  leaf, grad None
        ● TanhBackward0  [3]  line 4
        └── see #5  x0
        """
    )


def test_two_branches_of_one_weight_stand_side_by_side() -> None:
    nodes = [Node(i, OP, f"Op{i}", None, (tensor(),)) for i in range(1, 6)]
    assert body(graph(*nodes, reads={1: (2, 4), 2: (3,), 4: (5,)})) == dedent(
        """\
        ● Op1  scalar
        ├─● Op2  scalar
        │ ● Op3  scalar
        └─● Op4  scalar
          ● Op5  scalar
        """
    )


def test_of_several_outputs_the_one_used_is_told() -> None:
    unbind = Node(3, OP, "UnbindBackward0", None, (tensor(4), tensor(5), tensor(6)), tags=("view",))
    nodes = (
        Node(1, OP, "AddBackward0", None, (tensor(),)),
        Node(2, OP, "ExpBackward0", "e", (tensor(5),), stack=at(4)),
        unbind,
    )
    twice = Graph((1,), nodes, (Edge(1, 2, 0), Edge(1, 3, 1, 2), Edge(2, 3, 0, 1)))
    assert body(twice).splitlines() == [
        "● AddBackward0  scalar",
        "├── see #3  UnbindBackward0  output 2",
        "● e  ExpBackward0  [5]  train.py:4",
        "● #3  UnbindBackward0  3 outputs [4], [5], [6]  output 1  (view)",
    ]
    once = Graph((2,), nodes[1:], (Edge(2, 3, 0, 1),))
    assert body(once).splitlines()[1] == "● UnbindBackward0  [5]  output 1  (view)"


def test_one_node_as_both_inputs() -> None:
    nodes = (Node(1, OP, "MulBackward0", None, (tensor(2),)), Node(2, OP, "ExpBackward0", "e", (tensor(2),)))
    assert body(graph(*nodes, reads={1: (2, 2)})).splitlines()[1] == "● e  ExpBackward0  [2]  as inputs 0, 1"


def test_tags_modules_dtypes_and_devices() -> None:
    tags = ("in-place", "view", "custom Function", "checkpoint", "double backward", "hook")
    node = Node(1, OP, "MyBackward", "y", (tensor(2, dtype="float16"),), module="encoder.layers.2.linear1", tags=tags)
    leaf = Node(2, LEAF, "", "w", (tensor(2, device="cuda:0"),), grad="None")
    assert body(graph(node, leaf, reads={1: (2,)}), width=140).splitlines() == [
        "● y  MyBackward  [2] float16  (in-place, view, custom Function, checkpoint, double backward, hook)  "
        "in encoder.layers.2.linear1",
        "└─◆ w  [2] on cuda:0  leaf, grad None",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_line_fits_and_no_fault_is_lost(width: int) -> None:
    freed = saved("input", 64, 1024, state=SavedState.FREED)
    long = Node(
        1,
        OP,
        "VeryLongFunctionNameOfTheUserBackward",
        "self.decoder.some_hidden_state_with_a_long_name",
        (tensor(64, 1024, 1024),),
        at(31, "a/rather/deep/directory/model.py"),
        "model.decoder.layers.11.self_attn.q_proj",
        (saved("weight", 64, 1024), freed, saved("result", 64, 1024, 1024)),
        tags=("hook",),
    )
    printed = shown(graph(long, reads={}), gan(), bce(), recurrent(50, losses=True), width=width)
    assert max(map(len, printed.splitlines())) <= width
    assert "saved input already freed" in printed
    assert "(hook)" in printed
    assert "q_proj" in printed
    assert "detach() at train.py:41" in printed


def test_several_roots_one_of_them_inside_the_other() -> None:
    nodes = (Node(1, OP, "SumBackward0", "a", (tensor(),)), Node(2, OP, "MulBackward0", "c", (tensor(),)))
    assert shown(graph(*nodes, reads={2: (1,)}, roots=(1, 2))).splitlines() == [
        "a  scalar",
        "c  scalar",
        "backward() at train.py:8",
        "  8 │ loss.backward()",
        "  2 nodes  2 operations  depth 2  0 B saved for backward",
        "",
        "● #1  a  SumBackward0  scalar",
        "● c  MulBackward0  scalar",
        "└── see #1  a",
    ]


def test_a_leaf_alone_and_nothing_at_all() -> None:
    leaf = Graph((1,), (Node(1, LEAF, "", "x", (tensor(),), grad="None"),), (), remarks=("only 1 node is shown",))
    made = Graph((1,), (Node(1, OP, "Odd", "y", (tensor(),), at(6)),), ())
    assert shown(made).splitlines()[0] == "y  scalar  remained at the end, made at train.py:6"
    assert shown(leaf, leaf).splitlines()[:5] == [
        "x  scalar  remained at the end",
        "  1 node  1 leaf  depth 1  0 B saved for backward",
        "  only 1 node is shown",
        "",
        "◆ x  scalar  leaf, grad None",
    ]
    assert shown(Graph((), (), ())).splitlines()[0] == "remained at the end"
    assert shown() == ""


def test_repeated_turns_are_folded_and_counted() -> None:
    assert body(recurrent(100)) == dedent(
        """\
        ● h  TanhBackward0  [9]  line 4  saves result [9]
        ● MmBackward0  [9]  line 3
        ├─◆ #201  w  [9, 9]  leaf, grad None
        ● h  TanhBackward0  [9]  line 4  saves result [9]
        ● MmBackward0  [9]  line 3
        ├── see #201  w
        ⋮ 96 more of these 2 operations (lines 3, 4): 192 nodes from #5 to #196, 3.5 kB saved
        ● h  TanhBackward0  [9]  line 4  saves result [9]
        ● MmBackward0  [9]  line 3
        ├── see #201  w
        ● h  TanhBackward0  [9]  line 4  saves result [9]
        ● MmBackward0  [9]  line 3
        └── see #201  w
        """
    )
    assert body(recurrent(100), fold=False).count("MmBackward0") == 100


def test_a_loss_at_each_step_stays_flat_and_folds() -> None:
    printed = body(recurrent(100, losses=True))
    assert printed.count("⋮") == 2
    assert len(printed.splitlines()) < 40
    assert max(line.count("│ ") for line in body(recurrent(100, losses=True), fold=False).splitlines()) <= 1


@pytest.mark.parametrize(
    "change",
    [
        {"kind": CUT, "op": "detach()"},
        {"saved": (saved("result", 64, 32, state=SavedState.FREED),)},
        {"saved": (saved("result", 64, 32, state=SavedState.MODIFIED),)},
        {"tags": ("freed",)},
    ],
)
def test_no_fold_hides_a_cut_or_a_fault(change: dict[str, object]) -> None:
    printed = body(chain(300, lambda node: node._replace(**change) if node.id in (100, 101, 200) else node))
    assert printed.count("⋮") == 3
    assert sum("detach()" in line or "freed" in line or "modified" in line for line in printed.splitlines()) == 3
    every = body(chain(50, lambda node: node._replace(**change)))
    assert "⋮" not in every
    assert len(every.splitlines()) == 50


def test_equal_side_branches_fold_too() -> None:
    branches = [Node(i, OP, "MulBackward0", None, (tensor(2),), at(3)) for i in range(2, 22)]
    reads = {1: tuple(range(2, 22)), **{i: (i + 20,) for i in range(2, 22)}}
    ends = [Node(i, CONSTANT, "", "x", (tensor(2),)) for i in range(22, 42)]
    stack = Node(1, OP, "StackBackward0", "out", (tensor(20, 2),))
    assert body(graph(stack, *branches, *ends, reads=reads)).splitlines()[3:6] == [
        "⋮ 17 more of this operation (line 3): 34 nodes from #3 to #39",
        "├─● MulBackward0  [2]  line 3",
        "│ └─· x  [2]  constant",
    ]


def test_a_chain_of_100_000_nodes_prints_in_seconds() -> None:
    deep = chain(100_000)
    start = time.process_time()
    assert len(body(deep).splitlines()) == 5
    assert time.process_time() - start < 5  # about 2 seconds; a quadratic walk would take minutes
    everything = body(deep, fold=False).splitlines()
    assert len(everything) == 100_000
    assert max(map(len, everything)) < 80


def test_sums_and_residuals_of_any_depth_stay_on_the_page() -> None:
    for deep in (residual(5_000), recurrent(5_000, losses=True)):
        lines = body(deep, fold=False).splitlines()
        assert max(map(len, lines)) < 80
        assert sum("see #" not in line for line in lines) == len(deep.nodes)


@pytest.mark.parametrize("seed", range(40))
def test_in_any_graph_every_node_stands_once_and_every_reference_leads_to_it(seed: int) -> None:
    chance = random.Random(seed)
    size = chance.randint(1, 40)
    kinds = [OP, *chance.choices([OP, LEAF, CONSTANT, CUT], [6, 1, 1, 1], k=size - 1)]
    nodes = [Node(i, kind, "Op" if kind in (OP, CUT) else "", f"<{i}>") for i, kind in enumerate(kinds, 1)]
    reads = {
        node.id: tuple(chance.randint(node.id + 1, size) for _ in range(chance.randint(0, 3)))
        for node in nodes[:-1]
        if node.op
    }
    roots = tuple(chance.sample(range(1, size + 1), min(size, chance.choice([1, 1, 2]))))
    printed = body(graph(*nodes, reads=reads, roots=roots)).splitlines()
    full = [line for line in printed if "see #" not in line]
    assert sorted(int(number) for line in full for number in re.findall(r"<(\d+)>", line)) == list(range(1, size + 1))
    numbers = {number for line in full for number in re.findall(r"#(\d+) ", line)}
    assert {number for line in printed for number in re.findall(r"see #(\d+)", line)} == numbers


def test_no_colour_where_the_console_has_none_and_colour_where_it_has() -> None:
    assert "\x1b" not in shown(gan())
    file = io.StringIO()
    tree.render([gan()], Console(file=file, width=100, force_terminal=True, color_system="truecolor"))
    assert "\x1b[1;31mdetach() at train.py:41" in file.getvalue().replace("\x1b[1;31m  ", "  ")


def test_ascii_where_the_terminal_knows_no_more() -> None:
    graph = replace(gan(), nodes=(gan().nodes[0]._replace(name="größe"), *gan().nodes[1:]))
    printed = shown(graph, encoding="ascii")
    assert printed.splitlines()[4:] == [
        r"* gr\xf6\xdfe = 1.39  MeanBackward0  scalar  line 43",
        "* MmBackward0  [64, 1]  gan.py:20  in fc  saves self [64, 32]",
        "|-+ D.fc.weight  [32, 1]  leaf, grad zero",
        "x detach() at train.py:41  fake  [64, 32]  no gradient goes further",
        "o fake  TanhBackward0  [64, 32]  gan.py:15  in out  saves result [64, 32]",
        "o MmBackward0  [64, 32]  gan.py:14  in fc",
        "|-. noise  [64, 32]  constant",
        "`-= G.fc.weight  [32, 32]  leaf, grad accumulated",
    ]


def test_a_name_can_neither_break_a_line_nor_speak_to_the_terminal() -> None:
    node = Node(1, OP, "Odd", "[red]a[/red]\n\x1b[31m\ud800", (tensor(),))
    assert body(graph(node, reads={})) == "● [red]a[/red]\\n\\x1b[31m\\ud800  Odd  scalar\n"


def test_a_legend_names_the_signs_that_occur() -> None:
    stream = io.StringIO()
    tree.render([bce()], Console(file=stream, width=100), legend=True)
    assert stream.getvalue().endswith("\n\n● operation  ◆ leaf  · constant\n")
