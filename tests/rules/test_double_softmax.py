"""Probabilities in a loss that takes scores are told at the softmax that made them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "double-softmax"

IMPORTS = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

#: the line to be blamed is marked
BAD = {
    "module softmax head": """\
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 3)
        self.s = nn.Softmax(dim=1)
    def forward(self, x):
        return self.s(self.f(x))  # here
m = N(); crit = nn.CrossEntropyLoss()
for _ in range(3):
    crit(m(torch.randn(5, 4)), torch.randint(0, 3, (5,))).backward()
""",
    "sigmoid and logits": """\
m = nn.Linear(4, 1)
p = torch.sigmoid(m(torch.randn(5, 4))).squeeze(1)  # here
F.binary_cross_entropy_with_logits(p, torch.ones(5)).backward()
""",
    "sequential last": """\
m = nn.Sequential(nn.Linear(4, 3), nn.Softmax(-1))  # here
loss = F.cross_entropy(m(torch.randn(5, 4)), torch.randint(0, 3, (5,)))
loss.backward()
""",
    "view and reduction none": """\
m = nn.Linear(4, 6)
p = m(torch.randn(5, 4)).view(5, 2, 3).softmax(-1).view(-1, 3)  # here
w = torch.rand(10)
(F.cross_entropy(p, torch.randint(0, 3, (10,)), reduction="none") * w).mean().backward()
""",
    "head of a class in a sequential": """\
class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Sequential(
            nn.ReLU(),
            nn.Linear(8, 1),
            nn.Sigmoid(),  # here
        )
    def forward(self, x):
        return self.head(self.body(x))
m = N()
F.binary_cross_entropy_with_logits(m(torch.randn(5, 4)), torch.ones(5, 1)).backward()
""",
    "softmax in the model and in a loss of one's own": """\
m = nn.Linear(4, 3)
p = F.softmax(m(torch.randn(5, 4)), dim=1)  # here
logs = F.log_softmax(p, dim=1)
(-logs.gather(1, torch.zeros(5, 1, dtype=torch.long))).mean().backward()
""",
    "probabilities as logits of a distribution": """\
from torch.distributions import Categorical
m = nn.Linear(4, 3)
p = m(torch.randn(5, 4)).softmax(-1)  # here
d = Categorical(logits=p)
(-d.log_prob(d.sample())).mean().backward()
""",
    "nll without log": """\
m = nn.Linear(4, 3)
p = F.softmax(m(torch.randn(5, 4)), 1)  # here
F.nll_loss(p, torch.randint(0, 3, (5,))).backward()
""",
    "sigmoid twice bce": """\
m = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())  # here
p = m(torch.randn(5, 4))
F.binary_cross_entropy(torch.sigmoid(p), torch.ones(5, 1)).backward()
""",
    "mean of an ensemble's probabilities": """\
ms = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
x = torch.randn(5, 4)
p = torch.stack([torch.sigmoid(m(x)) for m in ms]).mean(0)  # here
F.binary_cross_entropy_with_logits(p, torch.ones(5, 1)).backward()
""",
    "temperature on probabilities": """\
m = nn.Linear(4, 3)
p = m(torch.randn(5, 4)).softmax(1)  # here
F.kl_div(F.log_softmax(p / 4.0, dim=1), torch.full((5, 3), 1 / 3), reduction="batchmean").backward()
""",
    "no logarithm for ctc": """\
m = nn.Linear(4, 3)
p = m(torch.randn(6, 2, 4)).softmax(2)  # here
F.ctc_loss(p, torch.tensor([[1, 2], [2, 1]]), torch.tensor([6, 6]), torch.tensor([2, 2])).backward()
""",
}

GOOD = {
    "log_softmax and cross_entropy": """\
m = nn.Linear(4, 3)
p = F.log_softmax(m(torch.randn(5, 4)), dim=1)
F.cross_entropy(p, torch.randint(0, 3, (5,))).backward()
""",
    "right pairs": """\
m = nn.Linear(4, 3)
x = torch.randn(5, 4); y = torch.randint(0, 3, (5,))
F.cross_entropy(m(x), y).backward()
F.nll_loss(m(x).log_softmax(1), y).backward()
F.nll_loss(m(x).softmax(1).clamp(min=1e-8).log(), y).backward()
F.binary_cross_entropy(m(x).sigmoid(), torch.rand(5, 3)).backward()
F.binary_cross_entropy(m(x).softmax(1), torch.rand(5, 3)).backward()
F.binary_cross_entropy_with_logits(m(x), torch.rand(5, 3)).backward()
""",
    "distillation and soft targets": """\
m, t = nn.Linear(4, 3), nn.Linear(4, 3)
x = torch.randn(5, 4)
F.cross_entropy(m(x), (t(x) / 2).softmax(1)).backward()
F.kl_div(m(x).log_softmax(1), t(x).softmax(1), reduction="batchmean").backward()
F.kl_div(m(x).log_softmax(1), t(x).log_softmax(1), reduction="batchmean", log_target=True).backward()
""",
    "softmax along two dimensions, and of a mixture": """\
m = nn.Linear(4, 3)
s = m(torch.randn(5, 4))
s.softmax(0).softmax(1).pow(2).mean().backward(retain_graph=True)
(s.softmax(1) / 0.1).softmax(1).log().mean().backward(retain_graph=True)
F.log_softmax(F.log_softmax(s, 1), 1).mean().backward()
""",
    "distributions": """\
from torch.distributions import Bernoulli, Categorical
m = nn.Linear(4, 3)
for d in (Categorical(logits=m(torch.randn(5, 4))), Categorical(probs=m(torch.randn(5, 4)).softmax(-1)),
          Categorical(logits=m(torch.randn(5, 4)).log_softmax(-1)), Bernoulli(probs=m(torch.randn(5, 4)).sigmoid())):
    (-d.log_prob(d.sample())).mean().backward()
torch.logsumexp(m(torch.randn(5, 4)).softmax(-1), 1).mean().backward()
""",
    "attention weights inside": """\
m = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
a = (m(x) @ x.transpose(1, 2)).softmax(-1)
F.cross_entropy((a @ x).mean(1), torch.zeros(2, dtype=torch.long)).backward()
""",
    "gated scores": """\
m = nn.Linear(4, 3)
y = torch.zeros(5, dtype=torch.long)
s = m(torch.randn(5, 4))
F.cross_entropy(s * torch.sigmoid(s), y).backward()
s = m(torch.randn(5, 4))
F.cross_entropy(torch.sigmoid(s) * 10, y).backward()
""",
    "metric only": """\
m = nn.Linear(4, 3)
x = torch.randn(5, 4); y = torch.zeros(5, dtype=torch.long)
p = m(x).softmax(1)
shown = F.cross_entropy(p, y)
(-p.gather(1, y[:, None]).log().mean()).backward()
""",
    "two head gates": """\
m = nn.Linear(3, 3)
s = m(torch.randn(4, 3))
F.multilabel_soft_margin_loss(s, torch.ones(4, 3)).backward()
""",
    "sharpened attention": """\
m = nn.Linear(4, 4)
x = torch.randn(2, 5, 4)
a = (m(x) @ x.transpose(1, 2)).softmax(-1)
((a / 0.1).softmax(-1) @ x).sum().backward()
""",
    "mean of scores, and of mixed parts": """\
m = nn.Linear(4, 3); gate = nn.Linear(4, 3)
x = torch.randn(5, 4); y = torch.zeros(5, dtype=torch.long)
F.cross_entropy(torch.stack([m(x), gate(x)]).mean(0), y).backward()
F.cross_entropy(torch.cat([m(x), gate(x).sigmoid()], 1), y).backward()
""",
}


@pytest.fixture(scope="module")
def reports(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return check_all({name: IMPORTS + text for name, text in (BAD | GOOD).items()})


def found(report: dict[str, Any]) -> list[tuple[str, int]]:
    return [(finding["rule"], finding["line"]) for finding in report["findings"] if finding["level"] != "note"]


@pytest.mark.parametrize("name", BAD)
def test_the_cause_is_found(reports: dict[str, Any], name: str) -> None:
    lines = (IMPORTS + BAD[name]).splitlines()
    marked = next(number for number, line in enumerate(lines, 1) if "# here" in line)
    assert found(reports[name]) == [(RULE, marked)]
    assert reports[name]["exit_code"] == 1
    assert not reports[name]["remarks"]


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_left_alone(reports: dict[str, Any], name: str) -> None:
    assert found(reports[name]) == []
    assert reports[name]["exit_code"] == 0
    assert not reports[name]["remarks"]
