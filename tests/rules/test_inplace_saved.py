"""A tensor saved for backward is written to: which write is told, and that correct code is not disturbed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "inplace-saved"

#: the line to be blamed is marked
BAD = {
    "augmented assignment in a module": """\
import torch
from torch import nn

class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos = nn.Parameter(torch.randn(4))
        self.up = nn.Linear(4, 4)

    def forward(self, x):
        x += self.pos  # here
        return self.up(x)

stem, one, two = nn.Linear(4, 4), Shift(), Shift()
x = stem(torch.randn(2, 4))
(one(x) + two(x)).sum().backward()
""",
    "a method on a result": """\
import torch

w = torch.randn(3, requires_grad=True)
y = torch.exp(w)
y.mul_(2)  # here
y.sum().backward()
""",
    "through a view": """\
import torch

w = torch.randn(3, 3, requires_grad=True)
h = torch.tanh(w)
flat = h.view(-1)
flat[0] = 0.0  # here
h.sum().backward()
""",
    "out=": """\
import torch

w = torch.randn(3, 3, requires_grad=True)
mask = torch.ones(3, 3)
kept = w * mask
torch.mul(mask, 0.5, out=mask)  # here
kept.sum().backward()
""",
    "rows of a table": """\
import torch

w = torch.randn(5, requires_grad=True)
table = torch.zeros(4, 5)
sums = []
for t in range(4):
    table[t] = w * t  # here
    sums.append((table * table).sum())
sum(sums).backward()
""",
    "the step of another optimizer": """\
import torch
from torch import nn

G, D = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(3):
    fake = G(torch.randn(8, 4))
    g_loss = -D(fake).mean()
    d_loss = D(fake.detach()).mean() - D(torch.randn(8, 4)).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()  # here
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
""",
    "an update under no_grad": """\
import torch
from torch import nn

student, teacher = nn.Linear(4, 4), nn.Linear(4, 4)
loss = teacher(student(torch.randn(3, 4))).pow(2).mean()
with torch.no_grad():
    for mine, theirs in zip(teacher.parameters(), student.parameters()):
        mine.lerp_(theirs, 0.1)  # here
loss.backward()
""",
    "load_state_dict": """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
best = {key: value.clone() for key, value in model.state_dict().items()}
loss = model(torch.randn(3, 4)).mean()
model.load_state_dict(best)  # here
loss.backward()
""",
    "the construction of an inplace module": """\
import torch
from torch import nn

net = nn.Sequential(
    nn.Linear(4, 4),
    nn.Sigmoid(),
    nn.LeakyReLU(0.1, inplace=True),  # here
    nn.Linear(4, 2),
)
net(torch.randn(3, 4)).mean().backward()
""",
    "an inplace module in a list of blocks": """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(True)  # here
        self.f, self.g = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.f(x) * self.g(self.act(x))

class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 4), *[Block() for _ in range(2)])

    def run(self):
        self.model(torch.randn(3, 4)).mean().backward()

Trainer().run()
""",
    "an inplace module whose construction is not told": """\
import torch
from torch import nn

def body(width):
    layers = []
    for _ in range(2):
        layers += [nn.Linear(width, width), nn.Tanh(), nn.Hardtanh(inplace=True)]
    return nn.Sequential(*layers)

net = body(4)
y = net(torch.randn(3, 4))  # here
y.sum().backward()
""",
    "an inplace function": """\
import torch
import torch.nn.functional as F

w = torch.randn(3, 3, requires_grad=True)
p = torch.softmax(w, -1)
F.dropout(p, 0.5, True, True)  # here
p.log().sum().backward()
""",
    "max_norm": """\
import torch
from torch import nn

table, project = nn.Embedding(8, 4, max_norm=1.0), nn.Linear(4, 4)
keys = project(table.weight)
query = table(torch.tensor([1, 2]))  # here
(query @ keys.t()).mean().backward()
""",
    "what a custom Function saved": """\
import torch

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

h = torch.randn(3, requires_grad=True) * 1.0
y = Square.apply(h)
h += 1  # here
(y + h).sum().backward()
""",
    "a tensor that .data gave": """\
import torch
from torch import nn

cell, state, loss = nn.Linear(4, 4), torch.zeros(2, 4), 0
for _ in range(3):
    state = torch.sigmoid(cell(state + 1)).data
    loss = loss + cell(state).pow(2).mean()
    state.mul_(0.5)  # here
loss.backward()
""",
    "of many writes the first that does harm": """\
import torch

w = torch.randn(3, requires_grad=True)
scale = torch.ones(3)
scale.mul_(2)
y = w * scale
scale.add_(1)  # here
scale.zero_()
y.sum().backward()
""",
    "a state that hangs on the parameters of before the step": """\
import torch
from torch import nn

class Online:
    def __init__(self):
        self.a = nn.Parameter(torch.eye(2))
        self.opt = torch.optim.SGD([self.a], 0.1)
        self.mean = torch.ones(2)
    def observe(self, seq):
        mean, loss = self.mean, 0.0
        for z in seq:
            error = z - mean
            loss = loss + error.pow(2).mean()
            mean = self.a @ (self.a @ mean + error)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.mean = mean  # here
online = Online()
for _ in range(3):
    online.observe(torch.randn(3, 2))
""",
}

GOOD = {
    "writes that nothing saved sees": """\
import torch
from torch import nn
import torch.nn.functional as F

class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.act = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.norm(self.conv(x))
        y += x
        return self.act(y)

model = nn.Sequential(nn.Conv2d(1, 3, 1), Residual(), Residual(), nn.Flatten(), nn.Linear(48, 4))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    loss = F.cross_entropy(model(torch.randn(2, 1, 4, 4)), torch.tensor([0, 1]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "updates after the backward call": """\
import copy
import torch
from torch import nn

net = nn.Linear(4, 4)
ema = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    with torch.no_grad():
        target = ema(torch.randn(3, 4))
    loss = (net(torch.randn(3, 4)) - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mine, theirs in zip(ema.parameters(), net.parameters()):
            mine.lerp_(theirs, 0.1)
""",
    "two optimizers, each after its own forward": """\
import torch
from torch import nn

G, D = nn.Linear(4, 4), nn.Linear(4, 1)
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(3):
    fake = G(torch.randn(8, 4))
    loss = D(fake.detach()).mean() - D(torch.randn(8, 4)).mean()
    opt_d.zero_grad()
    loss.backward()
    opt_d.step()
    loss = -D(fake).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
""",
    "torch.func, checkpoint and a queue": """\
import torch
from torch import nn
from torch.func import grad, vmap
from torch.utils.checkpoint import checkpoint

per_sample = vmap(grad(lambda w, x: (w * x).sum() ** 2), (None, 0))(torch.randn(4), torch.randn(3, 4))
per_sample.mul_(2)
vmap(lambda x: x.add_(1))(torch.randn(3, 2))
block = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4))
queue = torch.randn(4, 8)
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
for turn in range(3):
    y = checkpoint(block, torch.randn(2, 4), use_reentrant=False)
    loss = (y @ queue.clone()).mean()
    queue[:, turn] = y.detach().mean(0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}


@pytest.fixture(scope="module")
def reports(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return check_all(BAD | GOOD)


def found(report: dict[str, Any]) -> list[tuple[str, int]]:
    return [(finding["rule"], finding["line"]) for finding in report["findings"] if finding["level"] != "note"]


@pytest.mark.parametrize("name", BAD)
def test_the_cause_is_found(reports: dict[str, Any], name: str) -> None:
    lines = BAD[name].splitlines()
    marked = next(number for number, line in enumerate(lines, 1) if "# here" in line)
    assert found(reports[name]) == [(RULE, marked)]
    assert reports[name]["exit_code"] == 1
    assert not reports[name]["remarks"]


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_left_alone(reports: dict[str, Any], name: str) -> None:
    assert found(reports[name]) == []
    assert reports[name]["exit_code"] == 0
    assert not reports[name]["remarks"]
