"""The mutants of `tests/mutants/`: its programs are silent, a sample is found, and the tool itself is right."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ENVIRONMENT, ROOT
from mutants import probe
from mutants.faults import mutate
from mutants.onset import delayed
from mutants.operators import OPERATORS
from mutants.source import Program

#: faults of many kinds that are found, at the right line
SAMPLE = (
    "drop-zero-grad gan:63",
    "drop-zero-grad seq2seq:65 (late)",
    "drop-zero-grad manual_sgd:58",
    "zero-grad-before-step sac:61",
    "zero-grad-before-loop finetune:53",
    "step-twice trainer_class:63",
    "repeat-backward-retained actor_critic_td3:56",
    "repeat-backward-freed mixture_density:53 (late)",
    "retain-graph multitask:67 (some)",
    "create-graph finetune:58 (late)",
    "drop-retain-graph gradient_surgery:38",
    "clip-after-step diffusion:92",
    "softmax-before-loss transformer_amp:61 (some)",
    "loss-without-reduction multitask:64",
    "drop-mean wgan_gp:57",
    "masked-square-root moco:51",
    "no-grad-function transformer_amp:41",
    "detach-on-path trainer_class:23",
    "no-grad-on-path reinforce:21",
    "gradient-without-graph wgan_gp:36",
    "layer-after-optimizer dqn:46",
    "hook-in-the-loop vq_vae:60",
    "write-in-helper vae:30",
    "hidden-write pinn:17",
    "weight-decay-in-place rnn_tbptt:70 (late)",
    "hard-choice seq2seq:39",
    "plain-container super_resolution:25",
)

LOOP = """\
import torch
import torch.nn.functional as F
from torch import nn

model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(16):  # over batches
    x, y = torch.randn(4, 2), torch.tensor([0, 1, 2, 0])
    optimizer.zero_grad()  # before backward
    scores = model(x)
    loss = F.cross_entropy(scores, y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    total += loss.item()
"""

Score = Callable[..., Any]


@pytest.fixture
def score(tmp_path: Path) -> Score:
    """Runs scripts/mutants: its exit status, what it printed, and its file of results."""

    def run(*arguments: str) -> tuple[int, str, Any]:
        results = tmp_path / "results.json"
        command = [sys.executable, str(ROOT / "scripts/mutants"), "--json", str(results), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path)
        assert results.exists(), f"status {done.returncode}: {done.stdout}{done.stderr}"
        return done.returncode, done.stdout, json.loads(results.read_text())

    return run


def probed(text: str) -> Program:
    code, observer = probe.instrumented(text, "train.py")
    exec(code, {"__name__": "__main__", "__note__": observer.note})
    return Program("train.py", text, observer.facts)


@pytest.fixture(scope="module")
def loop() -> Program:
    return probed(LOOP)


def mutated(program: Program, *operators: str) -> tuple[str, list[list[str]]]:
    """The text with the first fault of each operator, and for each the lines where it must be found."""
    faults = [next(iter(OPERATORS[name].make(program))) for name in operators]
    results = mutate(program, faults)
    lines = results[0].text.splitlines()
    marks = [sorted({n for _, numbers in r.wants for n in numbers}) for r in results]
    return results[0].text, [[lines[n - 1].strip() for n in numbers] for numbers in marks]


def test_programs_are_silent_and_a_sample_is_found(score: Score) -> None:
    picks = [argument for title in SAMPLE for argument in ("--pick", title)]
    status, printed, results = score(*picks, "--jobs", "1")
    assert [p for p in results["programs"] if p["alarms"] or p["trouble"]] == []
    assert status == 0
    assert len(results["programs"]) >= 20
    assert results["broken"] == [], "the edits of these operators are no Python"
    assert [name for name, places in results["places"].items() if not places] == [], "no program has a place for these"
    assert {m["title"] for m in results["mutants"]} == set(SAMPLE)
    assert [m["title"] for m in results["mutants"] if not m["line"]] == [], printed


def test_what_has_no_effect_is_dropped(tmp_path: Path, score: Score) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP.replace("    scores =", "    model.zero_grad()  # the same gradients again\n    scores ="))
    status, printed, results = score(str(script), "--only", "drop-zero-grad", "--per", "9", "--jobs", "1")
    assert status == 0
    assert "dropped: 3 no effect" in printed  # each of the two, and one of them late
    assert results["mutants"] == []


def test_a_program_with_a_finding_is_no_base(tmp_path: Path, score: Score) -> None:
    script = tmp_path / "train.py"
    script.write_text(LOOP.replace("    optimizer.zero_grad()  # before backward\n", ""))
    status, printed, results = score(str(script), "--only", "retain-graph", "--jobs", "1")
    assert status == 1
    assert "NOT SILENT train: stale-grad:12" in printed
    assert [a["rule"] for a in results["programs"][0]["alarms"]] == ["stale-grad"]


def test_there_are_enough_operators_and_each_says_what_it_does() -> None:
    assert len(OPERATORS) >= 30
    assert [o.name for o in OPERATORS.values() if not o.summary] == []


@pytest.mark.parametrize(
    ("operator", "lines"),
    [
        ("drop-zero-grad", ["loss.backward()"]),
        ("zero-grad-before-step", ["optimizer.zero_grad()"]),
        ("swap-step-and-backward", ["optimizer.step()", "loss.backward()"]),
        ("step-twice", ["optimizer.step()", "optimizer.step()"]),
        ("retain-graph", ["loss.backward(retain_graph=True)"]),
        ("clip-after-step", ["nn.utils.clip_grad_norm_(model.parameters(), 0.1)"]),
        ("softmax-before-loss", ["loss = F.cross_entropy(scores.softmax(-1), y)"]),
        ("keep-loss", ["total += loss"]),
        ("detach-in-helper", ["return value.detach()", "loss = F.cross_entropy(as_constant(scores), y)"]),
        ("no-grad-on-path", ["with torch.no_grad():", "scores = model(x)"]),
    ],
)
def test_the_finding_is_expected_at_the_line_of_the_fault(loop: Program, operator: str, lines: list[str]) -> None:
    _, (marked,) = mutated(loop, operator)
    if operator == "detach-in-helper":  # the first place is the model's call
        lines = [lines[0], marked[1]]
        assert "as_constant(" in marked[1]
    assert marked == lines


def test_all_other_lines_stay_as_they_are(loop: Program) -> None:
    text, _ = mutated(loop, "clip-after-step")
    lines = LOOP.splitlines()
    lines[13], lines[14] = lines[14], lines[13]
    assert text.splitlines() == lines


def test_a_fault_begins_late(loop: Program) -> None:
    fault = next(iter(OPERATORS["retain-graph"].make(loop)))
    late = delayed(loop, fault, "late")
    assert late is not None
    (result,) = mutate(loop, [late])
    expected = """\
        if next(ticks) >= 8:
            loss.backward(retain_graph=True)
        else:
            loss.backward()
    """
    assert textwrap.dedent(expected) in textwrap.dedent(result.text[result.text.index("    if next(") :])
    lines = result.text.splitlines()
    assert [lines[n - 1].strip() for _, numbers in result.wants for n in numbers] == [
        "loss.backward(retain_graph=True)"
    ]


def test_a_dropped_statement_is_dropped_late(loop: Program) -> None:
    late = delayed(loop, next(iter(OPERATORS["drop-zero-grad"].make(loop))), "some")
    assert late is not None
    assert "    if next(ticks) % 3 != 2:\n        optimizer.zero_grad()" in mutate(loop, [late])[0].text


def test_a_loop_that_counts_is_the_clock() -> None:
    program = probed(LOOP.replace("    total += loss.item()\n", "    total += loss.item() + step\n"))
    late = delayed(program, next(iter(OPERATORS["retain-graph"].make(program))), "late")
    assert late is not None
    assert "    if step >= 8:\n" in mutate(program, [late])[0].text


def test_two_faults_have_their_own_lines(loop: Program) -> None:
    _, (one, two) = mutated(loop, "drop-zero-grad", "softmax-before-loss")
    assert one == ["loss.backward()"]
    assert two == ["loss = F.cross_entropy(scores.softmax(-1), y)"]


def test_faults_at_one_place_do_not_fit_together(loop: Program) -> None:
    with pytest.raises(ValueError, match="overlap"):
        mutated(loop, "retain-graph", "create-graph")
