"""A write that torch does not notice is told, and one that does no harm is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "hidden-write"

#: the line to be blamed is marked
BAD = {
    "an update by hand between two backward calls": """\
import torch

w, u = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
y = (torch.randn(2, 3) @ u) @ w
y.mean().backward(retain_graph=True)
w.data -= 0.1 * w.grad  # here
w.grad = u.grad = None
y.pow(2).mean().backward()
""",
    "a result clamped": """\
import torch
from torch import nn

net = nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    p = torch.sigmoid(net(torch.randn(4, 3)))
    p.data.clamp_(0.4, 0.6)  # here
    loss = p.log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "weights clipped before the backward call": """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))

def clip():
    for p in net.parameters():
        p.data.clamp_(-0.01, 0.01)  # here

loss = net(torch.randn(4, 3)).pow(2).mean()
clip()
loss.backward()
""",
    "data set anew": """\
import torch

w = torch.randn(3, requires_grad=True)
x = torch.randn(3, requires_grad=True)
y = (w * x).sum()
w.data = w.data + 1.0  # here
y.backward()
""",
    "a staging buffer": """\
import numpy as np
import torch
from torch import nn

class Loader:
    def __init__(self):
        self.stage = np.empty((4, 3), dtype=np.float32)
        self.stage[:] = 0.0

    def __iter__(self):
        for turn in range(4):
            self.stage[:] = turn + 1  # here
            yield torch.from_numpy(self.stage)

net = nn.Linear(3, 1)
losses = [net(x).pow(2).mean() for x in Loader()]
torch.stack(losses).mean().backward()
""",
    "the observation of an environment": """\
import numpy as np
import torch
from torch import nn

class Env:
    def __init__(self):
        self.obs = np.zeros(4, dtype=np.float32)

    def step(self):
        self.obs += 1.0  # here
        return self.obs

env, policy = Env(), nn.Linear(4, 2)
chosen, obs = [], env.obs
for _ in range(5):
    chosen.append(torch.log_softmax(policy(torch.from_numpy(obs)), -1)[0])
    obs = env.step()
loss = -torch.stack(chosen).sum()
loss.backward()
""",
    "an array that a tensor lent": """\
import torch
from torch import nn

x = torch.randn(4, 3)
array = x.numpy()
loss = nn.Linear(3, 1)(x).pow(2).mean()
array[:] = 0  # here
loss.backward()
""",
    "a simulator's buffer, which is filled anew as well": """\
import numpy as np
import torch
from torch import nn

class Env:
    def __init__(self):
        self.obs = np.ones((4, 3), dtype=np.float32)
    def reset(self):
        self.obs[:] = 1.0
        return self.obs
    def step(self):
        self.obs *= 0.5  # here
        return self.obs

env, net = Env(), nn.Linear(3, 1)
for _ in range(2):
    obs, terms = env.reset(), []
    for _ in range(3):
        terms.append(net(torch.from_numpy(obs)).pow(2))
        obs = env.step()
    torch.stack(terms).mean().backward()
""",
}

GOOD = {
    "noise on the weights, taken back": """\
import torch
from torch import nn

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = net(torch.randn(8, 3)).pow(2).mean()
    kept = [p.data.clone() for p in net.parameters()]
    for p in net.parameters():
        p.data.add_(0.1 * torch.randn_like(p))
    for p, values in zip(net.parameters(), kept):
        p.data.copy_(values)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a gradient checked by finite differences": """\
import torch

cube = lambda v: (v**3).sum()
x = torch.randn(4, dtype=torch.double, requires_grad=True)
print(torch.autograd.gradcheck(cube, (x,)), torch.autograd.gradgradcheck(cube, (x,)))
out = cube(x)
values = x.data
for i in range(4):
    kept = values[i].item()
    values[i] = kept + 1e-3
    above = cube(x.detach())
    values[i] = kept
out.backward()
""",
    "weights clipped after each step": """\
import torch
from torch import nn

G, D = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.RMSprop(G.parameters(), lr=1e-3), torch.optim.RMSprop(D.parameters(), lr=1e-3)
for _ in range(3):
    for _ in range(2):
        opt_d.zero_grad()
        loss = D(G(torch.randn(8, 4)).detach()).mean() - D(torch.randn(8, 4)).mean()
        loss.backward()
        opt_d.step()
        for p in D.parameters():
            p.data.clamp_(-0.05, 0.05)
    opt_g.zero_grad()
    loss = -D(G(torch.randn(8, 4))).mean()
    loss.backward()
    opt_g.step()
""",
    "a constraint that changes nothing the second time": """\
import torch
from torch import nn

class Renormed(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.other = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.5)
        self.other.data.div_(self.other.data.norm(dim=1, keepdim=True))
        return (self.weight * self.other * x.unsqueeze(1)).sum(-1)

model = Renormed()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = (model(torch.randn(3, 4)) - model(torch.randn(3, 4))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "targets and updates by hand after the backward call": """\
import copy
import torch
from torch import nn

q = nn.Linear(4, 1)
target = copy.deepcopy(q)
for _ in range(4):
    y = 0.9 * target(torch.randn(8, 4)).detach()
    loss = (q(torch.randn(8, 4)) - y).pow(2).mean()
    for p in q.parameters():
        if p.grad is not None:
            p.grad.data.zero_()
    loss.backward()
    for p in q.parameters():
        p.data.add_(p.grad.data, alpha=-0.1)
    for mine, theirs in zip(target.parameters(), q.parameters()):
        mine.data.copy_(mine.data * 0.9 + theirs.data * 0.1)
""",
    "the difference of two gradients": """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
x = torch.randn(8, 3)
way = [torch.randn_like(p) for p in model.parameters()]
for _ in range(2):
    grads = []
    for shift in (0.01, -0.02):
        for p, step in zip(model.parameters(), way):
            p.data.add_(step, alpha=shift)
        grads.append(torch.autograd.grad(model(x).pow(2).mean(), model.parameters()))
    for p, step in zip(model.parameters(), way):
        p.data.add_(step, alpha=0.01)
""",
    "quantized on the way": """\
import torch
from torch import nn

class Quantize(nn.Module):
    def forward(self, x):
        y = x * 1.0
        y.data = torch.round(y.data * 4) / 4
        return y

model = nn.Sequential(nn.Linear(3, 4), Quantize(), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(torch.randn(4, 3)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "other rows of a buffer": """\
import torch
from torch import nn

cell = nn.Linear(4, 4)
memory = torch.zeros(6, 4)
losses = []
for t in range(1, 6):
    h = cell(memory[t - 1] + 1)
    losses.append((h * memory[t - 1]).sum())
    memory.data[t] = h.data
sum(losses).backward()
""",
    "an image kept in range": """\
import torch
from torch import nn

net = nn.Conv2d(1, 2, 3).requires_grad_(False)
image = torch.rand(1, 1, 6, 6, requires_grad=True)
optimizer = torch.optim.LBFGS([image], max_iter=4)

def closure():
    image.data.clamp_(0, 1)
    optimizer.zero_grad()
    loss = (net(image) - 0.5).pow(2).mean()
    loss.backward()
    return loss

for _ in range(3):
    optimizer.step(closure)
""",
    "arrays filled after the backward call, or copied": """\
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
stage, memory = np.zeros((4, 3), np.float32), np.zeros((20, 3), np.float32)
for turn in range(10):
    stage[:] = rng.normal(size=stage.shape)
    memory[turn] = stage[0]
    loss = net(torch.from_numpy(stage)).mean() + net(torch.from_numpy(memory[: turn + 1].copy())).mean()
    memory *= 2
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
