"""leaked-grad: which other line it names, and which losses are opponents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from casefiles import case


def test_where_a_module_calls_its_target(check: Callable[..., Any]) -> None:
    checked = check(case("leaked-grad/bad/target_network_called_in_a_forward"))
    (finding,) = checked.findings
    called = next(number for number, line in enumerate(checked.script.splitlines(), 1) if "self.target(x)" in line)
    assert [called, "these parameters are reached through this line"] in finding["related"]


OPPONENTS = """
first = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 3))
second = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
one, two = torch.optim.Adam(first.parameters()), torch.optim.Adam(second.parameters())
zeros, ones, labels = torch.zeros(6, 1), torch.ones(6, 1), torch.rand(6, 1)
bce = nn.BCEWithLogitsLoss()
for _ in range(5):
    one.zero_grad()
    two.zero_grad()
    made, seen = second(first(torch.randn(6, 2))), second(torch.randn(6, 3))
    ({a}).backward(retain_graph=True)
    ({b}).backward()
    two.step()
    one.step()
"""


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param("bce(seen, ones) + bce(made, zeros)", "bce(made, ones)", id="labels"),
        pytest.param("(bce(seen, ones) + bce(made, zeros)) / 2", "-bce(made, zeros)", id="away from the same label"),
        pytest.param("F.mse_loss(seen, ones) + F.mse_loss(made, zeros)", "F.mse_loss(made, ones)", id="least squares"),
        pytest.param("made.mean() - seen.mean()", "-0.1 * made.mean()", id="plain outputs"),
        pytest.param("F.relu(1 - seen).mean() + F.relu(1 + made).mean()", "-made.mean()", id="hinge"),
        pytest.param("(F.softplus(-seen) + F.softplus(made)).mean()", "F.softplus(-made).mean()", id="softplus"),
        pytest.param(
            "-(seen.sigmoid().log() + (1 - made.sigmoid()).log()).mean()",
            "made.sigmoid().log().mean() * -1.0",
            id="logarithms",
        ),
    ],
)
def test_losses_that_drive_one_output_to_different_places(check: Callable[..., Any], a: str, b: str) -> None:
    checked = check(OPPONENTS.format(a=a, b=b))
    (finding,) = checked.findings
    assert finding["rule"] == "leaked-grad"
    assert checked.script.splitlines()[finding["line"] - 1].strip() == f"({a}).backward(retain_graph=True)"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param("bce(seen, ones) + bce(made, ones)", "0.1 * bce(made, ones)", id="the same label"),
        pytest.param("bce(seen, labels) + bce(made, labels)", "bce(made, ones)", id="labels of data"),
        pytest.param("bce(seen, ones) + bce(made, zeros)", "made.square().mean()", id="a penalty"),
        pytest.param("bce(made, zeros)", "bce(made, ones)", id="neither is about data"),
        pytest.param("F.mse_loss(seen, labels) + made.var()", "-made.mean()", id="a spread"),
    ],
)
def test_losses_that_may_be_summed(check: Callable[..., Any], a: str, b: str) -> None:
    assert not check(OPPONENTS.format(a=a, b=b)).findings
