"""Other releases of torch: what gradtrace says where one is not supported, and what it leaves open where one lacks something."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import Optimizer

import gradtrace
from gradtrace.model.finding import SAVED_VALUES
from gradtrace.rules import Judge, Rule, all_rules
from gradtrace.watcher import compat
from gradtrace.watcher.watch import Watch
from tests.conftest import Runner

WHY = "needs saved tensor values (torch >= 2.13)"
NEEDING = {rule.id for rule in all_rules() if SAVED_VALUES in rule.needs.abilities}
#: pairs that are meant: a weight of the full shape enters the sum; and, in the second script, a checkpoint
PAIRS = """
import torch
from torch.utils.checkpoint import checkpoint
weight, free = torch.rand(3, 3), torch.nn.Parameter(torch.zeros(3))
optimizer = torch.optim.SGD([free], lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    output = {output}
    (((output - torch.ones(3, 1)) ** 2) * weight).mean().backward()
    optimizer.step()
"""
DIRECT, CHECKPOINTED = "free * 2", "checkpoint(lambda one: one * 2, free, use_reentrant=False)"


def test_nothing_that_gradtrace_cannot_do_without_is_missing() -> None:
    assert [piece.name for piece in compat.missing() if piece.lost is compat.CORE] == []


@pytest.mark.parametrize("piece", compat.PIECES, ids=lambda piece: piece.name)
def test_each_piece_says_who_has_it_and_what_becomes_of_gradtrace_without_it(piece: compat.Piece) -> None:
    assert piece.versions
    assert (piece.fallback == "none") is (piece.lost is compat.CORE)


@pytest.mark.parametrize(
    ("begin", "words"),
    [
        ("torch.__version__ = '2.4.1'", "this is torch 2.4.1, and gradtrace needs torch 2.6 to "),
        (
            "torch.__version__ = '9.0.0'; del torch._C._len_torch_function_stack",
            "this is torch 9.0.0, which has no torch._C._len_torch_function_stack; gradtrace needs torch 2.6 to ",
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "show", "follow"])
def test_a_torch_that_is_not_supported_ends_with_one_line_before_the_script_starts(
    command: str, begin: str, words: str, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('ran')")
    start = f"import torch; {begin}; from gradtrace.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, command, str(script)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("", 2)
    assert done.stderr.startswith(f"gradtrace: {words}")
    assert done.stderr.count("\n") == 1


def test_a_torch_newer_than_any_tested_gives_a_remark(gradtrace: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compat, "VERSION", (9, 0))
    document = gradtrace.document(gradtrace.write(PAIRS.format(output=DIRECT)))
    (remark,) = document["remarks"]
    assert "is newer than any that gradtrace was tested with" in remark
    assert document["exit_code"] == 0


class TestWhereSavedTensorsDoNotShowTheirHooks:
    @pytest.fixture(autouse=True)
    def older_torch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compat, "SHOWS_SAVED", False)

    def test_they_are_read_until_there_may_be_one(self, gradtrace: Runner) -> None:
        document = gradtrace.document(gradtrace.write(PAIRS.format(output=DIRECT)))
        assert document["findings"] == []
        assert not NEEDING & {one["rule"] for one in document["unjudged"]}

    @pytest.mark.parametrize("wanted", ["json", "sarif", "junit", "github"])
    def test_rules_that_need_them_do_not_judge_from_then_on(self, wanted: str, gradtrace: Runner) -> None:
        done = gradtrace.here("check", "--format", wanted, gradtrace.write(PAIRS.format(output=CHECKPOINTED)))
        assert done.status == 0
        assert WHY.replace(">", "&gt;" if wanted == "junit" else ">") in done.out
        assert all(rule in done.out for rule in NEEDING)

    def test_people_are_told_with_v(self, gradtrace: Runner) -> None:
        out = gradtrace.here("check", "-v", gradtrace.write(PAIRS.format(output=CHECKPOINTED))).out
        assert f"lacked data: {WHY}: {', '.join(sorted(NEEDING))}" in " ".join(out.split())

    def test_no_hook_of_the_scripts_is_run(self, gradtrace: Runner) -> None:
        script = """
            import torch
            w = torch.ones(3, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: (print("unpacked"), one)[1]):
                loss = w.exp().sum()
            loss.backward()
        """
        done = gradtrace.here("check", gradtrace.write(script))
        assert done.out.count("unpacked") == 1


def test_a_patch_of_the_scripts_own_survives_the_watch() -> None:
    bare = Optimizer.add_param_group
    groups = []

    def patch(found: Callable[..., Any]) -> Callable[..., Any]:
        def add_param_group(optimizer: Any, group: Any) -> None:
            groups.append(group)
            found(optimizer, group)

        return add_param_group

    try:
        with gradtrace.watch():
            Optimizer.add_param_group = own = patch(Optimizer.add_param_group)  # type: ignore[method-assign]
        assert Optimizer.add_param_group is own
        torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)
        assert len(groups) == 1
    finally:
        Optimizer.add_param_group = bare  # type: ignore[method-assign]


def test_every_patch_is_taken_off() -> None:
    places = [
        *((Optimizer, name) for name in ("add_param_group", "zero_grad")),
        *((torch.nn.Module, "zero_grad"), (torch, "typename"), (torch, "compile")),
        (torch.overrides, "has_torch_function"),
    ]
    before = [getattr(owner, name) for owner, name in places]
    with gradtrace.watch():
        assert all(getattr(owner, name) is not one for (owner, name), one in zip(places, before, strict=True))
    assert [getattr(owner, name) for owner, name in places] == before


def test_a_rule_that_fails_is_not_healthy(gradtrace: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = next(rule for rule in all_rules() if rule.id == "stale-grad")

    def fail(self: Rule, event: Any) -> Any:
        raise LookupError("broken")

    monkeypatch.setattr(stale, "see", fail)
    done = gradtrace.here("check", "--format", "json", gradtrace.write(PAIRS.format(output=DIRECT)))
    document = json.loads(done.out)
    assert (document["status"], document["exit_code"], done.status) == ("incomplete", 4, 4)
    assert {"rule": "stale-grad", "why": "an internal error stopped the rule"} in document["unjudged"]
    assert "LookupError: broken" in document["remarks"][0]


def test_what_was_found_before_an_internal_error_stays() -> None:
    def train(steps: int) -> None:
        weight = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(steps):
            weight.pow(2).sum().backward()
            optimizer.step()

    judge = Judge()
    with Watch(judge.see) as watch:
        train(4)
        watch._session.fail(LookupError("broken"), watch)
        train(4)
    assert [finding.rule for finding in judge.findings] == ["stale-grad"]
    assert judge.failed
    assert "stale-grad" in {one.rule for one in judge.unjudged}
