"""Gradients that are constants in a loss, and gradients that are meant to be."""

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
    "forces": """
        net = mlp(3, 1)
        o = torch.optim.Adam(net.parameters())
        for _ in range(5):
            r = torch.randn(16, 3, requires_grad=True)
            e = net(r)
            f = -torch.autograd.grad(e.sum(), r, retain_graph=True)[0]  # <- missing-create-graph
            l = F.mse_loss(e, torch.zeros_like(e)) + F.mse_loss(f, torch.ones_like(f))
            o.zero_grad()
            l.backward()
            o.step()
    """,
    "a second derivative": """
        net = mlp(1, 1)
        x = torch.rand(8, 1, requires_grad=True)
        u = net(x)
        du = torch.autograd.grad(u, x, torch.ones_like(u))[0]  # <- missing-create-graph
        ddu = torch.autograd.grad(du, x, torch.ones_like(du))[0]
    """,
    "a penalty on real data": """
        d = mlp(2, 1)
        o = torch.optim.Adam(d.parameters())
        def r1(x):
            x = x.detach().requires_grad_()
            s = d(x)
            g = torch.autograd.grad(outputs=s.sum(), inputs=x, retain_graph=True, only_inputs=True)[0]  # <- missing-create-graph
            return g.reshape(len(x), -1).pow(2).sum(1).mean()
        for _ in range(5):
            x = torch.randn(8, 2)
            l = F.softplus(-d(x)).mean()
            l = l + 5 * r1(x)
            o.zero_grad()
            l.backward()
            o.step()
    """,
    "a residual of a differential equation": """
        net = mlp(1, 1)
        o = torch.optim.Adam(net.parameters())
        for _ in range(4):
            t = torch.rand(16, 1, requires_grad=True)
            u = net(t)
            du = torch.autograd.grad(u, t, torch.ones_like(u), retain_graph=True)[0]  # <- missing-create-graph
            residual = du + u
            loss = residual.pow(2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()
            o.zero_grad()
            loss.backward()
            o.step()
    """,
    "the gradient read from .grad": """
        net = mlp(2, 1)
        o = torch.optim.Adam(net.parameters())
        for _ in range(4):
            x = torch.rand(16, 2, requires_grad=True)
            net(x).sum().backward(retain_graph=True)  # <- missing-create-graph
            penalty = (x.grad.norm(dim=1) - 1).pow(2).mean()
            o.zero_grad()
            loss = net(x).pow(2).mean() + penalty
            loss.backward()
            o.step()
    """,
    "torch's own jacobian": """
        net = mlp(4, 2)
        o = torch.optim.Adam(net.parameters())
        for _ in range(5):
            x = torch.randn(3, 4)
            j = torch.autograd.functional.jacobian(net, x)  # <- missing-create-graph
            l = net(x).pow(2).mean() + 0.1 * j.pow(2).sum() / len(x)
            o.zero_grad()
            l.backward()
            o.step()
    """,
}

GOOD = {
    "an attack": """
        m = mlp()
        o = torch.optim.SGD(m.parameters(), 0.1)
        y = torch.zeros(8).long()
        for _ in range(6):
            x = torch.randn(8, 4, requires_grad=True)
            g, = torch.autograd.grad(F.cross_entropy(m(x), y), x)
            adv = x + 0.1 * g / g.norm(dim=1, keepdim=True)
            l = F.cross_entropy(m(adv), y)
            o.zero_grad()
            l.backward()
            o.step()
    """,
    "first order meta learning": """
        from torch.func import functional_call
        m = mlp(4, 1)
        o = torch.optim.Adam(m.parameters(), 0.01)
        for _ in range(5):
            x = torch.randn(8, 4)
            ps = dict(m.named_parameters())
            g = torch.autograd.grad(functional_call(m, ps, x).pow(2).mean(), list(ps.values()))
            fast = {k: p - 0.1 * gg for (k, p), gg in zip(ps.items(), g)}
            l = functional_call(m, fast, x).pow(2).mean() + 0.001 * sum(((v ** 2).sum() for v in fast.values()))
            o.zero_grad()
            l.backward()
            o.step()
    """,
    "a gradient to be predicted": """
        net, syn = (mlp(8, 2), nn.Linear(8, 8))
        o = torch.optim.Adam([*net.parameters(), *syn.parameters()])
        for _ in range(6):
            h = torch.randn(8, 8, requires_grad=True)
            l = F.cross_entropy(net(h), torch.zeros(8).long())
            g, = torch.autograd.grad(l, h, retain_graph=True)
            t = l + F.mse_loss(syn(h.detach()), g)
            o.zero_grad()
            t.backward()
            o.step()
    """,
    "weights from gradient norms": """
        m = mlp(4, 2)
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            out = m(torch.randn(8, 4))
            a, b = (out[:, 0].pow(2).mean(), out[:, 1].abs().mean())
            W = m[2].weight
            ga, = torch.autograd.grad(a, W, retain_graph=True)
            gb, = torch.autograd.grad(b, W, retain_graph=True)
            l = a + ga.norm() / (gb.norm() + 0.0001) * b
            o.zero_grad()
            l.backward()
            o.step()
    """,
    "sampling by gradients": """
        e = mlp(4, 1)
        o = torch.optim.Adam(e.parameters())
        for _ in range(6):
            x = torch.randn(8, 4)
            for _ in range(3):
                x.requires_grad_(True)
                g, = torch.autograd.grad(e(x).sum(), x)
                x = (x - 0.1 * g + 0.01 * torch.randn_like(x)).detach()
            l = e(torch.randn(8, 4)).mean() - e(x).mean() + 0.001 * e(x).pow(2).mean()
            o.zero_grad()
            l.backward()
            o.step()
    """,
    "unrolled steps": """
        net = mlp(4, 4)
        o = torch.optim.Adam(net.parameters())
        A = torch.randn(3, 4)
        for _ in range(6):
            gt = torch.randn(8, 4)
            y = gt @ A.t()
            x = torch.zeros(8, 4)
            for _ in range(2):
                x = x.detach().requires_grad_(True)
                g, = torch.autograd.grad(((x @ A.t() - y) ** 2).sum(), x)
                x = net(x) - 0.01 * g
            l = F.mse_loss(x, gt)
            o.zero_grad()
            l.backward()
            o.step()
    """,
    "a gradient that is detached by the script": """
        net = mlp(3, 1)
        o = torch.optim.Adam(net.parameters())
        for _ in range(5):
            x = torch.randn(8, 3, requires_grad=True)
            g = torch.autograd.grad(net(x).sum(), x)[0].detach()
            l = net(x).pow(2).mean() + g.pow(2).mean()
            o.zero_grad()
            l.backward()
            o.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert {pair for pair in checked.by("missing-create-graph") if pair[1] in loud(checked)} == checked.marked, (
        checked.text
    )


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert not [one for one in checked.alarms if one["rule"] == "missing-create-graph"], checked.text


def loud(checked: Any) -> set[int]:
    """Lines of findings that are more than a note."""
    return {one["line"] for one in checked.alarms if one["rule"] == "missing-create-graph"}
