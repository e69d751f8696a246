"""Optimizers that never make a step, and runs in which that is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

GAN = """
gen = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))
disc = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
data = [torch.randn(5, 3) for _ in range(8)]
"""
NET = """
model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(6)]
"""

BAD = {
    "no step at all": NET
    + """
for x, y in data:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()  # <- cleared-grad
""",
    "no parentheses": NET
    + """
for x, y in data:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step  # <- never-stepped
""",
    "a window longer than the epoch, in a function": NET
    + """
class Trainer:
    def __init__(self, model, optimizer, accumulate):
        self.model, self.optimizer, self.accumulate = model, optimizer, accumulate

    def fit(self, data, epochs):
        for epoch in range(epochs):
            self.optimizer.zero_grad()
            for batch, (x, y) in enumerate(data, 1):
                loss = F.mse_loss(self.model(x), y) / self.accumulate
                loss.backward()
                if batch % self.accumulate == 0:  # <- never-stepped
                    self.optimizer.step()
                    self.optimizer.zero_grad()

Trainer(model, opt, 10).fit(data, 3)
""",
    "a condition that is never true": NET
    + """
best = -1.0
for x, y in data:
    opt.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    if loss.item() < best:  # <- never-stepped
        opt.step()
""",
    "the discriminator of two": GAN
    + """
for x in data:
    d_opt.zero_grad()
    fake = gen(torch.randn(5, 2))
    d_loss = disc(fake.detach()).mean() - disc(x).mean()
    d_loss.backward()  # <- cleared-grad
    g_opt.zero_grad()
    (-disc(fake).mean()).backward()
    g_opt.step()
""",
    "the generator of two": GAN
    + """
for x in data:
    d_opt.zero_grad()
    (disc(gen(torch.randn(5, 2)).detach()).mean() - disc(x).mean()).backward()
    d_opt.step()
    g_opt.zero_grad()
    (-disc(gen(torch.randn(5, 2))).mean()).backward()  # <- cleared-grad
""",
    "the learning rate schedule steps instead": NET
    + """
schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
for x, y in data:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()  # <- cleared-grad
    schedule.step()
""",
}

GOOD = {
    "a window that ends with the epoch": NET
    + """
for epoch in range(2):
    for i, (x, y) in enumerate(data):
        (F.mse_loss(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0 or i + 1 == len(data):
            opt.step()
            opt.zero_grad()
""",
    "an optimizer that another one replaced": NET
    + """
opt2 = torch.optim.Adam(model.parameters())
for x, y in data:
    opt2.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt2.step()
""",
    "updates by hand": NET
    + """
for x, y in data:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
""",
    "a look at gradients": NET
    + """
for x, y in data:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    print([p.grad.norm().item() for p in model.parameters()])
""",
    "a loss that passes through a second network on its way": """
actor, critic = nn.Linear(3, 2), nn.Linear(2, 1)
a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for step in range(8):
    a_opt.zero_grad()
    (-critic(actor(torch.randn(4, 3))).mean()).backward()
    a_opt.step()
    if step > 100:
        c_opt.step()
""",
    "a script that is stopped by an error of its own": NET
    + """
try:
    for i, (x, y) in enumerate(data):
        F.mse_loss(model(x), y).backward()
        if i == 5:
            opt.step()
finally:
    pass
""",
    "fused steps in hooks": NET
    + """
opts = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
def move(p):
    opts[p].step()
    opts[p].zero_grad()
for p in model.parameters():
    p.register_post_accumulate_grad_hook(move)
for x, y in data:
    F.mse_loss(model(x), y).backward()
""",
    "a copy of the optimizer for its state": NET
    + """
import copy
backup = copy.deepcopy(opt)
for x, y in data:
    opt.zero_grad()
    F.mse_loss(model(x), y).backward()
    opt.step()
""",
}


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(BAD[name])
    # where gradients are cleared unused and no step is written, cleared-grad says so at the same line
    assert checked.by("never-stepped") | checked.by("cleared-grad") == checked.marked, checked.text
    assert checked.alarms, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_silent(check: Callable[[str], Any], name: str) -> None:
    checked = check(GOOD[name])
    assert not checked.alarms, checked.text


def test_the_condition_is_named(check: Callable[[str], Any]) -> None:
    checked = check(BAD["a window longer than the epoch, in a function"])
    (finding,) = [one for one in checked.findings if one["rule"] == "never-stepped"]
    assert "`batch % self.accumulate == 0` was never true" in finding["message"]
    assert any("this step never ran" in text for _, text in finding["related"])
