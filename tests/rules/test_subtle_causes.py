"""Faults whose cause lies far from where they show: late, in another optimizer, behind a view, in a plain attribute."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

MLP = """
def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))
"""

BAD = {
    "rounded from the middle of the run on": """
        net = mlp()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for step in range(60):
            x = torch.randn(8, 4)
            out = net(x)
            if step >= 20:
                out = out.round()  # <- zero-gradient
            opt.zero_grad()
            F.mse_loss(out, x[:, :1]).backward()
            opt.step()
    """,
    "the ratio of a policy to itself": """
        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.actor, self.critic = mlp(4, 3), mlp()
            def forward(self, s):
                return torch.distributions.Categorical(logits=self.actor(s)), self.critic(s)
        policy = Policy()
        opt = torch.optim.Adam(policy.parameters())
        states, actions, returns = torch.randn(32, 4), torch.randint(3, (32,)), torch.randn(32)
        for epoch in range(10):
            dist, value = policy(states)
            before = dist.log_prob(actions)
            now = dist.log_prob(actions)
            ratio = torch.exp(now - before)  # <- zero-gradient
            advantage = returns - value.squeeze(1).detach()
            loss = -(ratio * advantage).mean() + F.mse_loss(value.squeeze(1), returns)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a latent that is sampled without a gradient": """
        enc, dec = mlp(4, 4), mlp(2, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
        for _ in range(8):
            x = torch.randn(8, 4)
            mean, scale = enc(x).chunk(2, 1)
            posterior = torch.distributions.Normal(mean, F.softplus(scale))
            z = posterior.sample()  # <- dead-loss-term
            rebuilt = F.mse_loss(dec(z), x)
            loss = rebuilt + 0.1 * torch.distributions.kl_divergence(posterior, prior).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a closure that only returns the loss": """
        net = mlp()
        opt = torch.optim.LBFGS(net.parameters())
        x = torch.randn(16, 4)
        for _ in range(5):
            opt.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            opt.step(lambda: loss)  # <- step-without-grad
    """,
    "a plain tensor deep in a model": """
        class Scale(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.factor = torch.ones(n, requires_grad=True)  # <- unoptimized-parameter
            def forward(self, x):
                return x * self.factor
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.tower = nn.Sequential(nn.Linear(4, 8), Scale(8), nn.Linear(8, 1))
            def forward(self, x):
                return self.tower(x)
        def fit(model):
            opt = torch.optim.Adagrad(model.parameters(), lr=0.05)
            for _ in range(8):
                opt.zero_grad()
                model(torch.randn(8, 4)).square().mean().backward()
                opt.step()
        fit(Net())
    """,
    "an attribute of a module, after another model was trained": """
        import copy
        def fit(model):
            opt = torch.optim.Adam(model.parameters())
            for _ in range(10):
                opt.zero_grad()
                model(torch.randn(8, 4)).square().mean().backward()
                opt.step()
        source = mlp()
        fit(source)
        target = copy.deepcopy(source)
        target[0].requires_grad = False  # <- misspelt-attribute
        fit(target)
    """,
    "a loss that Variable wraps again": """
        from torch.autograd import Variable
        net = mlp()
        opt = torch.optim.Adam(net.parameters())
        def predict(x):
            return net(x).detach()  # <- no-graph
        def objective(x):
            return Variable(F.mse_loss(predict(x), x[:, :1]), requires_grad=True)
        def fit(x):
            loss = objective(x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            return loss.detach()
        for _ in range(6):
            fit(torch.randn(8, 4))
    """,
    "frozen after the optimizer was created": """
        net, target = mlp(), mlp()
        opt = torch.optim.Adam(net.parameters())
        for p in net.parameters():
            p.requires_grad = False  # <- no-graph
        for _ in range(3):
            x = torch.randn(8, 4)
            with torch.no_grad():
                y = target(x)
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
    """,
    "the inner loop of MAML, behind a threshold": """
        net = mlp()
        meta = torch.optim.Adam(net.parameters())
        def forward(x, w):
            h = F.linear(x, w[0], w[1])
            h = (h > 0).float()  # <- unused-input
            return F.linear(h, w[2], w[3])
        for _ in range(3):
            x = torch.randn(8, 4)
            fast = [w.clone() for w in net.parameters()]
            loss = forward(x, fast).square().mean()
            grads = torch.autograd.grad(loss, fast, create_graph=True)
            meta.zero_grad()
            sum(g.square().sum() for g in grads).backward()
            meta.step()
    """,
    "a hand-written update that finds no gradient any more": """
        w, b = torch.randn(4, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
        for step in range(20):
            x = torch.randn(8, 4)
            h = x @ w
            if step > 10:
                h = h.detach()  # <- unreached-parameter
            loss = (h + b).square().mean()
            for p in (w, b):
                p.grad = None
            loss.backward()
            for p in (w, b):
                p.data -= 0.1 * p.grad
    """,
    "one of two critics, which the actor's loss reaches as well": """
        actor, first, second = mlp(4, 2), mlp(6), mlp(6)
        theirs = torch.optim.Adam([*first.parameters(), *second.parameters()])
        mine = torch.optim.Adam(actor.parameters())
        for step in range(12):
            s, a, y = torch.randn(8, 4), torch.randn(8, 2), torch.randn(8, 1)
            both = torch.cat([s, a], 1)
            loss = F.mse_loss(first(both), y).detach() + F.mse_loss(second(both), y)  # <- unreached-parameter
            theirs.zero_grad()
            loss.backward()
            theirs.step()
            if step % 2:
                mine.zero_grad()
                (-first(torch.cat([s, actor(s)], 1)).mean()).backward()
                mine.step()
    """,
    "gradients off around a loss, and in the rollouts before": """
        actor, critic = mlp(4, 4), mlp(4)
        opt = torch.optim.Adam(actor.parameters())
        state = torch.randn(8, 4)
        def act(state):
            with torch.no_grad():
                return state + actor(state)
        def train(state):
            with torch.no_grad():  # <- no-graph
                loss = -critic(actor(state)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        for _ in range(4):
            state = act(state)
            train(state)
    """,
    "a state that a loop carries, and a function with the same names": """
        cell, head = nn.GRUCell(4, 4), nn.Linear(4, 1)
        opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])
        def update(x, state):
            state = cell(x, state.detach())
            opt.zero_grad()
            head(state).square().mean().backward()
            opt.step()
        def collect():
            state = torch.zeros(2, 4)
            for _ in range(24):
                x = torch.randn(2, 4)
                update(x, state)
                state = cell(x, state)  # <- graph-growth
        collect()
    """,
}

#: worth a note: it may be meant
NOTED = {
    "a layer that the optimizer lacks": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head = mlp(4, 8), nn.Linear(8, 1)
            def forward(self, x):
                return self.head(self.body(x))
        net = Net()
        opt = torch.optim.Adam(net.body.parameters())  # <- unoptimized-parameter
        for _ in range(8):
            opt.zero_grad()
            net(torch.randn(8, 4)).square().mean().backward()
            opt.step()
    """,
    "a penalty that nothing uses": """
        net = mlp()
        opt = torch.optim.Adam(net.parameters())
        for _ in range(8):
            out = net(torch.randn(8, 4))
            penalty = out.abs().mean()  # <- unused-loss
            opt.zero_grad()
            out.square().mean().backward()
            opt.step()
    """,
    "an optimizer whose parameters are frozen, beside one that trains": """
        enc, dec = mlp(4, 4), mlp()
        first, second = torch.optim.SGD(enc.parameters(), 0.1), torch.optim.SGD(dec.parameters(), 0.1)
        enc.requires_grad_(False)  # <- step-without-grad
        for _ in range(8):
            second.zero_grad()
            dec(enc(torch.randn(8, 4))).square().mean().backward()
            first.step()
            second.step()
    """,
}

GOOD = {
    "a margin that is kept in the end": """
        net = mlp()
        opt = torch.optim.Adam(net.parameters(), 0.05)
        for step in range(60):
            out = net(torch.randn(8, 4))
            opt.zero_grad()
            F.relu(0.5 - out).mean().backward()
            opt.step()
    """,
    "the ratio of a policy to the old one": """
        actor = mlp(4, 3)
        opt = torch.optim.Adam(actor.parameters())
        states, actions, advantage = torch.randn(32, 4), torch.randint(3, (32,)), torch.randn(32)
        with torch.no_grad():
            before = torch.distributions.Categorical(logits=actor(states)).log_prob(actions)
        for epoch in range(10):
            now = torch.distributions.Categorical(logits=actor(states)).log_prob(actions)
            opt.zero_grad()
            (-(torch.exp(now - before) * advantage).mean()).backward()
            opt.step()
    """,
    "a latent with a gradient, and an action without": """
        enc, dec, critic = mlp(4, 4), mlp(2, 4), mlp(6)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        theirs = torch.optim.Adam(critic.parameters())
        for _ in range(8):
            x = torch.randn(8, 4)
            mean, scale = enc(x).chunk(2, 1)
            posterior = torch.distributions.Normal(mean, F.softplus(scale))
            loss = F.mse_loss(dec(posterior.rsample()), x) + 0.1 * posterior.mean.square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            theirs.zero_grad()
            critic(torch.cat([x, posterior.sample()], 1)).square().mean().backward()
            theirs.step()
    """,
    "a policy gradient over samples": """
        actor = mlp(4, 4)
        opt = torch.optim.Adam(actor.parameters())
        for _ in range(8):
            mean, scale = actor(torch.randn(8, 4)).chunk(2, 1)
            dist = torch.distributions.Normal(mean, F.softplus(scale) + 0.1)
            action = dist.sample()
            loss = -(dist.log_prob(action).sum(1) * action.square().sum(1)).mean() - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a closure that does all": """
        net = mlp()
        opt = torch.optim.LBFGS(net.parameters())
        x = torch.randn(16, 4)
        def closure():
            opt.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            return loss
        for _ in range(5):
            opt.step(closure)
    """,
    "a pretrained body that only a head is put on": """
        import copy
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head = mlp(4, 8), nn.Linear(8, 1)
            def forward(self, x):
                return self.head(self.body(x))
        net = Net()
        net.body.load_state_dict(copy.deepcopy(mlp(4, 8).state_dict()))
        opt = torch.optim.Adam(net.head.parameters())
        for _ in range(8):
            opt.zero_grad()
            net(torch.randn(8, 4)).square().mean().backward()
            opt.step()
    """,
    "an encoder that is thawed later": """
        enc, dec = mlp(4, 4), mlp()
        first, second = torch.optim.SGD(enc.parameters(), 0.1), torch.optim.SGD(dec.parameters(), 0.1)
        enc.requires_grad_(False)
        for epoch in range(4):
            if epoch == 2:
                enc.requires_grad_(True)
            for _ in range(4):
                first.zero_grad()
                second.zero_grad()
                dec(enc(torch.randn(8, 4))).square().mean().backward()
                first.step()
                second.step()
    """,
}


@pytest.mark.parametrize("name", BAD)
def test_the_cause_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(MLP + dedent(BAD[name]))
    assert {(one["rule"], one["line"]) for one in checked.alarms} == checked.marked, checked.text
    assert checked.explained or checked.exception is None, checked.text


@pytest.mark.parametrize("name", NOTED)
def test_what_may_be_meant_is_noted(check: Callable[[str], Any], name: str) -> None:
    checked = check(MLP + dedent(NOTED[name]))
    assert checked.found == checked.marked, checked.text
    assert not checked.alarms, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_a_correct_twin_is_silent(check: Callable[[str], Any], name: str) -> None:
    checked = check(MLP + dedent(GOOD[name]))
    assert not checked.alarms, checked.text
