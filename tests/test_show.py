"""`show` and `dot` on real scripts: which graphs are taken, when the run ends, and what the pictures say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradtrace import cli

TRAIN = """\
import torch
from torch import nn

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 3)

    def forward(self, x):
        return torch.tanh(self.inner(x))

torch.manual_seed(0)
model = Cell()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
batch = torch.ones(4, 2)
for step in range(3):
    optimizer.zero_grad()
    hidden = model(batch)
    target = hidden.detach()
    loss = (hidden - target).square().mean()
    loss.backward(retain_graph=True)
    hidden.sum().backward()
    optimizer.step()
    print("step", step)
"""
FIRST, SECOND = 21, 22
REMAINS = """\
import torch
scale = torch.full((3,), 2.0, requires_grad=True)
inner = scale.exp()
first = inner.sum()
second = inner.prod()
constant = torch.ones(2)
"""


@dataclass(frozen=True)
class Shown:
    """What a command gave: its text without what the script printed, and the steps that the script printed."""

    status: int
    text: str
    steps: int
    err: str

    @property
    def places(self) -> list[int]:
        """The lines of the backward calls shown, from the first line of each graph."""
        return [int(line) for line in re.findall(r"^\S.* at train\.py:(\d+)$", self.text, re.MULTILINE)]


@dataclass
class Runner:
    """Runs `show` or `dot` in this process, in a directory of its own."""

    directory: Path
    patch: pytest.MonkeyPatch
    capture: pytest.CaptureFixture[str]

    def __call__(self, source: str, *options: str, command: str = "show", of: str = "train.py") -> Shown:
        result = self.directory / ("result.dot" if command == "dot" else "result")
        result.unlink(missing_ok=True)
        (self.directory / "train.py").write_text(source)
        self.patch.setattr(sys, "argv", ["gradtrace", command, "-o", str(result), *options, of])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = self.capture.readouterr()
        text = result.read_text() if result.exists() else ""
        return Shown(int(ended.value.code or 0), text, out.count("step "), err)


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Runner:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    return Runner(tmp_path, monkeypatch, capfd)


class TestWhichGraphs:
    @pytest.mark.parametrize(
        ("options", "places", "steps"),
        [
            ((), [FIRST, SECOND], 1),
            (("--to-end",), [FIRST, SECOND], 3),
            (("--steps", "1"), [FIRST, SECOND], 0),
            (("--to-end", "--steps", "2"), [FIRST, SECOND], 1),
            (("--line", str(FIRST)), [FIRST], 1),
            (("--line", str(SECOND)), [SECOND], 1),
        ],
    )
    def test_are_those_of_each_call_site(
        self, options: Sequence[str], places: list[int], steps: int, show: Runner
    ) -> None:
        shown = show(TRAIN, *options)
        assert (shown.places, shown.steps, shown.err, shown.status) == (places, steps, "", 0)

    def test_are_each_site_once_whoever_calls_it(self, show: Runner) -> None:
        source = """\
import torch
weight = torch.ones(3, requires_grad=True)
def step(loss):
    loss.backward()
step(weight.sum())
step(weight.prod())
print("step ")
"""
        shown = show(source)
        assert (shown.places, shown.steps) == ([4], 0)
        assert "prod" not in shown.text.lower()

    @pytest.mark.parametrize(
        ("call", "title"),
        [
            ("loss.backward()", "backward()"),
            ("torch.autograd.backward(loss)", "backward()"),
            ("torch.autograd.grad(loss, weight)", "grad()"),
            ("loss.backward(inputs=[weight], retain_graph=True)", "backward(retain_graph=True)"),
            ("torch.autograd.grad([loss], [weight], create_graph=True)", "create_graph=True)"),
        ],
    )
    def test_are_those_of_every_kind_of_call(self, call: str, title: str, show: Runner) -> None:
        shown = show(f"import torch\nweight = torch.ones(3, requires_grad=True)\nloss = weight.exp().sum()\n{call}\n")
        assert shown.places == [4]
        assert title in shown.text.splitlines()[0]

    def test_are_whole_before_the_call_frees_them(self, show: Runner) -> None:
        shown = show(TRAIN)
        assert "freed" not in shown.text
        assert "saves result [4, 3]" in shown.text

    def test_are_there_where_the_call_fails(self, show: Runner) -> None:
        source = (
            "import torch\nloss = torch.ones(2, requires_grad=True).exp().sum()\nloss.backward()\nloss.backward()\n"
        )
        shown = show(source)
        assert shown.places == [3, 4]
        assert "freed" in shown.text
        assert shown.err.count("Traceback") == 1
        assert shown.status == 3


class TestWithoutBackward:
    def test_what_remains_at_the_end_is_shown(self, show: Runner) -> None:
        shown = show(REMAINS)
        titles = [line for line in shown.text.splitlines() if "remained at the end" in line]
        assert [title.split()[0] for title in titles] == ["first", "second"], "inner is part of both"
        assert (shown.err, shown.status) == ("", 0)

    def test_also_after_a_crash(self, show: Runner) -> None:
        shown = show(REMAINS + "1 / 0\n")
        assert shown.text.startswith("first = ")
        assert (shown.err.count("Traceback"), shown.status) == (1, 3)

    @pytest.mark.parametrize(
        ("source", "status"),
        [("import torch\nx = torch.ones(2)", 4), ("", 4), ("1 / 0", 3), ("raise SystemExit(1)", 3)],
    )
    @pytest.mark.parametrize("command", ["show", "dot"])
    def test_there_may_be_nothing(self, source: str, status: int, command: str, show: Runner) -> None:
        shown = show(source, command=command)
        assert shown.err.splitlines()[-1].startswith("gradtrace: no graph: the script called neither backward() nor ")
        assert (shown.text, shown.status) == ("", status)


class TestOneTensor:
    @pytest.mark.parametrize("name", ["first", "inner"])
    def test_of_the_script_is_shown_at_its_end(self, name: str, show: Runner) -> None:
        shown = show(REMAINS, "--tensor", name)
        assert shown.text.startswith(f"{name} ")
        assert (shown.text.count("remained at the end"), shown.status) == (1, 0)

    def test_of_a_function_is_shown_at_the_backward_call(self, show: Runner) -> None:
        source = """\
import torch
def train():
    weight = torch.ones(2, requires_grad=True)
    hidden = weight.exp()
    hidden.sum().backward()
train()
print("step ")
"""
        shown = show(source, "--tensor", "hidden")
        assert shown.text.startswith("hidden")
        assert (shown.steps, shown.status) == (0, 0)

    @pytest.mark.parametrize("name", ["constant", "missing", "torch"])
    def test_without_a_graph_is_told(self, name: str, show: Runner) -> None:
        shown = show(REMAINS, "--tensor", name)
        assert shown.err == (
            f"gradtrace: no tensor with a graph is called {name}: name a variable that the script has when it ends\n"
        )
        assert (shown.text, shown.status) == ("", 4)

    @pytest.mark.parametrize("line", ["1", "20", "999"])
    def test_a_line_without_a_call_is_told(self, line: str, show: Runner) -> None:
        shown = show(TRAIN, "--line", line)
        assert shown.err == f"gradtrace: no backward() or autograd.grad() call on line {line} was reached\n"
        assert (shown.text, shown.status) == ("", 4)


@pytest.mark.parametrize("options", [(), ("-o", "graph.json")])
def test_paths_are_relative_to_where_the_command_began(options: Sequence[str], show: Runner) -> None:
    shown = show(f"import os\nos.chdir('/')\n{TRAIN}", *options)
    if options:
        show.patch.chdir(show.directory)
        shown = show("", of="graph.json")
    assert shown.places == [FIRST + 2, SECOND + 2]


class TestTree:
    def test_names_what_the_script_names(self, show: Runner) -> None:
        text = show(TRAIN, "--line", str(FIRST)).text
        assert text.startswith("loss = 0  scalar  backward(retain_graph=True) at train.py:21\n")
        for part in ("hidden  TanhBackward0  [4, 3]  line 10", "inner.bias  [3]  leaf", "inner.weight  [3, 2]  leaf"):
            assert part in text
        assert "detach() at train.py:19  target  [4, 3]" in text

    def test_survives_a_deep_graph(self, show: Runner) -> None:
        """Deeper than recursion goes, and dropped by the script afterwards."""
        source = """\
import torch
x = weight = torch.ones(1, requires_grad=True)
for _ in range(5_000):
    x = x * 1.0
x.backward()
del x
print("step ")
"""
        shown = show(source)
        assert (shown.places, shown.steps, shown.status) == ([5], 1, 0)

    @pytest.mark.parametrize("width", ["20", "60", "300"])
    def test_fits_any_width(self, width: str, show: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", width)
        assert show(TRAIN).status == 0


CALLS = """\
import torch
from torch import nn

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
    def forward(self, x):
        return Scale.apply(self.lin(x)) + x

class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.last = nn.Linear(2, 1)
        self.last.forward = lambda x: x.sum() * self.last.weight.sum()
    def forward(self, x):
        for _ in range(3):
            x = self.block(x)
        return self.last(x)

net = Plain()
loss = net(torch.ones(2))
loss.backward()
"""


class TestModuleCalls:
    def test_are_told_apart_and_nested(self, show: Runner) -> None:
        show(CALLS, "-o", "graph.json")
        graph = json.loads((show.directory / "graph.json").read_text())["graphs"][0]
        assert [(call["kind"], call["path"], call.get("inside", 0)) for call in graph["calls"]] == [
            ("Plain", "", 0),
            *(pair for number in (2, 4, 6) for pair in (("Block", "block", 1), ("Linear", "block.lin", number))),
            ("Linear", "last", 1),
        ]
        ran_in = {node["op"]: [] for node in graph["nodes"]}
        for node in graph["nodes"]:
            ran_in[node["op"]].append(node.get("call"))
        assert ran_in["AddBackward0"] == [6, 4, 2]
        assert ran_in["ScaleBackward"] == [6, 4, 2], "no call of torch made them"
        assert ran_in["MulBackward0"] == [8]


DEEP = """\
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 4)
    def forward(self, x):
        return x + self.down(torch.relu(self.norm(self.up(x))))

net = nn.Sequential(*(Layer() for _ in range(5)))
x = torch.ones(2, 4, requires_grad=True).exp()
loss = net(x).mean()
loss.backward()
"""


class TestFolding:
    def test_makes_a_large_graph_fit_the_screen(self, show: Runner) -> None:
        text = show(DEEP).text
        assert "37 operations" in text
        assert "folded at depth 3 of 3: --open NAME one module" in text
        assert "net.4.down.weight  [4, 8]  leaf" in text
        assert re.search(r"▣ (#\d+  )?4 more: net\.0-3  Layer  \[2, 4\]  line 13  5\d nodes", text)
        assert len(text.splitlines()) < 30

    def test_leaves_a_small_graph_alone(self, show: Runner) -> None:
        assert "folded" not in show(TRAIN).text
        assert show(TRAIN).text == show(TRAIN, "--depth", "9").text

    def test_goes_as_deep_as_asked(self, show: Runner) -> None:
        assert "▣ net  Sequential  [2, 4]  line 13  65 nodes, 460 parameters, " in show(DEEP, "--depth", "0").text
        assert "▣ net.0-4  Layer  × 5  [2, 4]  line 13  65 nodes" in show(DEEP, "--depth", "1").text
        text = show(DEEP, "--depth", "2").text
        assert "▣ net.4.down  Linear  [2, 4]  line 9  4 nodes, 36 parameters\n" in text
        assert "folded at depth 2 of 3: --depth 3 opens more, --open NAME one module" in text

    def test_opens_the_module_asked_for(self, show: Runner) -> None:
        text = show(DEEP, "--depth", "0", "--open", "net.1").text
        assert "net.1.up.weight  [8, 4]  leaf" in text
        assert "▣ net.2-4  Layer  × 3" in text
        assert "net.0.up" not in text

    def test_tells_of_a_module_that_is_not_there(self, show: Runner) -> None:
        shown = show(DEEP, "--open", "net.33")
        assert shown.err == "gradtrace: no module of the graph is called 'net.33'; did you mean net.3?\n"
        assert (shown.text, shown.status) == ("", 2)

    def test_is_in_the_picture_too(self, show: Runner) -> None:
        text = show(DEEP, "--depth", "1", command="dot").text
        assert "0-4   × 5" in text
        assert "net.1" not in text

    def test_draws_many_edges_of_a_box_as_one(self, show: Runner) -> None:
        text = show(
            DEEP.replace("net(x)", "torch.stack([net(torch.ones(4)) for _ in range(5)])"), "--depth", "0", command="dot"
        ).text
        assert (text.count("->"), text.count('label="× 5"')) == (1, 1)


class TestSaved:
    def test_is_told_by_module_line_and_operation(self, show: Runner) -> None:
        text = show(DEEP, "--saved", "--depth", "1").text
        assert "880 B saved for backward, and 1.6 kB of parameters, which live without the graph:" in text
        assert re.search(r"by module:\n +400 B +45% +█{5} +net\.\*\.norm +5 operations\n", text)
        assert re.search(r"by line:\n +848 B +96% +█{10} +line 9 +20 operations\n", text)
        assert "ExpBackward0  32 B saved  [2, 4]" in text

    def test_is_silent_where_not_asked_for(self, show: Runner) -> None:
        assert "by module" not in show(DEEP).text


FLOW = """\
import torch
from torch import nn
torch.manual_seed(0)
dead, body, head = nn.Linear(2, 3), nn.Linear(2, 3), nn.Linear(3, 1)
used = nn.Linear(7, 7)
x = torch.ones(4, 2)
hidden = body(x) + 0 * dead(x)
frozen = used(torch.ones(4, 7)).detach()
loss = (head(hidden) * frozen[:, :1]).mean() * 1e6
loss.backward()
broken = (body.weight * torch.tensor(float("nan"))).sum()
broken.backward()
print("step ")
"""


class TestGradients:
    def test_stand_at_each_node_and_leaf(self, show: Runner) -> None:
        text = show(FLOW, "--grad").text
        first, second = text.split("\nbroken = ")
        assert "loss = " in first
        assert re.search(r"MulBackward0  █ ∇ 1e\+06, mean 1e\+06", first.replace("loss = ", "")) is None
        assert re.search(r"● loss = \S+  MulBackward0  ▆ ∇ 1, mean 1  ", first)
        assert re.search(r"head\.weight  \[1, 3\]  leaf, grad None  █ ∇ \d(\.\d)?e\+05, mean ", first)
        assert "dead.bias  [3]  leaf, grad None  ∇ all zero" in first
        assert re.search(
            r"gradients of 6 leaves: 2 all zero, \d\S+ \(\w+\.\w+\) to \d\S+ \(\w+\.\w+\)", " ".join(first.split())
        )
        assert "body.weight  [3, 2]  leaf, grad accumulated  █ ∇ nan, mean nan, 100% NaN or infinite" in second
        assert "gradients of 1 leaf: 1 with NaN or infinity\n" in second

    def test_are_in_the_picture_and_in_the_file(self, show: Runner) -> None:
        shown = show(FLOW, "--grad", command="dot")
        assert "∇ all zero" in shown.text
        once = show(FLOW, "--grad", "-o", "graph.json")
        assert once.steps == 1, "the last graph is complete when its call has run"
        json.loads((show.directory / "graph.json").read_text(), parse_constant=pytest.fail)
        assert show("", of="graph.json").text == show(FLOW, "--grad").text

    def test_of_inputs_not_asked_for_are_none(self, show: Runner) -> None:
        text = show(
            "import torch\na, b = (torch.ones(2, requires_grad=True) for _ in 'ab')\nhalf = a.exp()\n"
            "loss = (half * b.exp()).sum()\ntorch.autograd.grad(loss, [a], retain_graph=True)\n"
            "torch.autograd.grad(outputs=loss, inputs=half)\n",
            "--grad",
        ).text
        first, second = text.split("\n\nloss = ")
        assert re.search(r"gradients of 2 leaves: 1 without gradient, \d+ \(a\)", first)
        assert re.search(r"◆ a  \[2\]  leaf, grad None  ▆ ∇ \d+", first)
        assert re.search(r"◆ b  \[2\]  leaf, grad None$", first, re.MULTILINE)
        assert "gradients of 2 leaves: 2 without gradient" in second
        assert re.search(r"● half  ExpBackward0  ▆ ∇ 3\.8, mean 2\.7", second)

    def test_of_a_tensor_without_a_call_are_a_usage_error(self, show: Runner) -> None:
        shown = show(FLOW, "--grad", "--tensor", "loss")
        assert (shown.err.count("\n"), shown.status) == (1, 2)


class TestPath:
    def test_shows_only_the_ways_to_a_leaf(self, show: Runner) -> None:
        text = show(FLOW, "--path", "dead.bias").text
        assert "only what lies on the paths to dead.bias: 8 of " in text
        assert "◆ dead.bias" in text
        assert "weight" not in text
        assert "broken" not in text

    def test_says_where_the_ways_end(self, show: Runner) -> None:
        text = show(FLOW, "--path", "used.weight").text
        assert "no path leads to used.weight: they end at the cuts shown here: " in text
        assert "✂ detach() at train.py:8" in text
        assert "no path leads to used.weight, and none is cut" in text, "of the other graph"

    def test_of_an_unknown_leaf_is_told(self, show: Runner) -> None:
        shown = show(FLOW, "--path", "dead.bia")
        assert shown.err == "gradtrace: no leaf of the graph is called 'dead.bia'; did you mean dead.bias?\n"
        assert shown.status == 2


class TestDot:
    @pytest.mark.parametrize(
        ("options", "clusters"),
        [((), 2), (("--to-end",), 2), (("--line", "21"), 0), (("--direction", "backward"), 2)],
    )
    def test_holds_the_same_graphs(self, options: Sequence[str], clusters: int, show: Runner) -> None:
        shown = show(TRAIN, *options, command="dot")
        assert shown.text.startswith("digraph ")
        assert len(re.findall(r"subgraph cluster_g\d+ ", shown.text)) == clusters
        assert "TanhBackward0" in shown.text
        assert (shown.err, shown.status) == ("", 0)

    def test_is_the_same_in_each_run(self, show: Runner) -> None:
        assert show(TRAIN, command="dot").text == show(TRAIN, command="dot").text


def test_a_page_comes_from_the_script_and_from_a_saved_graph(show: Runner) -> None:
    show(DEEP, "-o", "graph.html", "--depth", "1", command="dot")
    once = (show.directory / "graph.html").read_text(encoding="utf-8")
    show(DEEP, "-o", "graph.json")
    show("", "-o", "graph.html", "--depth", "1", command="dot", of="graph.json")
    again = (show.directory / "graph.html").read_text(encoding="utf-8")
    found = [re.findall(r'"title":"(net[^"]*|loss[^"]*)"', page) for page in (once, again)]
    assert len(found[0]) > 20
    assert [re.sub(r"[-.\d]+", "", title) for title in found[0]] == [
        re.sub(r"[-.\d]+", "", title) for title in found[1]
    ]


class TestJson:
    @pytest.fixture
    def saved(self, show: Runner) -> str:
        """The graphs of TRAIN in a file, whose script is then gone."""
        show(TRAIN, "-o", "graph.json")
        return "graph.json"

    @pytest.mark.parametrize("command", ["show", "dot"])
    def test_is_read_back_and_gives_the_same(self, command: str, saved: str, show: Runner) -> None:
        once = show(TRAIN, command=command).text
        again = show("raise SystemExit('runs')", command=command, of=saved)
        assert (again.text, again.err, again.status) == (once, "", 0)

    def test_is_written_again_as_it_was(self, saved: str, show: Runner) -> None:
        before = (show.directory / saved).read_text()
        show("", "-o", "other.json", of=saved)
        other = json.loads((show.directory / "other.json").read_text())
        assert other["graphs"] == json.loads(before)["graphs"]
        assert other["sites"] == json.loads(before)["sites"]

    def test_says_what_the_graph_is(self, saved: str, show: Runner) -> None:
        document = json.loads((show.directory / saved).read_text())
        first = document["graphs"][0]
        tanh = next(node for node in first["nodes"] if node["op"] == "TanhBackward0")
        site = document["sites"][tanh["stack"][0]]
        call = next(call for call in first["calls"] if call["kind"] == "Linear")
        linear = next(node for node in first["nodes"] if node["op"] == "AddmmBackward0")
        assert (document["format"], document["version"]) == ("gradtrace.graphs", 1)
        assert (site["path"], site["line"], site["text"]) == ("train.py", 10, "return torch.tanh(self.inner(x))")
        assert (site["column"], site["function"]) == (16, "Cell.forward")
        assert (call["path"], linear["call"]) == ("inner", call["number"])
        assert linear["made"] < tanh["made"]
        assert {"user": tanh["id"], "source": linear["id"], "input": 0} in first["edges"]

    def test_comes_to_a_clean_stdout(self, show: Runner, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("print('words')\n" + REMAINS)
        done = subprocess.run(
            [sys.executable, "-m", "gradtrace", "show", "--format", "json", "train.py"], capture_output=True, text=True
        )
        assert (len(json.loads(done.stdout)["graphs"]), done.stderr) == (2, "words\n")

    def test_needs_no_torch_to_be_read(self, saved: str) -> None:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "gradtrace", "show", saved], capture_output=True, text=True
        )
        assert done.returncode == 0
        assert "TanhBackward0" in done.stdout
        assert not re.search(r"\| +torch$", done.stderr, re.MULTILINE)

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (["--steps", "1"], "takes no --steps"),
            (["--tensor", "loss"], "takes no --tensor"),
            (["--line", "999"], "has no graph of line 999"),
            (["--format", "xml"], "show writes text or json"),
        ],
    )
    def test_takes_no_options_of_a_run(self, options: list[str], told: str, saved: str, show: Runner) -> None:
        shown = show("", *options, of=saved)
        assert told in shown.err
        assert (shown.err.count("\n"), shown.status) == (1, 2)

    def test_one_line_is_chosen(self, saved: str, show: Runner) -> None:
        assert show("", "--line", str(SECOND), of=saved).places == [SECOND]

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (lambda text: text[:-20], "is damaged: it is not JSON: "),
            (lambda text: text.replace("gradtrace.graphs", "gradtrace.check"), "holds no graphs"),
            (lambda text: "[1]", "holds no graphs"),
            (lambda text: text.replace('"version": 1', '"version": 2'), "is of another version"),
            (lambda text: text.replace('"roots": [1]', '"roots": [77]'), "is damaged: graphs[0]: there is no node 77"),
            (lambda text: text.replace('"user": 1', '"user": 2'), "in a circle"),
            (lambda text: text.replace('"kind": "op"', '"kind": "opus"'), "is damaged: graphs[0].nodes[0].kind: "),
            (lambda text: text.replace('"sites"', '"places"'), "is damaged: sites is missing"),
        ],
    )
    def test_that_is_broken_is_told_in_a_line(
        self, change: Callable[[str], str], told: str, saved: str, show: Runner
    ) -> None:
        path = show.directory / saved
        path.write_text(change(path.read_text()))
        shown = show("", of=saved)
        assert told in shown.err
        assert (shown.err.count("\n"), shown.status) == (1, 2)

    def test_that_is_missing_is_told(self, show: Runner) -> None:
        shown = show("", of="missing.json")
        assert (shown.err, shown.status) == ("gradtrace: cannot read missing.json: No such file or directory\n", 2)


def test_the_script_does_not_notice_that_gradients_are_read(show: Runner) -> None:
    """Every number to the last bit, what hooks and custom Functions are given, and what lives."""
    script = Path(__file__).with_name("fixtures") / "flow.py"
    plain = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    watched = subprocess.run(
        [
            sys.executable,
            "-m",
            "gradtrace",
            "show",
            "--grad",
            "--to-end",
            "-o",
            str(show.directory / "out.txt"),
            str(script),
        ],
        capture_output=True,
        text=True,
    )
    assert watched.stderr == plain.stderr
    assert watched.stdout == plain.stdout
    assert (show.directory / "out.txt").read_text().count("gradients of") >= 9
