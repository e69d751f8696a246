"""`gradtrace why`: what became of each parameter, the life of one, names, and exit codes."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from browser import CHROMIUM, Browser
from conftest import Runner

MODEL = """
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(4, 8)
            self.layers = nn.ModuleList([nn.Linear(8, 8)])
            self.head = nn.Linear(8, 2)
            self.extra = nn.Linear(3, 3).requires_grad_(False)

        def forward(self, x):
            z = torch.tanh(self.encoder(x)).detach()
            return self.head(torch.tanh(self.layers[0](z)))
"""
TRAINING = (
    MODEL
    + """
    def main():
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(10):
            loss = model(torch.randn(6, 4)).pow(2).mean()
            if step != 5:
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    main()
"""
)
STATES = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    trained = nn.Parameter(torch.ones(3))
    forgotten = nn.Parameter(torch.ones(3))
    by_hand = nn.Parameter(torch.ones(3))
    frozen = nn.Parameter(torch.ones(3), requires_grad=False)
    unread = nn.Parameter(torch.ones(3))
    masked = nn.Parameter(torch.ones(3))
    infinite = nn.Parameter(torch.zeros(3))
    still = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([trained, frozen, unread, masked], lr=0.1)
    second = torch.optim.SGD([infinite], lr=0.1)
    third = torch.optim.SGD([still], lr=0.0)
    for _ in range(4):
        loss = (trained * forgotten * by_hand * still).sum() + (masked * 0).sum() + infinite.sqrt().sum()
        for one in (trained, forgotten, by_hand, masked, infinite, still):
            one.grad = None
        loss.backward()
        optimizer.step()
        second.step()
        third.step()
        with torch.no_grad():
            by_hand -= 0.1 * by_hand.grad
            infinite.zero_()
"""


def lives(gradtrace: Runner, *arguments: str, status: int = 1) -> dict[str, Any]:
    done = gradtrace.here("why", "-o", "why.json", *arguments)
    assert done.status == status, done.err
    document = json.loads((gradtrace.directory / "why.json").read_text())
    return {life["name"]: life for life in document["parameters"]}


def test_every_state_is_seen(gradtrace: Runner) -> None:
    found = {name: life["state"] for name, life in lives(gradtrace, gradtrace.write(STATES)).items()}
    assert found == {
        "trained": "trains",
        "forgotten": "in no optimizer",
        "by_hand": "updated by hand",
        "frozen": "frozen",
        "unread": "never reached by a gradient",
        "masked": "gradient always zero",
        "infinite": "gradient not finite",
        "still": "has a gradient, and no step changes it",
    }


def test_the_reason_is_what_check_finds(gradtrace: Runner) -> None:
    found = lives(gradtrace, gradtrace.write(TRAINING))["model.encoder.weight"]
    assert found["state"] == "never reached by a gradient"
    assert "detach()" in found["reason"]
    assert found["at"] == {"file": "train.py", "line": 16}


def test_equal_iterations_fold(gradtrace: Runner) -> None:
    found = lives(gradtrace, gradtrace.write(TRAINING), "head.weight", status=0)["model.head.weight"]
    stretches = [(one["first"]["number"], one["last"]["number"], one["times"]) for one in found["iterations"]]
    assert stretches == [(1, 5, 5), (6, 6, 1), (7, 10, 4)]
    added = [one["first"]["backward_calls"][0]["accumulated"] for one in found["iterations"]]
    assert added == [False, True, False]
    assert found["steps"] == len(found["gradients"]) == 10


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("model.head.bias", {"model.head.bias"}),
        ("head.bias", {"model.head.bias"}),
        ("model.layers[0].bias", {"model.layers.0.bias"}),
        ("model.head.*", {"model.head.weight", "model.head.bias"}),
        ("head", {"model.head.weight", "model.head.bias"}),
        ("head.*", {"model.head.weight", "model.head.bias"}),
        ("model.layers[*].bias", {"model.layers.0.bias"}),
    ],
)
def test_a_parameter_can_be_named_in_several_ways(gradtrace: Runner, name: str, names: set[str]) -> None:
    assert set(lives(gradtrace, gradtrace.write(TRAINING), name, status=0)) == names


def test_an_unknown_name_gets_the_nearest(gradtrace: Runner) -> None:
    done = gradtrace.here("why", gradtrace.write(TRAINING), "head.wieght")
    assert (done.status, done.out) == (2, "")
    assert "no parameter of this run is called 'head.wieght'; did you mean model.head.weight?" in done.err


def test_the_arguments_of_the_script_come_after_the_name(gradtrace: Runner) -> None:
    script = gradtrace.write(TRAINING + "    import sys; print('arguments', sys.argv[1:])\n")
    assert "arguments ['--epochs', '3']" in gradtrace.alone("why", script, "head.bias", "--epochs", "3").out
    assert "arguments ['data']" in gradtrace.alone("why", script, "--", "data").out


def test_the_table_and_the_story_read_well(gradtrace: Runner) -> None:
    script = gradtrace.write(TRAINING)
    table = gradtrace.alone("why", script).out
    assert "never reached by a gradient: 2 parameters, SGD at line 21, 10 steps" in table
    assert "4 of 8 parameters train" in table
    story = gradtrace.alone("why", "--iteration", "6", script, "model.head.bias").out
    assert "iteration 6  loss.backward() (line 26)" in story
    assert "added to the gradient that was there" in story
    assert "iterations 1-5" not in story


def test_a_run_without_parameters_is_nothing_to_check(gradtrace: Runner) -> None:
    done = gradtrace.alone("why", gradtrace.write("print('hello')\n"))
    assert (done.status, done.out) == (4, "hello\n")
    assert "no parameter was seen" in done.err


def test_the_script_trains_as_it_does_alone(gradtrace: Runner) -> None:
    script = gradtrace.write(STATES + "    print([one.tolist() for one in (trained, by_hand, still)])\n")
    plain = gradtrace.shell(f"{sys.executable} {script}").out
    assert plain
    assert gradtrace.alone("why", "-o", "why.txt", script).out == plain


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_the_page_sorts_and_opens_a_life(gradtrace: Runner) -> None:
    done = gradtrace.here("why", "-o", "why.html", gradtrace.write(TRAINING))
    assert done.status == 1
    browser = Browser(gradtrace.directory / "profile")
    try:
        browser.open(gradtrace.directory / "why.html")
        assert browser.run("document.querySelector('h1').textContent") == "train.py: 4 of 8 parameters train"
        browser.run("document.querySelectorAll('th')[2].click()")
        states = browser.run("[...document.querySelectorAll('tr.life td:nth-child(3)')].map((one) => one.textContent)")
        assert states == sorted(states)
        browser.run("document.querySelector('tr.life').click()")
        assert "does not require grad" in browser.run("document.querySelector('tr.story').textContent")
        assert browser.run("document.querySelectorAll('svg').length") == 8
        assert browser.complaints == []
    finally:
        browser.close()


def test_the_path_from_the_loss_is_told_in_one_line(gradtrace: Runner) -> None:
    script = gradtrace.write(TRAINING)
    assert (
        "path from the loss: loss ← Pow ← head ← model.head.weight"
        in gradtrace.alone("why", script, "model.head.weight").out
    )
    cut = gradtrace.alone("why", script, "encoder.weight").out
    assert "z ✂ detach() on line 16 ← model.encoder.weight" in cut


def test_a_recording_tells_the_same_lives(gradtrace: Runner) -> None:
    script = gradtrace.write(STATES)
    gradtrace.here("check", "--record", "run.jsonl", script)
    told = lives(gradtrace, script)
    recorded = lives(gradtrace, "run.jsonl")
    for life in told.values():
        life["path"] = ""
    assert recorded == told
    done = gradtrace.here("why", "run.jsonl", "--epochs")
    assert "it takes no arguments" in done.err


def test_a_recording_of_a_killed_run_tells_of_no_parameter(gradtrace: Runner) -> None:
    gradtrace.here("check", "--record", "run.jsonl", gradtrace.write(STATES))
    lines = (gradtrace.directory / "run.jsonl").read_text().splitlines(keepends=True)
    (gradtrace.directory / "killed.jsonl").write_text("".join(lines[:-1]))
    done = gradtrace.here("why", "killed.jsonl")
    assert (done.status, done.out) == (2, "")
    assert "record the whole run" in done.err


SUMMED = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    by_hand = torch.ones(3, requires_grad=True)
    given = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    other = torch.optim.SGD([given], lr=0.01)
    for step in range(6):
        loss = model(torch.randn(4, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()
        penalty = (by_hand * given.detach()).pow(2).sum()
        penalty.backward()
        with torch.no_grad():
            by_hand -= 0.01 * by_hand.grad
        given.grad = torch.ones(3)
        other.step()
"""


def test_what_trains_with_a_wrong_gradient_says_so(gradtrace: Runner) -> None:
    script = gradtrace.write(SUMMED)
    found = lives(gradtrace, script, status=0)
    assert found["model.weight"]["state"] == "trains"
    assert (
        "applies the gradient of `model.weight` and `model.bias` from 2 backward calls"
        in found["model.weight"]["reason"]
    )
    assert found["by_hand"]["state"] == "updated by hand"
    assert "the manual update applies the gradient of `by_hand`" in found["by_hand"]["reason"]
    # its gradient comes from no backward call
    assert (found["given"]["state"], found["given"]["reason"]) == ("trains", "")
    assert "\nBut `optimizer.step()` applies" in gradtrace.alone("why", script, "model.weight").out


def test_a_crash_before_any_parameter_is_explained(gradtrace: Runner) -> None:
    script = gradtrace.write("""
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.gain = nn.Parameter(torch.ones(4))
            def forward(self, x):
                self.gain = self.gain.abs()
                return x * self.gain
        Net()(torch.randn(2, 4))
    """)
    done = gradtrace.alone("why", script)
    assert done.status == 3
    assert "`gain` is a Parameter of Net, and is assigned the result of an operation" in done.err


def test_plain_tensors_are_shown_where_there_are_no_parameters(gradtrace: Runner) -> None:
    script = gradtrace.write("""
        import torch
        x = torch.ones(3, requires_grad=True)
        x.pow(2).sum().backward()
    """)
    assert lives(gradtrace, script, status=0)["x"]["state"] == "in no optimizer"


def test_what_an_error_cut_short_is_explained_by_it(gradtrace: Runner) -> None:
    script = gradtrace.write("""
        import torch
        from torch import nn
        model, other = nn.Linear(2, 1), nn.Linear(2, 1)
        optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
        loss = model(torch.ones(3, 2)).pow(2).sum()
        loss.backward()
        loss.backward()
        optimizer.step()
    """)
    found = lives(gradtrace, script, status=3)
    assert found["model.weight"]["state"] == "has a gradient, and no step changes it"
    assert "graph" in found["model.weight"]["reason"]
    assert found["model.weight"]["at"]["line"] == 7
