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


MARKED = {
    "cross entropy over one class": """
        net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        criterion = nn.CrossEntropyLoss()
        for _ in range(8):
            opt.zero_grad()
            loss = criterion(net(torch.randn(16, 8)), torch.zeros(16, dtype=torch.long))  # <- zero-gradient
            loss.backward()
            opt.step()
    """,
    "a router of one expert": """
        class Router(nn.Module):
            def __init__(self):
                super().__init__()
                self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

            def weights(self, x):
                best, which = self.gate(x).topk(1, dim=-1)
                return best.softmax(-1), which  # <- zero-gradient

            def forward(self, x):
                weight, which = self.weights(x)
                out = torch.stack([expert(x) for expert in self.experts], 1)
                return weight * out[torch.arange(len(x)), which[:, 0]]

        net = Router()
        opt = torch.optim.Adam(net.parameters())
        for _ in range(8):
            opt.zero_grad()
            net(torch.randn(16, 4)).pow(2).mean().backward()
            opt.step()
    """,
    "the last step of a bidirectional GRU": """
        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.gru, self.out = nn.GRU(4, 8, bidirectional=True), nn.Linear(16, 1)

            def forward(self, x):
                steps, _ = self.gru(x)
                last = steps[-1]  # <- zero-gradient
                return self.out(F.dropout(last, 0.1, self.training))

        net = Tagger()
        opt = torch.optim.Adam(net.parameters())
        for _ in range(6):
            opt.zero_grad()
            net(torch.randn(7, 5, 4)).pow(2).mean().backward()
            opt.step()
    """,
}
SILENT = {
    "a router that normalizes over all experts": """
        gate, experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        opt = torch.optim.Adam([*gate.parameters(), *experts.parameters()])
        for _ in range(8):
            x = torch.randn(16, 4)
            weight, which = gate(x).softmax(-1).topk(1, dim=-1)
            out = torch.stack([expert(x) for expert in experts], 1)
            opt.zero_grad()
            (weight * out[torch.arange(16), which[:, 0]]).pow(2).mean().backward()
            opt.step()
    """,
    "attention over a single key": """
        net = nn.MultiheadAttention(8, 2, batch_first=True)
        opt = torch.optim.Adam(net.parameters())
        for _ in range(8):
            x, context = torch.randn(4, 3, 8), torch.randn(4, 1, 8)
            opt.zero_grad()
            net(x, context, context)[0].pow(2).mean().backward()
            opt.step()
    """,
    "attention by hand over a single key": """
        q, k, v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        opt = torch.optim.Adam([*q.parameters(), *k.parameters(), *v.parameters()])
        for _ in range(8):
            x, context = torch.randn(4, 3, 8), torch.randn(4, 1, 8)
            weights = F.dropout((q(x) @ k(context).transpose(1, 2) / 8**0.5).softmax(-1), 0.1)
            opt.zero_grad()
            (weights @ v(context)).pow(2).mean().backward()
            opt.step()
    """,
    "a bidirectional network whose states are read": """
        rnn, head = nn.LSTM(4, 8, bidirectional=True, batch_first=True), nn.Linear(16, 1)
        opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
        for _ in range(6):
            out, (h, _) = rnn(torch.randn(5, 7, 4))
            opt.zero_grad()
            (head(torch.cat([h[-2], h[-1]], 1)) + head(out[:, -1])).pow(2).mean().backward()
            opt.step()
    """,
    "a bidirectional network with a state of its own": """
        rnn, head, start = nn.GRU(4, 8, bidirectional=True), nn.Linear(16, 1), nn.Parameter(torch.randn(2, 1, 8))
        opt = torch.optim.Adam([*rnn.parameters(), *head.parameters(), start])
        for _ in range(6):
            out, _ = rnn(torch.randn(7, 5, 4), start.expand(-1, 5, -1).contiguous())
            opt.zero_grad()
            head(out[-1]).pow(2).mean().backward()
            opt.step()
    """,
    "dead units that come and go": """
        net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(12):
            opt.zero_grad()
            net(torch.randn(2, 4)).pow(2).mean().backward()
            opt.step()
    """,
    "a critic whose last bias cancels": """
        critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        opt = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
        for _ in range(12):
            opt.zero_grad()
            (critic(torch.randn(8, 4)).mean() - critic(torch.randn(8, 4)).mean()).backward()
            opt.step()
    """,
    "words that never occur": """
        table = nn.Embedding(100, 4, padding_idx=0)
        opt = torch.optim.Adam(table.parameters())
        for _ in range(12):
            opt.zero_grad()
            table(torch.randint(5, (8,))).pow(2).mean().backward()
            opt.step()
    """,
}


@pytest.mark.parametrize("name", MARKED)
def test_a_constant_of_one_element_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(MARKED[name])
    assert checked.by("zero-gradient") == checked.marked, checked.text
    assert checked.alarms, checked.text


@pytest.mark.parametrize("name", SILENT)
def test_what_is_meant_or_cancels_is_no_alarm(check: Callable[[str], Any], name: str) -> None:
    checked = check(SILENT[name])
    assert not checked.alarms, checked.text


def test_a_zero_of_unknown_cause_is_a_note(check: Callable[[str], Any]) -> None:
    checked = check("""
        a, b = nn.Linear(4, 4), nn.Linear(4, 4)
        opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)
        weight = 0.0
        for _ in range(20):
            x = torch.randn(8, 4)
            opt.zero_grad()
            (a(x).pow(2).mean() + weight * b(x).pow(2).mean()).backward()  # <- zero-gradient
            opt.step()
    """)
    assert checked.by("zero-gradient") == checked.marked, checked.text
    assert not checked.alarms, checked.text
