"""Steps that change no parameter, and schedules whose rate is 0 for a while on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NET = """
model = nn.Linear(3, 1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(10)]
def train(opt, schedule=None, epochs=1):
    for epoch in range(epochs):
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step(){mark}
            if schedule is not None:
                schedule.step()
"""
MARKED, PLAIN = NET.replace("{mark}", "  # <- no-effect-step"), NET.replace("{mark}", "")

BAD = {
    "a rate of 0": MARKED + "train(torch.optim.SGD(model.parameters(), lr=0.0))",
    "integer division": MARKED
    + """
steps = 3
opt = torch.optim.Adam(model.parameters(), lr=1 // steps)
train(opt)
""",
    "a schedule that has run out": MARKED
    + """
opt = torch.optim.AdamW(model.parameters(), lr=0.1)
train(opt, torch.optim.lr_scheduler.LambdaLR(opt, lambda s: max(0.0, 1 - s / 8)), epochs=3)
""",
    "a rate of 0 in each group": MARKED
    + """
train(torch.optim.SGD([{"params": [model.weight], "lr": 0.0}, {"params": [model.bias]}], lr=0.0, momentum=0.9))
""",
    "updates too small for bfloat16": MARKED
    + """
model = model.bfloat16()
with torch.no_grad():
    model.weight.fill_(1.0), model.bias.fill_(1.0)
data = [(x.bfloat16(), y.bfloat16()) for x, y in data]
train(torch.optim.SGD(model.parameters(), lr=1e-6))
""",
}

GOOD = {
    "a warm-up that begins at 0": PLAIN
    + """
opt = torch.optim.Adam(model.parameters(), lr=0.1)
train(opt, torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, s / 4)))
""",
    "a cosine that ends at 0": PLAIN
    + """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
train(opt, torch.optim.lr_scheduler.CosineAnnealingLR(opt, 10))
""",
    "one cycle, stepped for each batch": PLAIN
    + """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
train(opt, torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=21), epochs=2)
""",
    "one group that is held back": PLAIN
    + """
train(torch.optim.SGD([{"params": [model.weight], "lr": 0.0}, {"params": [model.bias]}], lr=0.1))
""",
    "LBFGS": PLAIN
    + """
opt = torch.optim.LBFGS(model.parameters(), max_iter=4)
x, y = data[0]
def closure():
    opt.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    return loss
for _ in range(5):
    opt.step(closure)
""",
    "an optimizer that keeps its own copy in float32": PLAIN
    + """
master = [p.detach().clone().requires_grad_() for p in model.parameters()]
opt = torch.optim.SGD(master, lr=0.1)
for x, y in data:
    model.zero_grad()
    F.mse_loss(model(x), y).backward()
    for m, p in zip(master, model.parameters()):
        m.grad = p.grad.clone()
    opt.step()
    with torch.no_grad():
        for m, p in zip(master, model.parameters()):
            p.copy_(m)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(BAD[name])
    assert checked.by("no-effect-step") == checked.marked, checked.text
    assert checked.alarms, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_silent(check: Callable[[str], Any], name: str) -> None:
    checked = check(GOOD[name])
    assert not checked.alarms, checked.text
    assert not checked.by("no-effect-step"), checked.text


def test_a_first_epoch_at_rate_0_is_a_note(check: Callable[[str], Any]) -> None:
    checked = check(
        PLAIN
        + """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: min(1.0, epoch / 2))
for epoch in range(3):
    train(opt)
    schedule.step()
"""
    )
    assert checked.by("no-effect-step"), checked.text
    assert not checked.alarms, checked.text


def test_an_optimizer_of_frozen_parameters(check: Callable[[str], Any]) -> None:
    checked = check("""
        net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
        for p in net[2].parameters():
            p.requires_grad_(False)
        opt = torch.optim.SGD(net[2].parameters(), lr=0.1)
        for _ in range(6):
            opt.zero_grad()
            net(torch.randn(4, 8)).pow(2).mean().backward()
            opt.step()  # <- step-without-grad
    """)
    assert checked.by("step-without-grad") == checked.marked, checked.text
