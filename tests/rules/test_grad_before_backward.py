"""Gradients that are used before a backward call has filled them, and None gradients that are no fault."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

SETTING = """
def batch(n=16):
    x = torch.randn(n, 4)
    return x, x.sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""

BAD = {
    "scaled before the first call": """
        for _ in range(3):
            x, y = batch()
            loss = F.mse_loss(net(x), y)
            opt.zero_grad()
            for p in net.parameters():
                p.grad.data *= 0.5  # <- grad-before-backward
            loss.backward()
            opt.step()
    """,
    "the norm is logged after zero_grad": """
        def grad_norm(model):
            return sum(p.grad.norm() for p in model.parameters())  # <- grad-before-backward

        for _ in range(3):
            x, y = batch()
            F.mse_loss(net(x), y).backward()
            opt.step()
            opt.zero_grad()
            print(grad_norm(net))
    """,
    "an input that does not require grad": """
        x, y = batch()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        x_adv = x + 0.1 * x.grad.sign()  # <- grad-before-backward
    """,
    "in a trainer, through a variable": """
        class Trainer:
            def __init__(self, model, opt):
                self.model, self.opt = model, opt

            def clip(self, limit):
                for p in self.model.parameters():
                    g = p.grad  # <- grad-before-backward
                    g.clamp_(-limit, limit)

            def fit(self, steps):
                for _ in range(steps):
                    x, y = batch()
                    loss = F.mse_loss(self.model(x), y)
                    self.opt.zero_grad()
                    self.clip(0.1)
                    loss.backward()
                    self.opt.step()

        Trainer(net, opt).fit(3)
    """,
    "handed to a function of torch": """
        for _ in range(3):
            x, y = batch()
            opt.zero_grad()
            flat = torch.cat([p.grad.view(-1) for p in net.parameters()])  # <- grad-before-backward
            F.mse_loss(net(x), y).backward()
            opt.step()
    """,
    "no operator for None": """
        w = torch.zeros(4, 1, requires_grad=True)
        for _ in range(3):
            x, y = batch()
            with torch.no_grad():
                w -= 0.1 * w.grad  # <- grad-before-backward
            ((x @ w - y) ** 2).mean().backward()
    """,
}

GOOD = {
    "asked for first": """
        for _ in range(3):
            x, y = batch()
            for p in net.parameters():
                if p.grad is not None:
                    p.grad.zero_()
            F.mse_loss(net(x), y).backward()
            opt.step()
    """,
    "scaled between backward and step": """
        for _ in range(3):
            x, y = batch()
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            for p in net.parameters():
                p.grad.data *= 0.5
            opt.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert checked.found == checked.marked, checked.text
    assert checked.explained, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert not checked.alarms, checked.text


def test_an_encoder_cut_off_is_blamed_for_the_crash_over_its_gradient(check: Callable[[str], Any]) -> None:
    checked = check("""
        enc, head = nn.Linear(4, 8), nn.Linear(8, 1)
        opt = torch.optim.Adam([*enc.parameters(), *head.parameters()])

        def embed(x):
            h = enc(x)
            return h.detach()  # <- unreached-parameter

        for _ in range(3):
            loss = F.mse_loss(head(torch.relu(embed(torch.randn(16, 4)))), torch.ones(16, 1))
            opt.zero_grad()
            loss.backward()
            norm = torch.stack([p.grad.norm() for p in enc.parameters()]).norm()
            opt.step()
    """)
    assert checked.found == checked.marked, checked.text
    assert checked.explained, checked.text


def test_an_error_over_another_none_is_not_explained(check_all: Callable[[dict[str, str]], Any]) -> None:
    report = check_all(
        {
            "other": """
            import torch
            w = torch.zeros(3, requires_grad=True)
            logger = None
            for _ in range(3):
                if w.grad is not None:
                    w.grad.zero_()
                logger.info("a step")
                (w - 1).square().sum().backward()
        """
        }
    )["other"]
    assert not report["findings"]
