"""Whole evaluations that build graphs for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

START = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batches(count):
    return [(torch.randn(4, 3), torch.randint(0, 2, (4,))) for _ in range(count)]


def train():
    model.train()
    for x, y in batches(3):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
"""

#: the line to be blamed is marked
BAD = {
    "accuracy": """
def evaluate():
    model.eval()
    correct = 0
    for x, y in batches(10):
        out = model(x)  # <- here
        correct += (out.argmax(1) == y).sum().item()
    return correct

for _ in range(2):
    train()
    print(evaluate())
""",
    "method": """
class Trainer:
    def validate(self):
        model.eval()
        return sum(self.loss(x, y) for x, y in batches(12)) / 12

    def loss(self, x, y):
        return F.cross_entropy(model(x), y).item()  # <- here

train()
Trainer().validate()
train()
""",
    "after training": """
train()
model.eval()
for x, _ in batches(20):
    print(F.softmax(model(x), dim=1).max().item())  # <- here
""",
    "submodule in evaluation": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 2)

    def forward(self, x):
        for _ in range(3):
            x = torch.cat([x[:, :1], self.body(x)], 1)
        return x

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(2, 3)).sum().backward()
opt.step()
net.eval()
errors = []
for x, _ in batches(10):
    errors.append(float(net(x).abs().mean()))  # <- here
""",
}

GOOD = {
    "no_grad": """
for _ in range(2):
    train()
    model.eval()
    with torch.no_grad():
        for x, y in batches(10):
            print(F.cross_entropy(model(x), y).item())
""",
    "few passes": """
for _ in range(3):
    train()
    model.eval()
    for x, y in batches(2):
        print(F.cross_entropy(model(x), y).item())
""",
    "acting in training mode": """
for _ in range(4):
    log_probs = []
    for x, y in batches(12):
        action = model(x).argmax(1)
    train()
""",
    "saliency": """
train()
model.eval()
for x, y in batches(8):
    x.requires_grad_()
    F.cross_entropy(model(x), y).backward()
    print(x.grad.abs().mean())
optimizer.zero_grad()
""",
    "one backward for many passes": """
train()
model.eval()
for _ in range(3):
    optimizer.zero_grad()
    sum(F.cross_entropy(model(x), y) for x, y in batches(10)).backward()
    optimizer.step()
""",
    "an input's gradient": """
train()
model.eval()
for x, y in batches(8):
    x.requires_grad_()
    (grad,) = torch.autograd.grad(F.cross_entropy(model(x), y), x)
""",
}


@pytest.fixture(scope="module")
def reports(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return check_all({name: START + text for name, text in (BAD | GOOD).items()})


def found(report: dict[str, Any]) -> list[tuple[str, int]]:
    return [(finding["rule"], finding["line"]) for finding in report["findings"] if finding["level"] != "note"]


@pytest.mark.parametrize("name", BAD)
def test_the_call_of_the_model_is_told(reports: dict[str, Any], name: str) -> None:
    lines = (START + BAD[name]).splitlines()
    marked = next(number for number, line in enumerate(lines, 1) if "# <- here" in line)
    assert found(reports[name]) == [("unused-graph", marked)]
    assert not reports[name]["remarks"]


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_left_alone(reports: dict[str, Any], name: str) -> None:
    assert found(reports[name]) == []


def test_four_batches_are_enough(check: Callable[[str], Any]) -> None:
    checked = check("""
        model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(3):
            model.train()
            for _ in range(5):
                opt.zero_grad()
                model(torch.randn(8, 3)).pow(2).mean().backward()
                opt.step()
            model.eval()
            total = 0.0
            for _ in range(4):
                total += model(torch.randn(8, 3)).pow(2).mean().item()  # <- unused-graph
    """)
    assert checked.by("unused-graph") == checked.marked, checked.text
