"""`follow` on real scripts: the stories of the teaching scripts, word for word, and what each kind of code adds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser

from gradtrace.watcher.code import frames

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden" / "follow"
TAUGHT = (
    *("sigmoid_bce", "square_chain", "detached_constant", "forgotten_zero_grad", "second_backward"),
    *("multitask_sum", "multitask_two_calls", "gan_detached", "gan_attached", "hidden_state"),
)


@pytest.fixture
def story(gradtrace, monkeypatch) -> Callable[..., str]:
    """The story of a script, as text of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")

    def follow(path: str, *options: str) -> str:
        done = gradtrace.here("follow", *options, "-o", "story.txt", path)
        assert done.status in (0, 3), done.err
        told = (gradtrace.directory / "story.txt").read_text(encoding="utf-8")
        assert "remark" not in told
        return told

    return follow


@pytest.mark.parametrize("name", TAUGHT)
def test_a_teaching_script_reads_like_this(story: Callable[..., str], name: str, pytestconfig: pytest.Config) -> None:
    told = story(str(ROOT / "scripts" / "examples" / f"{name}.py"))
    path = GOLDEN / f"{name}.txt"
    if pytestconfig.getoption("regold"):
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")


@pytest.fixture
def told(gradtrace, story, monkeypatch) -> Callable[..., list[str]]:
    """The story of a script given as text, its lines without the margin."""

    def follow(text: str, *options: str) -> list[str]:
        monkeypatch.setenv("COLUMNS", "200")
        path = gradtrace.write(text)
        return [line.partition("│")[2].strip() for line in story(path, *options).splitlines()]

    return follow


TRAINING = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 1)

    def forward(self, x):
        return torch.tanh(self.fc(x))

def train_step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    optimizer.step()
    return loss.item()

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(5):
    losses.append(train_step(model, optimizer, torch.ones(2, 3)))
    if step == 2:
        with torch.no_grad():
            model.fc.weight.fill_(float("nan"))
print(len(losses))
"""


def test_functions_are_told_where_they_are_called_and_turns_by_what_is_new(told: Callable[..., list[str]]) -> None:
    lines = told(TRAINING)
    assert "↳ train_step(x = a tensor [2, 3])" in lines
    assert "model.fc.bias.grad: None → [0.01]" not in lines[: lines.index("loss.backward()")]
    clipped = lines.index("nn.utils.clip_grad_norm_(model.parameters(), 0.01)")
    assert lines[clipped + 1].endswith("changed in place")
    cleared = next(number for number, line in enumerate(lines) if line.endswith("→ None, cleared"))
    assert lines[cleared - 1] == "optimizer.zero_grad()"
    assert lines[cleared - 2] == "↳ train_step(x = a tensor [2, 3])"
    assert any(line.startswith("loss = nan") for line in lines)
    assert sum(line == "loss.backward()" for line in lines) == 2  # the first time, and when it gave NaN


def test_one_function_alone(told: Callable[..., list[str]]) -> None:
    lines = told(TRAINING, "--function", "train_step")
    assert "5 calls" in lines
    assert "model = Net()" not in lines
    assert "return torch.tanh(self.fc(x))" not in lines
    assert "loss.backward()" in lines


def test_some_lines_alone(told: Callable[..., list[str]]) -> None:
    lines = told(TRAINING, "--lines", "15-17")
    assert "optimizer.step()" in lines
    assert "optimizer.zero_grad()" not in lines


def test_more_turns_on_demand(told: Callable[..., list[str]]) -> None:
    assert told(TRAINING, "--function", "train_step", "--loops", "2").count("loss.backward()") == 3


WRITES = """\
import torch
v = torch.tensor([1.0, 2.0], requires_grad=True)
u = v.exp()
u.add_(1)
with torch.no_grad():
    v -= 1
k = v.data
k.fill_(7)
w = v[0]
s = v.detach()
try:
    u.sum().backward()
except RuntimeError:
    print("as expected")
"""


def test_writes_views_and_cuts(told: Callable[..., list[str]]) -> None:
    lines = told(WRITES)
    assert "u: [2.718, 7.389] → [3.718, 8.389], written in place (version 0 → 1)" in lines
    assert "ExpBackward0 (line 3) had saved the old numbers of u for its backward" in lines
    assert "v: [1.0, 2.0] → [0.0, 1.0], written in place (version 0 → 1)" in lines
    assert "v: [0.0, 1.0] → [7.0, 7.0], written where autograd does not see it" in lines
    assert "w is a view of v" in lines
    assert "s = [7.0, 7.0]   cut off by detach(): no gradient will flow back" in lines
    assert lines.count("gradients are off: what is computed from here on has no graph") == 1
    assert "prints: as expected" in lines


CUSTOM = """\
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g

def batches(data):
    for at in range(0, len(data), 2):
        yield data[at : at + 2]

w = torch.tensor(2.0, requires_grad=True)
total = 0
for batch in batches(torch.arange(4.0)):
    total = total + Square.apply(batch * w).sum()
squares = [w * n for n in range(2)]
total.backward()
"""


def test_generators_comprehensions_and_custom_functions(told: Callable[..., list[str]]) -> None:
    lines = told(CUSTOM)
    assert "yield data[at : at + 2]" in lines
    assert "↳ Square.forward(x = a tensor [2])" in lines
    assert "↳ Square.backward(g = a tensor [2])" in lines
    assert "squares[1] = 2.0   from MulBackward0(w, 1)" in lines
    assert "w is used by 2 operations: its gradient is the sum of 2 parts" in lines
    assert "w.grad: None → 56.0" in lines


def test_odd_numbers_are_never_hidden(told: Callable[..., list[str]]) -> None:
    lines = told("""\
        import torch
        a = torch.tensor([1e-9, 0.0, float("nan"), float("-inf")])
        b = torch.zeros(100)
        c = torch.full((100,), 1e-12)
        c[3] = float("nan")
        """)
    assert lines[2] == "a = [1e-09, 0.0, nan, -inf]   does not require grad"
    assert lines[4] == "b = [100] all exactly 0   does not require grad"
    assert lines[6] == "c = [100] all 1e-12   does not require grad"
    assert lines[8].startswith("c: up to 1e-12 [100] → [100] 1 NaN, all 1e-12, written in place")


@pytest.mark.parametrize("lines", ["x", "3-", "-3", "1-2-3"])
def test_lines_that_are_none(gradtrace, lines: str) -> None:
    done = gradtrace.here("follow", f"--lines={lines}", gradtrace.write("import torch"))
    assert done.status == 2
    assert "give a line or a range, as in 12 or 20-40" in done.err


def test_json_gives_every_step_with_its_facts(gradtrace) -> None:
    gradtrace.write("import torch\nx = torch.tensor([float('nan')], requires_grad=True)\n(x * 2).sum().backward()\n")
    done = gradtrace.here("follow", "-o", "story.json", "train.py")
    document = json.loads((gradtrace.directory / "story.json").read_text())
    assert (done.status, document["format"], document["ended"]) == (0, "gradtrace.story", "finished")
    made, asked = document["items"][1:]
    assert (made["line"], made["source"][:15]) == (2, "x = torch.tenso")
    assert made["facts"][0]["kind"] == "made"
    assert made["facts"][0]["value"]["numbers"] == ["nan"]
    kinds = [fact["kind"] for fact in asked["facts"]]
    assert kinds == ["asked", "graded"]
    assert [asked["facts"][1][key] for key in ("name", "change", "before")] == ["x", "new", None]
    assert asked["facts"][1]["after"]["text"] == "[2.0]"


def test_the_page_needs_nothing_else_and_takes_strange_text_as_data(gradtrace) -> None:
    gradtrace.write("import torch\nx = torch.ones(2)\nprint('</script><b>')\n", "<i>.py")
    done = gradtrace.here("follow", "-o", "story.html", "<i>.py")
    page = (gradtrace.directory / "story.html").read_text()
    assert done.status == 0
    assert "<title>&lt;i&gt;.py: the story of the run</title>" in page
    data = page.partition('<script type="application/json" id="story">')[2].partition("</script>")[0]
    document = json.loads(data)
    assert document["sources"] == {"<i>.py": ["import torch", "x = torch.ones(2)", "print('</script><b>')"]}
    assert document["items"][2]["facts"][0] == {"kind": "printed", "text": "</script><b>\n", "names": []}
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_a_page_wants_a_file(gradtrace) -> None:
    done = gradtrace.here("follow", "--format", "html", gradtrace.write("import torch"))
    assert done.status == 2
    assert "name a file for the page, as in -o story.html" in done.err


def test_parameters_without_a_shape_yet(told: Callable[..., list[str]]) -> None:
    lines = told("""\
        import torch
        from torch import nn
        model = nn.Sequential(nn.LazyLinear(2), nn.Linear(2, 1))
        model(torch.ones(1, 3)).sum().backward()
        """)
    assert "model is a Sequential with 4 parameters (3 numbers)" in lines
    assert any(line.startswith("computes the gradient of") for line in lines)
    assert "4 parameters of model get their first gradient" in " ".join(lines)


def test_an_installed_package_is_followed_on_demand(gradtrace, story, monkeypatch: pytest.MonkeyPatch) -> None:
    package = gradtrace.directory / "lib" / "site-packages" / "kernels"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def double(x):\n    y = x * 2\n    return y\n")
    sys.path.append(str(package.parent))
    roots = frames._library_roots() | {f"{package.parent}{os.sep}"}
    monkeypatch.setattr(frames, "_library_roots", lambda: roots)
    path = gradtrace.write("import torch\nimport kernels\nz = kernels.double(torch.ones(1, requires_grad=True))\n")
    assert "y = x * 2" not in story(path)
    sys.modules.pop("kernels")
    assert "y = x * 2" in story(path, "--package", "kernels")
    sys.modules.pop("kernels")
    assert gradtrace.here("follow", "--package", "no_such_thing", path).status == 2


def test_modules_and_several_files_are_told_with_their_names(told: Callable[..., list[str]], gradtrace) -> None:
    gradtrace.write("import torch\nSCALE = torch.tensor(3.0)\ndef scale(x):\n    return x * SCALE\n", "helper.py")
    lines = told("import torch, helper\nw = torch.ones(2, requires_grad=True)\ny = helper.scale(w)\n")
    assert lines[2] == "↳ helper.py"
    assert "↳ scale(x = w) in helper.py" in lines
    assert (
        "y = [3.0, 3.0]   from MulBackward0(w, SCALE)" in lines
        or "y = [3.0, 3.0]   from MulBackward0(x, SCALE)" in lines
    )


def test_the_story_ends_with_the_statement_that_failed(told: Callable[..., list[str]]) -> None:
    lines = told("import torch\ny = torch.ones(2, requires_grad=True) * 2\ndef f(t):\n    t.backward()\nf(y)\n")
    failed = lines.index("t.backward()")
    assert lines[failed + 1] == "raises RuntimeError: grad can be implicitly created only for scalar outputs"
    assert lines[failed + 2].startswith("state: t = [2.0, 2.0]")
    assert lines[failed + 3].startswith("✗ error[nonscalar-backward]")
    assert lines[-1] == "the script failed with RuntimeError"


@pytest.mark.parametrize(
    ("source", "options", "told"),
    [
        ("", (), "no statement of train.py ran\n"),
        ("x = 1", ("--function", "train_step", "--lines", "7"), "no statement of train_step ran in these lines\n"),
    ],
)
def test_that_there_is_nothing_to_tell_is_said(source, options, told, gradtrace) -> None:
    done = gradtrace.here("follow", *options, "-o", "story.txt", gradtrace.write(source))
    assert (done.out, done.err, done.status) == ("", f"gradtrace: {told}", 0)
    assert not (gradtrace.directory / "story.txt").read_text()


def test_a_loop_on_one_line_has_as_many_turns_as_it_makes(told: Callable[..., list[str]]) -> None:
    lines = told("""
        import torch
        x = torch.ones(1)
        for i in range(3): x = x * 2
    """)
    assert "3 iterations" in "\n".join(lines)


def test_what_is_too_large_to_be_looked_at_is_not_told_as_nothing(
    told: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradtrace.watcher.graph.walk.LIMIT", 4)
    monkeypatch.setattr("gradtrace.watcher.story.lineage._NODES", 6)
    lines = told("""
        import torch
        x = torch.ones(1, requires_grad=True)
        y = x
        for i in range(9):
            y = y * 2
        y.backward()
    """)
    story = "\n".join(lines)
    assert "from a graph that is too large to look at" in story
    assert "with respect to leaves beyond the part of its graph that was looked at" in story
    assert "not reached" not in story
    assert story.count("a leaf that requires grad") == 1


ENDLESS = """
    import torch
    from torch import nn

    def train(model, optimizer):
        while True:
            loss = model(torch.ones(4, 3)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    model = nn.Linear(3, 1)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1))
"""


def test_the_story_is_shown_while_the_script_runs_and_stays_when_it_is_killed(gradtrace) -> None:
    command = [sys.executable, "-m", "gradtrace", "follow", gradtrace.write(ENDLESS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=gradtrace.directory, env=gradtrace.environment) as run:
        assert run.stdout is not None
        shown = []
        for line in run.stdout:
            shown.append(line.decode())
            if "optimizer.step()" in shown[-1]:
                break
        run.kill()
    text = "".join(shown)
    assert "model is a Linear with 2 parameters" in text
    assert "── iteration 1 ──" in text
    assert "computes the gradient of loss" in text


def test_what_is_shown_early_is_not_shown_again(gradtrace) -> None:
    text = ENDLESS.replace("while True", "for step in range(4000)")
    told = gradtrace.alone("follow", gradtrace.write(text)).out
    assert told.count("model = nn.Linear(3, 1)") == 1
    assert told.count("── iteration 1 ──") == 1
    first, last = told.index("── iteration 1 ──"), told.rindex("── iterations ")
    assert first < last
    assert "4,000: " in told[last:]


def test_buffers_are_not_called_parameters(told: Callable[..., list[str]]) -> None:
    text = """
        import torch
        from torch import nn
        norms = nn.Sequential(*(nn.BatchNorm1d(3) for _ in range(5)))
        out = norms(torch.randn(4, 3))
    """
    lines = "\n".join(told(text))
    assert "5 buffers of norms are written in place" in lines


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_the_page_folds_the_parameters_of_a_module(gradtrace) -> None:
    text = """
        import torch
        from torch import nn
        model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(8)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.ones(2, 3)
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
    """
    gradtrace.here("follow", "-o", "story.html", gradtrace.write(text))
    browser = Browser(gradtrace.directory / "profile")
    try:
        browser.open(gradtrace.directory / "story.html")
        browser.run("show(steps.length - 1)")
        rows = "[...document.querySelectorAll('#state tr')].map(one => one.textContent)"
        names = browser.run(rows)
        assert "▸ model16 parameters, 16 changedleaf" in names
        assert len(names) < 8
        browser.run("document.querySelector('tr.fold').click()")
        assert len(browser.run(rows)) == len(names) + 16
        assert browser.complaints == []
    finally:
        browser.close()
