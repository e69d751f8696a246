"""stale-grad, on events written by hand, and the name in its message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from casefiles import case

from gradtrace.model.events import Contribution, End, Step, Use
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Site, Stack
from gradtrace.rules.stale_grad import StaleGrad


def at(line: int, path: str = "/nowhere/train.py") -> Stack:
    return (Site(path, line, "train"),)


def step(calls: int, used: int, optimizer: str = "Adam", path: str = "/nowhere/train.py", **facts: Any) -> Step:
    """A step at line 9 on gradients of backward calls at line 8."""
    contributions = tuple(Contribution(number, at(8, path), "loss", number) for number in range(calls))
    use = Use(contributions, used, at(9, path) if used else (), ("model.weight",), 1)
    return Step(1, optimizer, 7, at(9, path), (use,), **facts)


def found(*steps: Step) -> list[Finding]:
    rule = StaleGrad()
    return [finding for one in (*steps, End()) for finding in rule.see(one)]


def test_the_name_of_a_dead_tensor_dies_with_it(check: Callable[..., Any]) -> None:
    checked = check(case("stale-grad/bad/a_tensor_at_the_address_of_a_dead_one"))
    assert "`beta`" in checked.findings[0]["message"], checked.text


def test_how_many_calls_were_summed_and_how_many_of_them_were_stale() -> None:
    (finding,) = found(step(calls=3, used=2))
    assert (finding.site.line, finding.level) == (8, Level.ERROR)
    assert "from 3 backward calls" in finding.message
    assert "the first 2 were already applied" in finding.message


def test_fresh_gradients_are_fine() -> None:
    assert not found(step(calls=1, used=0), step(calls=4, used=0))


def test_a_second_step_on_the_same_gradient_is_fine() -> None:
    assert not found(step(calls=1, used=1))


def test_an_update_by_hand() -> None:
    (finding,) = found(step(calls=2, used=1, optimizer=""))
    assert finding.message.startswith("the manual update applies")
    assert "`model.weight.grad = None`" in finding.help


def test_a_closure() -> None:
    (finding,) = found(step(calls=4, used=3, optimizer="LBFGS", evaluations=4))
    assert "at the start of the closure" in finding.help


def test_the_largest_group_of_leaves_is_told_of() -> None:
    few, many = step(calls=2, used=1).uses[0], step(calls=3, used=2).uses[0]
    both = Step(1, "Adam", 7, at(9), (few, Use(many.contributions, 2, at(9), ("a", "b", "c"), 3)))
    (finding,) = found(both)
    assert "`a`, `b` and 1 more" in finding.message


SOURCE = """\
def train(loader):
    for epoch in range(3):
        for i, x in enumerate(loader):
            loss = f(x)
            y = x


            loss.backward()
            opt.step()
"""


@pytest.mark.parametrize(
    ("guard", "sizes", "count"),
    [
        ("if (i + 1) % 4 == 0:", [3, 4, 4, 4], 1),
        ("if (i + 1) % 4 == 0:", [4, 4, 6, 4, 6], 1),
        ("if (i + 1) % 4 == 0:", [4, 4, 4, 4, 4], 0),
        ("if (i + 1) % 4 == 0:", [4, 4, 2, 4], 0),
        ("if i % 4 == 0:", [1, 4, 4, 4], 0),
        ("if (i + 1) % 4 == 0:", [3, 4, 5, 4], 0),
        ("if tokens > 100:", [3, 4, 4, 4], 0),
    ],
)
def test_uneven_windows(tmp_path: Path, guard: str, sizes: list[int], count: int) -> None:
    path = tmp_path / "train.py"
    rows = SOURCE.splitlines()
    rows[7:] = [f"            {guard}", f"    {rows[8]}"]
    path.write_text("\n".join(rows))
    findings = found(*(step(calls=size, used=0, path=str(path)) for size in sizes))
    assert [(one.site.line, one.level) for one in findings] == [(8, Level.WARNING)] * count
