"""graph-growth and hook-growth: what is kept from step to step and only ever grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradtrace.model.events import Growth
from gradtrace.model.site import Site
from gradtrace.rules.graph_growth import GraphGrowth

START = """
from collections import deque
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def batch():
    x = torch.randn(16, 3)
    return x, x.sum(1, keepdim=True)


def step():
    x, y = batch()
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""

BAD = {
    "list_of_losses": """
losses = []
for _ in range(15):
    losses.append(step())  # <- here
""",
    "running_sum": """
def train():
    total = 0.0
    for _ in range(15):
        total += step()  # <- here
    return total / 15

print(train().item())
""",
    "moving_average": """
class Meter:
    def __init__(self):
        self.average = torch.zeros(())

    def update(self, loss):
        self.average = 0.9 * self.average + 0.1 * loss  # <- here

meter = Meter()
for _ in range(15):
    meter.update(step())
""",
    "buffer_of_dicts": """
class Trainer(nn.Module):
    def __init__(self):
        super().__init__()
        self.outputs = []

    def training_step(self):
        loss = step()
        self.outputs.append({"loss": loss, "size": 16})  # <- here

trainer = Trainer()
for _ in range(15):
    trainer.training_step()
""",
    "replay": """
memory = deque(maxlen=1000)
for _ in range(15):
    with torch.enable_grad():
        prediction = model(batch()[0])
    memory.append((prediction, 1.0))  # <- here
    step()
""",
    "metrics_by_name": """
history = {"error": []}
for _ in range(15):
    step()
    x, y = batch()
    history["error"].append((model(x) - y).abs().mean())  # <- here
""",
    "sampling_without_steps": """
def collect(wanted):
    accepted = torch.empty(0, 1)
    while len(accepted) < wanted:
        proposal = model(torch.randn(4, 3))
        accepted = torch.cat([accepted, proposal])  # <- here
    return accepted

for _ in range(5):
    step()
samples = collect(400)
""",
    "validation_loss": """
def validate():
    model.eval()
    total = 0.0
    for _ in range(10):
        x, y = batch()
        total += nn.functional.mse_loss(model(x), y)  # <- here
    model.train()
    return total / 10

for _ in range(3):
    step()
    print(validate().item())
""",
    "predictions_in_evaluation": """
class Evaluator:
    def predict(self, batches):
        model.eval()
        scores = []
        for x, _ in batches:
            scores.append(model(x).sigmoid())  # <- here
        model.train()
        return torch.cat(scores)

for _ in range(2):
    step()
    print(Evaluator().predict([batch() for _ in range(8)]).mean())
""",
    "samples_after_training": """
for _ in range(3):
    step()
samples = []
x, _ = batch()
for _ in range(12):
    samples.append(model(x))  # <- here
print(torch.stack(samples).std(0).mean())
""",
    "attribute_of_a_class": """
class Log:
    rows = []

    @classmethod
    def add(cls, **values):
        cls.rows.append(values)  # <- here

for _ in range(15):
    Log.add(loss=step())
""",
    "hidden_state": """
cell = nn.RNNCell(3, 4)
hidden = torch.zeros(16, 4)
for _ in range(15):
    x, y = batch()
    hidden = cell(x, hidden)  # <- here
    step()
""",
}

GOOD = {
    "chain_longer_than_a_walk": """
y = x = torch.ones(1, requires_grad=True)
for _ in range(95_000):
    y = y * 1.0
y.sum().backward()
""",
    "episode_of_a_policy_beside_a_critic": """
cell, policy, critic = nn.GRUCell(3, 4), nn.Linear(4, 1), nn.Linear(3, 1)
slow = torch.optim.Adam([*cell.parameters(), *policy.parameters()])
fast = torch.optim.SGD(critic.parameters(), lr=0.01)
for _ in range(2):
    state, scores, errors = torch.zeros(1, 4), [], []
    for x in torch.randn(12, 1, 3):
        state = cell(x, state)
        scores.append(policy(state))
        error = critic(x) - 1
        errors.append(error.detach())
        fast.zero_grad()
        error.pow(2).mean().backward()
        fast.step()
    slow.zero_grad()
    (torch.cat(scores) * torch.cat(errors)).mean().backward()
    slow.step()
""",
    "last_state_of_a_decoder": """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(4, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, token, hidden):
        out, hidden = self.gru(token, hidden)
        return self.out(out[:, 0]), hidden


decoder, criterion = Decoder(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(decoder.parameters())
for _ in range(10):
    hidden, loss = torch.zeros(1, 2, 4), 0
    for _ in range(6):
        logits, hidden = decoder(torch.randn(2, 1, 4), hidden)
        loss = loss + criterion(logits, torch.zeros(2).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "numbers": """
losses, total = [], 0.0
for _ in range(20):
    loss = step()
    losses.append(loss.item())
    total += loss.detach()
""",
    "last_loss_kept": """
best = None
for _ in range(20):
    loss = step()
    if best is None or loss < best:
        best = loss
""",
    "losses_summed_for_one_backward": """
for _ in range(8):
    losses = []
    for _ in range(30):
        x, y = batch()
        losses.append(nn.functional.mse_loss(model(x), y))
    optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    optimizer.step()
""",
    "long_episode": """
for episode in range(6):
    log_probs = []
    for _ in range(40 + 20 * episode):
        log_probs.append(nn.functional.logsigmoid(model(torch.randn(1, 3))).sum())
    optimizer.zero_grad()
    (-torch.stack(log_probs).sum()).backward()
    optimizer.step()
""",
    "log_probabilities_detached_later": """
for _ in range(4):
    states, kept = [], []
    for _ in range(12):
        x, _ = batch()
        states.append(x)
        kept.append(nn.functional.logsigmoid(model(x)))
    old = torch.stack(kept).detach()
    for _ in range(3):
        new = nn.functional.logsigmoid(model(torch.stack(states)))
        optimizer.zero_grad()
        (-(new - old).exp().mean()).backward()
        optimizer.step()
""",
    "best_of_many": """
for _ in range(4):
    x, y = batch()
    losses = []
    for _ in range(8):
        losses.append(nn.functional.mse_loss(model(x + 0.1 * torch.randn(3)), y))
    optimizer.zero_grad()
    min(losses).backward()
    optimizer.step()
""",
    "short_window": """
window = deque(maxlen=4)
for _ in range(20):
    window.append(step())
""",
    "evaluation": """
for epoch in range(6):
    for _ in range(3):
        step()
    errors = []
    with torch.no_grad():
        for _ in range(40):
            x, y = batch()
            errors.append(nn.functional.mse_loss(model(x), y))
    print(torch.stack(errors).mean())
""",
    "unrolled_cell": """
cell, readout = nn.LSTMCell(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *readout.parameters()])
for _ in range(10):
    h = c = torch.zeros(2, 8)
    outputs = []
    for x in torch.randn(30, 2, 3):
        h, c = cell(x, (h, c))
        outputs.append(readout(h))
    optimizer.zero_grad()
    torch.stack(outputs).pow(2).mean().backward()
    optimizer.step()
""",
}


def reports(check_all: Callable[[dict[str, str]], dict[str, Any]], scripts: dict[str, str]) -> dict[str, Any]:
    return check_all({name: START + text for name, text in scripts.items()})


@pytest.fixture(scope="module")
def bad(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return reports(check_all, BAD)


@pytest.fixture(scope="module")
def good(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return reports(check_all, GOOD)


@pytest.mark.parametrize("name", BAD)
def test_kept_graph_is_found_where_it_is_kept(bad: dict[str, Any], name: str) -> None:
    lines = (START + BAD[name]).splitlines()
    expected = next(number for number, line in enumerate(lines, 1) if "# <- here" in line)
    found = [(one["rule"], one["line"]) for one in bad[name]["findings"]]
    assert ("graph-growth", expected) in found
    assert {rule for rule, _ in found} == {"graph-growth"}


@pytest.mark.parametrize("name", GOOD)
def test_what_does_not_grow_is_silent(good: dict[str, Any], name: str) -> None:
    assert good[name]["findings"] == []


def test_hooks_registered_at_every_step(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> None:
    found = reports(
        check_all,
        {
            "each_step": """
for _ in range(15):
    model[0].register_forward_hook(lambda *_: None)  # <- here
    step()
""",
            "removed": """
for _ in range(15):
    handle = model[0].register_forward_hook(lambda *_: None)
    step()
    handle.remove()
""",
            "once": """
model[0].register_forward_hook(lambda *_: None)
for _ in range(15):
    step()
""",
        },
    )
    assert [one["rule"] for one in found["each_step"]["findings"]] == ["hook-growth"]
    assert found["removed"]["findings"] == found["once"]["findings"] == []


LATE = {
    "after 100 of 300 steps": """
kept = []
for i in range(300):
    x = torch.randn(8, 3)
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i >= 100:
        kept.append(loss)  # <- graph-growth
""",
    "a moving average that a second phase keeps": """
class Meter:
    def __init__(self):
        self.value = 0.0

    def update(self, value):
        self.value = 0.9 * self.value + 0.1 * value  # <- graph-growth

meter = Meter()
def epoch(number, log):
    for _ in range(30):
        loss = model(torch.randn(8, 3)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(loss if log else loss.item())
for number in range(4):
    epoch(number, number >= 2)
""",
    "hooks of a second phase": """
for i in range(160):
    if i >= 60:
        model[0].register_forward_hook(lambda *_: None)  # <- hook-growth
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
""",
}
LATE["hooks of one of two networks"] = """
other = nn.Linear(3, 3)
theirs = torch.optim.SGD(other.parameters(), 0.1)
def step():
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
for i in range(40):
    step()
    if i % 3 == 0:
        other.register_forward_hook(lambda *_: None)  # <- hook-growth
    theirs.zero_grad()
    other(torch.randn(8, 3)).pow(2).mean().backward()
    theirs.step()
"""
LATE["a graph kept beside a second network"] = """
other = nn.Linear(3, 3)
theirs = torch.optim.SGD(other.parameters(), 0.1)
kept = []
def step():
    opt.zero_grad()
    model(torch.randn(8, 3)).pow(2).mean().backward()
    opt.step()
for i in range(40):
    step()
    loss = other(torch.randn(8, 3)).pow(2).mean()
    theirs.zero_grad()
    loss.backward()
    theirs.step()
    kept.append(loss)  # <- graph-growth
"""
ITERATIONS = {
    "a state for each episode, beside a target that nothing backpropagates": """
import copy
class Agent:
    def __init__(self):
        self.cell, self.out, self.state = nn.GRUCell(3, 8), nn.Linear(8, 1), None

    def reset(self):
        self.state = torch.zeros(1, 8).expand(4, -1)

    def __call__(self, x):
        self.state = self.cell(x, self.state)
        return self.out(self.state)

agent = Agent()
target = copy.deepcopy(agent)
opt = torch.optim.Adam([*agent.cell.parameters(), *agent.out.parameters()])
for episode in range(9):
    agent.reset(), target.reset()
    steps = [torch.randn(4, 3) for _ in range(12)]
    values = torch.stack([agent(x) for x in steps])
    goals = torch.stack([target(x) for x in steps]).detach()
    opt.zero_grad()
    F.mse_loss(values[:-1], goals[1:]).backward()
    opt.step()
""",
    "episodes of log probabilities, late in training": """
log_probs = []
for i in range(120):
    log_probs.append(model(torch.randn(1, 3)).sum())
    if i % 20 == 19:
        opt.zero_grad()
        torch.stack(log_probs).sum().backward()
        opt.step()
        log_probs.clear()
""",
}
TRAINED = """
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01)
"""


@pytest.mark.parametrize("name", LATE)
def test_growth_that_begins_late_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(TRAINED + LATE[name])
    assert checked.found == checked.marked, checked.text


@pytest.mark.parametrize("name", ITERATIONS)
def test_long_iterations_do_not_grow(check: Callable[[str], Any], name: str) -> None:
    checked = check(TRAINED + ITERATIONS[name])
    assert not checked.alarms, checked.text


def test_small_graphs_have_small_sizes() -> None:
    made = (Site("train.py", 3, ""),)
    (finding,) = GraphGrowth().see(Growth("total", (), 1, 12, 48, 2, made))
    assert "12 nodes with 48 B of saved tensors, 2 more nodes with each step" in finding.message
