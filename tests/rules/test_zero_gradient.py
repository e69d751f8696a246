"""Gradients that a flat operation makes zero, and zeros that are right."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

MLP = """
import copy
def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))
"""

BAD = {
    "round": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc = nn.Linear(4, 4)
                self.dec = nn.Linear(4, 4)
            def forward(self, x):
                z = torch.round(self.enc(x) * 4) / 4  # <- zero-gradient
                return self.dec(z)
        m = M()
        o = torch.optim.SGD(m.parameters(), 0.1)
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a sample of a policy": """
        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.mu, self.log_std = nn.Linear(4, 2), nn.Parameter(torch.zeros(2))
            def forward(self, s):
                mu = self.mu(s)
                return torch.normal(mu, self.log_std.exp().expand_as(mu))  # <- zero-gradient
        m = Policy()
        o = torch.optim.Adam(m.parameters(), 0.1)
        for _ in range(6):
            s = torch.randn(8, 4)
            o.zero_grad()
            (m(s) - s[:, :2]).pow(2).mean().backward()
            o.step()
    """,
    "sampled gates": """
        gate, net = nn.Linear(4, 4), mlp(4, 2)
        o = torch.optim.Adam([*gate.parameters(), *net.parameters()], 0.01)
        for _ in range(6):
            x = torch.randn(8, 4)
            on = torch.bernoulli(torch.sigmoid(gate(x)))  # <- zero-gradient
            o.zero_grad()
            net(x * on).pow(2).mean().backward()
            o.step()
    """,
    "floor division": """
        scale, net = nn.Parameter(torch.full((4,), 0.5)), mlp(4, 2)
        o = torch.optim.Adam([scale, *net.parameters()], 0.01)
        for _ in range(6):
            x = torch.randn(8, 4)
            cells = torch.div(x, scale, rounding_mode="floor")  # <- zero-gradient
            o.zero_grad()
            net(cells).pow(2).mean().backward()
            o.step()
    """,
    "a dead layer": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 8)
                self.b = nn.Linear(8, 2)
                nn.init.constant_(self.a.bias, -50.0)
            def forward(self, x):
                h = F.relu(self.a(x))  # <- zero-gradient
                return self.b(h)
        m = M()
        o = torch.optim.SGD(m.parameters(), 0.1)
        for _ in range(10):
            o.zero_grad()
            F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long()).backward()
            o.step()
    """,
    "a clamp out of range": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp(4, 2)
                self.ls = nn.Parameter(torch.full((2,), 9.0))
            def forward(self, x):
                s = self.ls.clamp(-5, 2)  # <- zero-gradient
                return (self.net(x) / s.exp()).pow(2).mean() + s.sum()
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(10):
            o.zero_grad()
            m(torch.randn(8, 4)).backward()
            o.step()
    """,
    "sign in a gate": """
        class Gate(nn.Module):
            def __init__(self):
                super().__init__()
                self.level = nn.Parameter(torch.zeros(4))
                self.net = mlp(4, 4)
            def forward(self, x):
                side = torch.sign(x - self.level)  # <- zero-gradient
                return self.net(x) * side
        m = Gate()
        o = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(5):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "two zeros that are multiplied": """
        class LoRA(nn.Module):
            def __init__(self):
                super().__init__()
                self.base = nn.Linear(4, 2).requires_grad_(False)
                self.a, self.b = nn.Parameter(torch.zeros(2, 4)), nn.Parameter(torch.zeros(2, 2))
            def forward(self, x):
                return self.base(x) + F.linear(F.linear(x, self.a), self.b)  # <- zero-gradient
        m = LoRA()
        head = nn.Linear(2, 1)
        o = torch.optim.Adam([m.a, m.b, *head.parameters()])
        for _ in range(6):
            o.zero_grad()
            head(m(torch.randn(8, 4))).pow(2).mean().backward()
            o.step()
    """,
}

GOOD = {
    "a term of the loss below its limit": """
        body, prior = nn.Linear(4, 3), nn.Linear(2, 3)
        opt = torch.optim.SGD([*body.parameters(), *prior.parameters()], lr=0.01)
        for _ in range(10):
            x, c = torch.randn(8, 4), torch.randn(8, 2)
            h = body(x)
            apart = (h - prior(c)).pow(2).sum(1)
            loss = h.pow(2).mean() + 0.1 * torch.clamp(apart.mean(), min=100.0)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a sample in the score function, and what a critic says of it": """
        actor, critic, log_std = mlp(4, 2), mlp(6, 1), nn.Parameter(torch.zeros(2))
        o = torch.optim.Adam([*actor.parameters(), log_std], 0.01)
        c = torch.optim.Adam(critic.parameters(), 0.01)
        for turn in range(12):
            s = torch.randn(8, 4)
            mu = actor(s)
            a = torch.normal(mu, log_std.exp().expand_as(mu))
            reward = -(a - s[:, :2]).pow(2).sum(1, keepdim=True).detach()
            c.zero_grad()
            (critic(torch.cat([s, a], 1)) - reward).pow(2).mean().backward(retain_graph=turn % 6 == 5)
            c.step()
            if turn % 6 == 5:
                log_prob = -((a - mu) / log_std.exp()).pow(2).sum(1) / 2 - log_std.sum()
                o.zero_grad()
                (-log_prob * reward[:, 0]).mean().backward()
                o.step()
    """,
    "straight through": """
        class Q(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(4, 4)
                self.o = nn.Linear(4, 2)
            def forward(self, x):
                h = self.l(x)
                h = h + (torch.round(h) - h).detach()
                return self.o(h)
        m = Q()
        o = torch.optim.SGD(m.parameters(), 0.1)
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "attention has biases without effect": """
        m = nn.MultiheadAttention(8, 2, batch_first=True)
        e = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        o = torch.optim.Adam([*m.parameters(), *e.parameters()])
        for _ in range(8):
            x = torch.randn(4, 5, 8)
            o.zero_grad()
            m(e(x), x, x)[0].pow(2).mean().backward()
            o.step()
    """,
    "a hinge that is active": """
        m = mlp(4, 4)
        o = torch.optim.SGD(m.parameters(), 0.1)
        for _ in range(10):
            a, p, n = (torch.randn(8, 4), torch.randn(8, 4), torch.randn(8, 4))
            o.zero_grad()
            F.relu((m(a) - m(p)).pow(2).sum(1) - (m(a) - m(n)).pow(2).sum(1) + 0.2).mean().backward()
            o.step()
    """,
    "adapters that start at zero": """
        class L(nn.Module):
            def __init__(self):
                super().__init__()
                self.base = nn.Linear(4, 4)
                self.base.requires_grad_(False)
                self.A = nn.Parameter(torch.randn(2, 4) * 0.1)
                self.B = nn.Parameter(torch.zeros(4, 2))
            def forward(self, x):
                return self.base(x) + x @ self.A.t() @ self.B.t()
        m = nn.Sequential(L(), nn.ReLU(), L())
        o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad])
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "one zero of two": """
        a, b = nn.Parameter(torch.randn(2, 4)), nn.Parameter(torch.zeros(2, 2))
        gain, bias = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
        o = torch.optim.Adam([a, b, gain, bias])
        for _ in range(8):
            o.zero_grad()
            x = torch.randn(8, 4)
            (F.linear(F.linear(x, a), b) + gain * x[:, :2] + bias - 1).pow(2).mean().backward()
            o.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert {pair for pair in checked.by("zero-gradient") if pair[1] in loud(checked)} == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert not [one for one in checked.alarms if one["rule"] == "zero-gradient"], checked.text


def loud(checked: Any) -> set[int]:
    """Lines of findings that are more than a note."""
    return {one["line"] for one in checked.alarms if one["rule"] == "zero-gradient"}
