"""Sides of a loss that broadcast to pairs of samples are told, unless pairs are meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "broadcast-loss"

IMPORTS = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

#: the line to be blamed is marked
BAD = {
    "mse n1": """\
m = nn.Linear(4, 1)
F.mse_loss(m(torch.randn(6, 4)), torch.randn(6)).backward()  # here
""",
    "mse module reversed": """\
m = nn.Linear(4, 1); crit = nn.MSELoss()
y = torch.randn(6, 1)
loss = crit(m(torch.randn(6, 4)).squeeze(), y)  # here
loss.backward()
""",
    "hand mse": """\
m = nn.Linear(4, 1)
y = torch.randn(6)
loss = ((m(torch.randn(6, 4)) - y) ** 2).mean()  # here
loss.backward()
""",
    "hand abs sub other way and weights": """\
m = nn.Linear(4, 1)
y = torch.randn(6)
loss = 0.5 * torch.abs(y - m(torch.randn(6, 4))).mean() + 1  # here
loss.backward()
""",
    "reinforce": """\
m = nn.Linear(4, 2)
adv = torch.randn(6, 1)
lp = torch.distributions.Categorical(logits=m(torch.randn(6, 4))).log_prob(torch.zeros(6))
loss = -(lp * adv).mean()  # here
loss.backward()
""",
    "image channel hand huber": """\
m = nn.Conv2d(1, 1, 3, padding=1)
loss = F.huber_loss(m(torch.randn(3, 1, 5, 5)), torch.randn(3, 5, 5))  # here
loss.backward()
""",
    "reduction none weights": """\
m = nn.Linear(4, 1)
w = torch.rand(6)
l = F.mse_loss(m(torch.randn(6, 4)), torch.randn(6), reduction="none")  # here
(l * w).mean().backward()
""",
    "product with a sum that kept its dimension": """\
m = nn.Linear(4, 2)
logp = -(m(torch.randn(6, 4)) ** 2).sum(-1, keepdim=True)
loss = -(logp * torch.randn(6)).mean()  # here
loss.backward()
""",
    "log cosh by hand": """\
m = nn.Linear(4, 1)
d = m(torch.randn(6, 4)) - torch.randn(6)  # here
(d + F.softplus(-2 * d)).mean().backward()
""",
}

GOOD = {
    "broadcasts meant": """\
m = nn.Linear(4, 3)
o = m(torch.randn(5, 4))
F.mse_loss(o, torch.zeros(1, 3)).backward(retain_graph=True)
F.mse_loss(o, torch.zeros(3)).backward(retain_graph=True)
((o - torch.ones(3)) ** 2).mean().backward(retain_graph=True)
((o - o.mean(0)) ** 2).mean().backward(retain_graph=True)
((o - o.mean(1, keepdim=True)) ** 2).mean().backward(retain_graph=True)
(o - 1.0).pow(2).mean().backward()
""",
    "pairwise": """\
m = nn.Linear(4, 1)
s = m(torch.randn(6, 4)).squeeze(1)
y = torch.randn(6)
loss = F.relu(1 - (s[:, None] - s[None, :]) * (y[:, None] - y[None]).sign()).mean()
loss.backward(retain_graph=True)
(s.unsqueeze(1) - s).abs().mean().backward(retain_graph=True)
(s.unsqueeze(1) - y).abs().mean().backward(retain_graph=True)
(y.view(-1, 1) - s).abs().mean().backward(retain_graph=True)
c = torch.randn(6, 1)
d = (s - c).pow(2)
d.min(1).values.mean().backward()
""",
    "batch of one": """\
m = nn.Linear(4, 1)
F.mse_loss(m(torch.randn(1, 4)), torch.randn(1)).backward()
((m(torch.randn(1, 4)) - torch.randn(1)) ** 2).mean().backward()
""",
    "cdist by hand": """\
m = nn.Linear(4, 1)
z = m(torch.randn(6, 4))
g = torch.linspace(0, 1, 6)
k = torch.exp(-(z - g) ** 2)
(k.sum(1).log()).mean().backward()
""",
    "rbf features into linear": """\
m = nn.Linear(4, 1); r = nn.Linear(6, 1)
z = m(torch.randn(6, 4))
c = nn.Parameter(torch.linspace(0, 1, 6))
r(torch.exp(-(z - c) ** 2)).mean().backward()
""",
    "positional outer product": """\
w = nn.Parameter(torch.randn(6, 1)); t = torch.arange(6.)
emb = torch.sin(t * w)
emb.mm(torch.randn(6, 2)).mean().backward()
""",
    "nig beta": """\
p = nn.Parameter(torch.randn(6))
w = torch.rand(6, 6)
x = nn.Parameter(torch.randn(6, 1))
((x - p) * w).sum().backward()
""",
    "pair weights": """\
m, n = nn.Linear(4, 1), nn.Linear(4, 1)
w = torch.rand(6, 6)
x, p = m(torch.randn(6, 4)), n(torch.randn(6, 4)).squeeze(1)
((x - p).abs() * w).sum().backward()
""",
    "quantile regression": """\
m = nn.Linear(4, 7)
th = m(torch.randn(6, 4))
tg = torch.randn(6, 7)
F.smooth_l1_loss(th.unsqueeze(-1).expand(6, 7, 7), tg.unsqueeze(1).expand(6, 7, 7), reduction="none").mean().backward()
""",
    "pairs of a kept dimension": """\
m = nn.Linear(4, 2)
f = m(torch.randn(6, 4))
n = f.norm(dim=1, keepdim=True)
cos = (f @ f.t()) / (n * n.squeeze(1))
(n * torch.randn(6)).exp().mean().backward(retain_graph=True)
((n * torch.rand(6)) * torch.rand(6, 6)).mean().backward(retain_graph=True)
((n * torch.rand(6)) * (f @ f.t())).mean().backward(retain_graph=True)
cos.mean().backward()
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


ACTOR = """
body = nn.Sequential(nn.Linear(4, 16), nn.Tanh())
policy, value = nn.Linear(16, 3), nn.Linear(16, 1)
params = [*body.parameters(), *policy.parameters(), *value.parameters()]
opt = torch.optim.Adam(params)
def act(obs):
    dist = torch.distributions.Categorical(logits=policy(body(obs)))
    actions = dist.sample()
    return dist.log_prob(actions), value(body(obs))
def update(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ELSEWHERE = {
    "advantages without a graph": """
for _ in range(4):
    log_prob, v = act(torch.randn(16, 4))
    returns = torch.randn(16)
    adv = returns - v.detach()  # <- broadcast-loss
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    update(-(log_prob * adv).mean() + F.mse_loss(v.squeeze(1), returns))
""",
    "advantages without a graph, in a helper": """
@torch.no_grad()
def advantage(returns, v):
    return returns - v  # <- broadcast-loss

for _ in range(4):
    log_prob, v = act(torch.randn(16, 4))
    returns = torch.randn(16)
    update(-(log_prob * advantage(returns, v)).mean() + F.mse_loss(v[:, 0], returns))
""",
    "a column that another function makes": """
def collect():
    rewards = torch.randn(16)
    returns = rewards.flip(0).cumsum(0).flip(0)
    return returns.unsqueeze(1)

def policy_loss(log_prob, advantages):
    return -(log_prob * advantages).mean()  # <- broadcast-loss

for _ in range(4):
    log_prob, v = act(torch.randn(16, 4))
    returns = collect()
    update(policy_loss(log_prob, returns) + F.mse_loss(v, returns))
""",
    "targets that a data set keeps as a column": """
class Data:
    def __init__(self):
        self.x = torch.randn(32, 4)
        self.y = self.x.sum(1)[:, None]

    def batch(self, rows):
        return self.x[rows], self.y[rows]

def squared(pred, y):
    return ((pred - y) ** 2).mean()  # <- broadcast-loss

data = Data()
for _ in range(4):
    x, y = data.batch(torch.randperm(32)[:16])
    update(squared(value(body(x)).flatten(), y))
""",
}
MEANT = {
    "pairs that a helper makes for a ranking": """
def column(t):
    return t.unsqueeze(1)

def ranking(scores, labels):
    wins = torch.sign(column(labels) - labels)
    return F.softplus(-(column(scores) - scores) * wins).mean()

for _ in range(4):
    x = torch.randn(16, 4)
    update(ranking(value(body(x)).squeeze(1), torch.randn(16)))
""",
    "columns on both sides": """
for _ in range(4):
    log_prob, v = act(torch.randn(16, 4))
    returns = torch.randn(16)
    adv = returns[:, None] - v.detach()
    update(-(log_prob[:, None] * adv).mean() + F.mse_loss(v, returns[:, None]))
""",
    "weights for each pair, from a table without a graph": """
for _ in range(4):
    x = torch.randn(16, 4)
    when = torch.arange(16.0)
    decay = (-(when.unsqueeze(1) - when).abs()).exp()
    scores = value(body(x)).squeeze(1)
    update((decay * (scores.unsqueeze(1) - scores) ** 2).mean())
""",
    "a kernel of two samples": """
def kernel(a, b):
    return torch.exp(-((a[:, None] - b) ** 2)).mean()

for _ in range(4):
    a, b = value(body(torch.randn(16, 4))).squeeze(1), torch.randn(16)
    update(kernel(a, a) - 2 * kernel(a, b) + kernel(b, b))
""",
    "quantiles of two networks": """
taus = (torch.arange(8) + 0.5) / 8
def huber(pred, target):
    u = target.unsqueeze(0) - pred.unsqueeze(1)
    return ((taus.unsqueeze(1) - (u.detach() < 0).float()).abs() * u.abs()).mean()

quantiles = nn.Linear(16, 8)
opt.add_param_group({"params": list(quantiles.parameters())})
for _ in range(4):
    update(huber(quantiles(body(torch.randn(1, 4)))[0], torch.randn(8)))
""",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_pairs_of_columns_made_elsewhere_are_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(ACTOR + ELSEWHERE[name])
    assert checked.by("broadcast-loss") == checked.marked, checked.text


@pytest.mark.parametrize("name", MEANT)
def test_pairs_that_are_meant_are_silent(check: Callable[[str], Any], name: str) -> None:
    checked = check(ACTOR + MEANT[name])
    assert not checked.alarms, checked.text
