"""Training in evaluation mode by mistake, and modes that are meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x))

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
def step(net, opt, x):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
def evaluate(net):
    net.eval()
    with torch.no_grad():
        return net(torch.randn(4, 4)).mean().item()
"""

BAD = {
    "the first epoch alone trains": NET.replace("net.eval()", "net.eval()  # <- wrong-mode")
    + """
for epoch in range(3):
    for _ in range(4):
        step(net, opt, torch.randn(8, 4))
    print(evaluate(net))
""",
    "an evaluation every few steps": NET.replace("net.eval()", "net.eval()  # <- wrong-mode")
    + """
for epoch in range(2):
    net.train()
    for i in range(9):
        step(net, opt, torch.randn(8, 4))
        if i % 4 == 3:
            loss = evaluate(net)
""",
    "a trainer class": NET
    + """
class Trainer:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt

    def train_epoch(self):
        for _ in range(3):
            step(self.net, self.opt, torch.randn(8, 4))

    def validate(self):
        self.net.eval()  # <- wrong-mode
        with torch.inference_mode():
            self.net(torch.randn(4, 4))

    def fit(self):
        self.net.train()
        for epoch in range(3):
            self.train_epoch()
            self.validate()

Trainer(net, opt).fit()
""",
    "of two networks only one is switched back": NET
    + """
other = Net()
opt2 = torch.optim.SGD(other.parameters(), lr=0.01)
for epoch in range(3):
    net.train()
    for _ in range(3):
        step(net, opt, torch.randn(8, 4))
        step(other, opt2, torch.randn(8, 4))
    evaluate(net)
    evaluate(other)  # <- wrong-mode
""",
    "functional dropout is never switched off": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        x = F.dropout(F.relu(self.a(x)), 0.3)  # <- wrong-mode
        return self.b(x)

net = Net()
opt = torch.optim.Adam(net.parameters())
for epoch in range(3):
    net.train()
    for _ in range(3):
        opt.zero_grad()
        net(torch.randn(8, 4)).pow(2).mean().backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        net(torch.randn(4, 4))
""",
}

GOOD = {
    "switched back after each evaluation": NET
    + """
for epoch in range(3):
    net.train()
    for _ in range(4):
        step(net, opt, torch.randn(8, 4))
    evaluate(net)
""",
    "fine-tuning with batch norm in evaluation mode": NET
    + """
for epoch in range(3):
    net.train()
    for m in net.modules():
        if isinstance(m, nn.BatchNorm1d):
            m.eval()
    for _ in range(3):
        step(net, opt, torch.randn(8, 4))
    evaluate(net)
""",
    "batch norm frozen from the second epoch on, beside a teacher": NET
    + """
import copy
teacher = copy.deepcopy(net).eval()
def freeze(m):
    if isinstance(m, nn.BatchNorm1d):
        m.eval()
for epoch in range(3):
    net.train()
    if epoch > 0:
        net.apply(freeze)
    for _ in range(3):
        x = torch.randn(8, 4)
        with torch.no_grad():
            goal = teacher(x)
        opt.zero_grad()
        F.mse_loss(net(x), goal).backward()
        opt.step()
    evaluate(net)
""",
    "Monte Carlo dropout": NET
    + """
for _ in range(4):
    step(net, opt, torch.randn(8, 4))
net.eval()
for m in net.modules():
    if isinstance(m, nn.Dropout):
        m.train()
with torch.no_grad():
    torch.stack([net(torch.randn(4, 4)) for _ in range(5)]).std(0)
""",
    "functional dropout that is meant": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.b(F.dropout(self.a(x), 0.3, training=True))

net = Net()
opt = torch.optim.Adam(net.parameters())
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    opt.step()
net.eval()
with torch.no_grad():
    [net(torch.randn(4, 4)) for _ in range(5)]
""",
    "an attack in evaluation mode": NET
    + """
for _ in range(6):
    net.eval()
    x = torch.randn(8, 4, requires_grad=True)
    (g,) = torch.autograd.grad(net(x).pow(2).mean(), x)
    net.train()
    step(net, opt, (x + 0.1 * g.sign()).detach())
""",
    "a moving average in evaluation mode": NET
    + """
import copy
average = copy.deepcopy(net).eval().requires_grad_(False)
for i in range(6):
    step(net, opt, torch.randn(8, 4))
    with torch.no_grad():
        for a, p in zip(average.parameters(), net.parameters()):
            a.lerp_(p, 0.1)
        average(torch.randn(4, 4))
""",
    "a train method that keeps batch norm frozen": NET.replace(
        "    def forward(self, x):",
        """    def train(self, mode=True):
        super().train(mode)
        self.body[1].eval()
        return self

    def forward(self, x):""",
    )
    + """
for epoch in range(3):
    net.train()
    for _ in range(3):
        step(net, opt, torch.randn(8, 4))
    evaluate(net)
""",
}

#: what may be meant: no more than notes
NOTED = {
    "a whole run in evaluation mode": NET
    + """
net.eval()  # <- wrong-mode
for _ in range(6):
    step(net, opt, torch.randn(8, 4))
""",
    "evaluation mode from the start": NET
    + """
for epoch in range(3):
    net.eval()  # <- wrong-mode
    for _ in range(4):
        step(net, opt, torch.randn(8, 4))
""",
    "an evaluation in training mode": NET
    + """
def score(net):
    total = 0.0
    with torch.no_grad():
        for _ in range(4):
            total += net(torch.randn(4, 4)).mean().item()  # <- wrong-mode
    return total
for epoch in range(3):
    for _ in range(4):
        step(net, opt, torch.randn(8, 4))
    print(score(net))
""",
}
UNNOTED = {
    "batch norm alone is frozen": NET
    + """
for layer in net.modules():
    if isinstance(layer, (nn.BatchNorm1d, nn.Dropout)):
        layer.eval()
for _ in range(8):
    step(net, opt, torch.randn(8, 4))
""",
    "Monte Carlo dropout": NET
    + """
for epoch in range(3):
    for _ in range(4):
        step(net, opt, torch.randn(8, 4))
    net.train()
    with torch.no_grad():
        x = torch.randn(4, 4)
        print(torch.stack([net(x) for _ in range(6)]).var(0).mean().item())
""",
    "labels of the model itself, in each iteration": NET
    + """
for _ in range(8):
    x = torch.randn(8, 4)
    with torch.no_grad():
        labels = net(x)
        print(labels.mean().item())
    opt.zero_grad()
    F.mse_loss(net(x + 0.1), labels).backward()
    opt.step()
""",
}


@pytest.mark.parametrize("name", NOTED)
def test_a_mode_for_the_whole_run_is_noted(check: Callable[[str], Any], name: str) -> None:
    checked = check(NOTED[name])
    assert checked.by("wrong-mode") == checked.marked, checked.text
    assert not checked.alarms, checked.text


@pytest.mark.parametrize("name", UNNOTED)
def test_modes_that_are_chosen_are_silent(check: Callable[[str], Any], name: str) -> None:
    assert not check(UNNOTED[name]).by("wrong-mode"), check(UNNOTED[name]).text


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(BAD[name])
    assert checked.by("wrong-mode") == checked.marked, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_modes_that_are_meant_are_silent(check: Callable[[str], Any], name: str) -> None:
    checked = check(GOOD[name])
    assert not checked.alarms, checked.text
    assert not checked.by("wrong-mode"), checked.text
