"""Targets through which the gradient flows, and sums that are none."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

SETTING = """
import copy
q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
v = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam([*q.parameters(), *v.parameters()])
def sample(n=16):
    return torch.randn(n, 4), torch.randint(2, (n, 1)), torch.randn(n), torch.randn(n, 4), (torch.rand(n) < 0.2).float()
"""

BAD = {
    "Q-learning": """
        for _ in range(5):
            s, a, r, s2, done = sample()
            now = q(s).gather(1, a).squeeze(1)
            goal = r + 0.95 * (1 - done) * q(s2).max(1).values  # <- attached-target
            loss = F.smooth_l1_loss(now, goal)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a value function in a class, the target first": """
        class Learner:
            def goal(self, r, s2, done):
                return r.unsqueeze(1) + v(s2) * 0.9 * (1 - done).unsqueeze(1)  # <- attached-target

            def step(self):
                s, _, r, s2, done = sample()
                loss = F.mse_loss(self.goal(r, s2, done), v(s))
                opt.zero_grad()
                loss.backward()
                opt.step()
        learner = Learner()
        for _ in range(5):
            learner.step()
    """,
}

GOOD = {
    "a detached target": """
        for _ in range(5):
            s, a, r, s2, done = sample()
            goal = (r + 0.95 * (1 - done) * q(s2).max(1).values).detach()
            loss = F.mse_loss(q(s).gather(1, a).squeeze(1), goal)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a target network": """
        old = copy.deepcopy(q)
        for _ in range(5):
            s, a, r, s2, done = sample()
            with torch.no_grad():
                goal = r + 0.95 * (1 - done) * old(s2).max(1).values
            loss = F.mse_loss(q(s).gather(1, a).squeeze(1), goal)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a siamese network and a residual block": """
        for _ in range(5):
            s, _, r, s2, _ = sample()
            loss = F.mse_loss(v(s), v(s2)) + F.mse_loss(s + 0.9 * q(s).repeat(1, 2), s2)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert checked.found - {("unreached-parameter", line) for _, line in checked.found} == checked.marked, checked.text
    assert not checked.alarms, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert not checked.by("attached-target"), checked.text
