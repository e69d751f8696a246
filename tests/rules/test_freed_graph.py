"""freed-graph, on scripts as people write them, and on events written by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradtrace.model.events import Backward, Owners, Reentry
from gradtrace.model.finding import Level
from gradtrace.model.site import Site, Stack
from gradtrace.rules.freed_graph import FreedGraph

BAD = {
    "the state of an LSTM at module level": """
        lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
        opt = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
        state = None
        for _ in range(3):
            x, y = torch.randn(5, 2, 3), torch.randn(5, 2, 1)
            out, state = lstm(x, state)  # <- freed-graph
            loss = F.mse_loss(head(out), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "only the hidden state is detached, not the cell": """
        lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
        opt = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
        state = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
        for _ in range(3):
            h, c = state
            state = (h.detach(), c)  # <- freed-graph
            out, state = lstm(torch.randn(5, 2, 3), state)
            loss = head(out).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a helper detaches one part of the state": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.head = nn.LSTM(3, 8), nn.Linear(8, 1)
            def forward(self, x, state):
                out, state = self.lstm(x, state)
                return self.head(out), state
        def repackage(state):
            h, c = state
            return h.detach(), c  # <- freed-graph
        net = Net()
        opt = torch.optim.Adam(net.parameters())
        state = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
        for _ in range(3):
            state = repackage(state)
            out, state = net(torch.randn(5, 2, 3), state)
            opt.zero_grad()
            out.pow(2).mean().backward()
            opt.step()
    """,
    "one of two names is detached": """
        lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
        opt = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
        state = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
        for _ in range(3):
            h, c = state
            h = h.detach()  # <- freed-graph
            out, state = lstm(torch.randn(5, 2, 3), (h, c))
            opt.zero_grad()
            head(out).pow(2).mean().backward()
            opt.step()
    """,
    "an error that is swallowed": """
        cell, head = nn.GRUCell(3, 6), nn.Linear(6, 1)
        opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])
        def step(x, state):
            state = cell(x, state)
            loss = head(state).pow(2).mean()
            opt.zero_grad()
            try:
                loss.backward()
                opt.step()
            except RuntimeError:
                pass
            return state
        state = torch.zeros(4, 6)
        for _ in range(5):
            state = step(torch.randn(4, 3), state)  # <- freed-graph
    """,
    "hidden and cell state by name": """
        def train(model, head, opt, chunks):
            h, c = torch.zeros(1, 2, 8), torch.zeros(1, 2, 8)
            for x, y in chunks:
                out, (h, c) = model(x, (h, c))  # <- freed-graph
                loss = F.mse_loss(head(out), y)
                opt.zero_grad()
                loss.backward()
                opt.step()

        lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
        opt = torch.optim.SGD([*lstm.parameters(), *head.parameters()], lr=0.1)
        train(lstm, head, opt, [(torch.randn(5, 2, 3), torch.randn(5, 2, 1)) for _ in range(3)])
    """,
    "a cell of plain functions": """
        w = torch.randn(4, 4, requires_grad=True)
        u = torch.randn(3, 4, requires_grad=True)

        def cell(x, h):
            new = torch.tanh(x @ u + h @ w)
            return new.sum(1), new

        h = torch.zeros(2, 4)
        for _ in range(3):
            out, h = cell(torch.randn(2, 3), h)  # <- freed-graph
            out.pow(2).mean().backward()
            with torch.no_grad():
                for p in (w, u):
                    p -= 0.1 * p.grad
                    p.grad = None
    """,
    "the new state is handed over at the end of the loop": """
        cell, readout = nn.GRUCell(3, 6), nn.Linear(6, 1)
        opt = torch.optim.Adam(list(cell.parameters()) + list(readout.parameters()))
        memory = torch.zeros(4, 6)
        for t in range(4):
            x = torch.randn(4, 3)
            new_memory = cell(x, memory)
            loss = (readout(new_memory) - x.sum(1, keepdim=True)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            memory = new_memory  # <- freed-graph
    """,
    "state in an attribute of the module": """
        class Tracker(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(3, 6)
                self.head = nn.Linear(6, 1)
                self.reset()

            def reset(self):
                self.hidden = torch.zeros(1, 2, 6)

            def forward(self, x):
                out, self.hidden = self.rnn(x, self.hidden)  # <- freed-graph
                return self.head(out)

        model = Tracker()
        opt = torch.optim.Adam(model.parameters())
        for _ in range(3):
            loss = model(torch.randn(5, 2, 3)).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "state stored by a statement of its own": """
        class Tracker(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(3, 6)
                self.head = nn.Linear(6, 1)
                self.hidden = None

            def forward(self, x):
                if self.hidden is None:
                    self.hidden = torch.zeros(len(x), 6)
                hidden = self.cell(x, self.hidden)
                out = self.head(hidden)
                self.hidden = hidden  # <- freed-graph
                return out

        model = Tracker()
        opt = torch.optim.Adam(model.parameters())
        for _ in range(3):
            x = torch.randn(2, 3)
            loss = F.mse_loss(model(x), x[:, :1])
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "state read into a local variable": """
        class Agent:
            def __init__(self):
                self.net = nn.LSTMCell(3, 6)
                self.value = nn.Linear(6, 1)
                self.opt = torch.optim.Adam([*self.net.parameters(), *self.value.parameters()])
                self.state = (torch.zeros(1, 6), torch.zeros(1, 6))

            def learn(self, obs, target):
                h, c = self.state
                h, c = self.net(obs, (h, c))
                loss = (self.value(h) - target).pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.state = (h, c)  # <- freed-graph

        agent = Agent()
        for _ in range(3):
            agent.learn(torch.randn(1, 3), torch.ones(1, 1))
    """,
    "prediction made outside of the closure": """
        def fit(model, x, y):
            opt = torch.optim.LBFGS(model.parameters(), max_iter=5)
            pred = model(x)  # <- freed-graph

            def closure():
                opt.zero_grad()
                loss = F.mse_loss(pred, y)
                loss.backward()
                return loss

            for _ in range(2):
                opt.step(closure)

        fit(nn.Linear(3, 1), torch.randn(20, 3), torch.randn(20, 1))
    """,
    "loss made outside of the closure": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        opt = torch.optim.LBFGS(model.parameters(), max_iter=5)
        x = torch.randn(20, 3)
        loss = model(x).pow(2).mean()  # <- freed-graph

        def closure():
            opt.zero_grad()
            loss.backward()
            return loss

        opt.step(closure)
    """,
    "features computed once, heads trained on them": """
        encoder, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1)
        opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        features = encoder(x)  # <- freed-graph
        for epoch in range(3):
            loss = F.mse_loss(head(features), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "the same, with the loop in a function": """
        def train(head, features, y, opt):
            for epoch in range(3):
                loss = F.mse_loss(head(features), y)
                opt.zero_grad()
                loss.backward()
                opt.step()

        def main():
            encoder, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1)
            opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
            features = encoder(torch.randn(32, 4))  # <- freed-graph
            train(head, features, torch.randn(32, 1), opt)

        main()
    """,
    "a penalty on the weights, computed once": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        penalty = sum(p.pow(2).sum() for p in model.parameters())  # <- freed-graph
        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randn(8, 1)
            loss = F.mse_loss(model(x), y) + 1e-3 * penalty
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a normalised adjacency, computed once": """
        class GraphNet(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.logits = nn.Parameter(torch.randn(n, n))
                self.lin = nn.Linear(4, 2)
                self.adj = torch.softmax(self.logits, 1)  # <- freed-graph

            def forward(self, x):
                return self.lin(self.adj @ x)

        net = GraphNet(6)
        opt = torch.optim.Adam(net.parameters())
        x, y = torch.randn(6, 4), torch.randint(0, 2, (6,))
        for _ in range(3):
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "the sum of all losses, backward at each step": """
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        total = 0
        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randn(8, 1)
            loss = F.mse_loss(model(x), y)
            total += loss  # <- freed-graph
            opt.zero_grad()
            total.backward()
            opt.step()
    """,
    "losses in a list, summed at each step": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            losses.append(F.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1)))
            loss = torch.stack(losses).mean()  # <- freed-graph
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a running baseline that keeps its graph": """
        policy, value = nn.Linear(3, 2), nn.Linear(3, 1)
        opt = torch.optim.Adam([*policy.parameters(), *value.parameters()])
        baseline = torch.zeros(())
        for _ in range(3):
            s = torch.randn(10, 3)
            logp = torch.log_softmax(policy(s), 1)[:, 0]
            ret = value(s).squeeze(1) + torch.randn(10)
            loss = -(logp * (ret - baseline)).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            baseline = 0.9 * baseline + 0.1 * ret.mean()  # <- freed-graph
    """,
    "a running mean of features, updated before backward": """
        net = nn.Linear(3, 4)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        center = torch.zeros(4)
        for _ in range(3):
            z = net(torch.randn(10, 3))
            loss = (z - center).pow(2).mean()
            center = 0.9 * center + 0.1 * z.mean(0)  # <- freed-graph
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a queue of keys": """
        class Contrast(nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.k = nn.Linear(5, 4), nn.Linear(5, 4)
                self.queue = F.normalize(torch.randn(16, 4), dim=1)

            def forward(self, x):
                q, k = F.normalize(self.q(x), dim=1), F.normalize(self.k(x), dim=1)
                logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.t()], 1)
                self.queue = torch.cat([k, self.queue])[:16]  # <- freed-graph
                return F.cross_entropy(logits / 0.2, torch.zeros(len(x), dtype=torch.long))

        model = Contrast()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            loss = model(torch.randn(4, 5))
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "prototypes in a dictionary": """
        net = nn.Linear(5, 4)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        protos = {c: torch.zeros(4) for c in range(2)}
        for _ in range(3):
            z = net(torch.randn(6, 5))
            loss = sum((z - protos[c]).pow(2).mean() for c in protos)
            opt.zero_grad()
            loss.backward()
            opt.step()
            for c in protos:
                protos[c] = 0.9 * protos[c] + 0.1 * z[c::2].mean(0)  # <- freed-graph
    """,
    "a discriminator that was not given a detached fake": """
        G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        bce, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(8, 1), torch.zeros(8, 1)
        for _ in range(2):
            real, fake = torch.randn(8, 3), G(torch.randn(8, 2))
            opt_d.zero_grad()
            loss_real = bce(D(real), ones)
            loss_fake = bce(D(fake), zeros)  # <- freed-graph
            (loss_real + loss_fake).backward()
            opt_d.step()
            opt_g.zero_grad()
            loss_g = bce(D(fake), ones)
            loss_g.backward()
            opt_g.step()
    """,
    "DCGAN, each loss backward by itself": """
        netG, netD = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        optimizerG, optimizerD = torch.optim.Adam(netG.parameters()), torch.optim.Adam(netD.parameters())
        criterion = nn.BCEWithLogitsLoss()
        for _ in range(2):
            netD.zero_grad()
            output = netD(torch.randn(8, 3)).view(-1)
            errD_real = criterion(output, torch.ones(8))
            errD_real.backward()
            fake = netG(torch.randn(8, 2))
            output = netD(fake).view(-1)  # <- freed-graph
            errD_fake = criterion(output, torch.zeros(8))
            errD_fake.backward()
            optimizerD.step()
            netG.zero_grad()
            output = netD(fake).view(-1)
            errG = criterion(output, torch.ones(8))
            errG.backward()
            optimizerG.step()
    """,
    "a generator first, then a discriminator on the same fake": """
        class Gan:
            def __init__(self):
                self.g, self.d = nn.Linear(2, 3), nn.Linear(3, 1)
                self.opt_g = torch.optim.Adam(self.g.parameters())
                self.opt_d = torch.optim.Adam(self.d.parameters())

            def step(self, real):
                fake = torch.tanh(self.g(torch.randn(8, 2)))
                g_loss = F.softplus(-self.d(fake)).mean()
                self.opt_g.zero_grad()
                g_loss.backward()
                self.opt_g.step()
                d_real, d_fake = self.d(real), self.d(fake)  # <- freed-graph
                d_loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
                self.opt_d.zero_grad()
                d_loss.backward()
                self.opt_d.step()

        gan = Gan()
        for _ in range(2):
            gan.step(torch.randn(8, 3))
    """,
    "several critic steps on one fake": """
        G, D = nn.Sequential(nn.Linear(2, 3), nn.Tanh()), nn.Linear(3, 1)
        opt_g, opt_d = torch.optim.RMSprop(G.parameters()), torch.optim.RMSprop(D.parameters())
        for _ in range(2):
            fake = G(torch.randn(8, 2))
            for _ in range(5):
                d_loss = D(fake).mean() - D(torch.randn(8, 3)).mean()  # <- freed-graph
                opt_d.zero_grad()
                d_loss.backward()
                opt_d.step()
            g_loss = -D(G(torch.randn(8, 2))).mean()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
    """,
    "an advantage that trains the critic twice": """
        actor, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        actor_opt, critic_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
        for _ in range(2):
            s, returns = torch.randn(16, 4), torch.randn(16)
            advantage = returns - critic(s).squeeze(1)
            logp = torch.log_softmax(actor(s), 1)[:, 0]
            actor_loss = -(logp * advantage).mean()  # <- freed-graph
            critic_loss = advantage.pow(2).mean()
            actor_opt.zero_grad()
            actor_loss.backward()
            actor_opt.step()
            critic_opt.zero_grad()
            critic_loss.backward()
            critic_opt.step()
    """,
    "two tasks on one trunk": """
        trunk, a, b = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1), nn.Linear(8, 3)
        opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
        for _ in range(2):
            x = torch.randn(8, 4)
            f = trunk(x)
            loss_a = F.mse_loss(a(f).squeeze(1), x.sum(1))
            loss_b = F.cross_entropy(b(f), x[:, :3].argmax(1))
            opt.zero_grad()
            loss_a.backward()  # <- freed-graph
            loss_b.backward()
            opt.step()
    """,
    "a dictionary of losses, backward in a loop": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk, self.heads = nn.Linear(4, 8), nn.ModuleDict({"x": nn.Linear(8, 1), "y": nn.Linear(8, 1)})

            def forward(self, x, targets):
                f = torch.tanh(self.trunk(x))
                return {name: F.mse_loss(head(f), targets[name]) for name, head in self.heads.items()}

        model = Model()
        opt = torch.optim.Adam(model.parameters())
        losses = model(torch.randn(8, 4), {"x": torch.randn(8, 1), "y": torch.randn(8, 1)})
        opt.zero_grad()
        for name, loss in losses.items():
            loss.backward()  # <- freed-graph
        opt.step()
    """,
    "reconstruction and KL by themselves": """
        enc, dec = nn.Linear(4, 4), nn.Linear(2, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        x = torch.randn(8, 4)
        mu, logvar = enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        recon = F.mse_loss(dec(z), x)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
        opt.zero_grad()
        recon.backward()  # <- freed-graph
        kl.backward()
        opt.step()
    """,
    "autograd.grad, then backward": """
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        x = torch.randn(8, 4, requires_grad=True)
        loss = model(x).pow(2).mean()
        g = torch.autograd.grad(loss, x)[0]  # <- freed-graph
        print(g.norm())
        loss.backward()
    """,
    "a jacobian row by row": """
        def jacobian(f, x):
            y = f(x)
            rows = []
            for i in range(len(y)):
                rows.append(torch.autograd.grad(y[i], x)[0])  # <- freed-graph
            return torch.stack(rows)

        w = torch.randn(3, 3)
        jacobian(lambda x: torch.tanh(w @ x), torch.randn(3, requires_grad=True))
    """,
    "a jacobian by backward": """
        x = torch.randn(3, requires_grad=True)
        y = torch.sin(torch.randn(3, 3) @ x)
        rows = []
        for i in range(3):
            x.grad = None
            y[i].backward()  # <- freed-graph
            rows.append(x.grad.clone())
    """,
    "a Hessian in a comprehension": """
        w = torch.randn(3, requires_grad=True)
        loss = (w.sin() * w.flip(0)).sum()
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        hessian = torch.stack([torch.autograd.grad(gi, w)[0] for gi in g])  # <- freed-graph
    """,
    "products with the Hessian": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        params = list(model.parameters())
        loss = model(torch.randn(8, 3)).pow(2).mean()
        grads = torch.autograd.grad(loss, params, create_graph=True)
        v = [torch.randn_like(p) for p in params]
        for _ in range(3):
            dot = sum((g * w).sum() for g, w in zip(grads, v))
            v = torch.autograd.grad(dot, params)  # <- freed-graph
    """,
    "losses of one batch, one after the other": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        x, y = torch.randn(6, 3), torch.randn(6, 1)
        losses = (model(x) - y).pow(2).squeeze(1)
        norms = []
        for loss in losses:
            model.zero_grad()
            loss.backward()  # <- freed-graph
            norms.append(sum(p.grad.norm() for p in model.parameters()))
    """,
    "old log-probabilities with a graph, over the epochs of PPO": """
        policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        opt = torch.optim.Adam(policy.parameters())

        def update(states, actions, advantages):
            old = torch.log_softmax(policy(states), 1).gather(1, actions)  # <- freed-graph
            for _ in range(4):
                new = torch.log_softmax(policy(states), 1).gather(1, actions)
                ratio = (new - old).exp()
                loss = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()

        update(torch.randn(10, 4), torch.randint(0, 2, (10, 1)), torch.randn(10, 1))
    """,
    "log-probabilities kept from episode to episode": """
        class Reinforce:
            def __init__(self):
                self.policy = nn.Linear(3, 2)
                self.opt = torch.optim.Adam(self.policy.parameters())
                self.log_probs, self.rewards = [], []

            def act(self, s):
                dist = torch.distributions.Categorical(logits=self.policy(s))
                a = dist.sample()
                self.log_probs.append(dist.log_prob(a))
                self.rewards.append(float(a))

            def learn(self):
                r = torch.tensor(self.rewards)
                loss = -(torch.stack(self.log_probs) * (r - r.mean())).sum()  # <- freed-graph
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()

        agent = Reinforce()
        for episode in range(3):
            for _ in range(5):
                agent.act(torch.randn(3))
            agent.learn()
    """,
    "backward at each step of a decoder": """
        encoder, decoder, out = nn.GRU(4, 6), nn.GRUCell(4, 6), nn.Linear(6, 4)
        opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *out.parameters()])
        source, target = torch.randn(5, 2, 4), torch.randn(5, 2, 4)
        _, h = encoder(source)
        h, token = h[0], torch.zeros(2, 4)
        opt.zero_grad()
        for t in range(5):
            h = decoder(token, h)  # <- freed-graph
            loss = F.mse_loss(out(h), target[t])
            loss.backward()
            token = target[t]
        opt.step()
    """,
    "the inner loop of a meta-learner goes on from one task to the next": """
        def adapt(w, x, y, steps=2):
            for _ in range(steps):
                loss = F.mse_loss(x @ w, y)
                (g,) = torch.autograd.grad(loss, w, create_graph=True)
                w = w - 0.1 * g
            return w

        w0 = torch.randn(3, 1, requires_grad=True)
        opt = torch.optim.SGD([w0], lr=0.1)
        w = w0
        for task in range(3):
            x, y = torch.randn(8, 3), torch.randn(8, 1)
            w = adapt(w, x, y)  # <- freed-graph
            loss = F.mse_loss(x @ w, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a cycle loss that reuses what the discriminator's call freed": """
        G, Fb, D = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 1)
        opt_g = torch.optim.Adam([*G.parameters(), *Fb.parameters()])
        opt_d = torch.optim.Adam(D.parameters())
        for _ in range(2):
            a, b = torch.randn(8, 3), torch.randn(8, 3)
            fake_b = torch.tanh(G(a))
            rec_a = torch.tanh(Fb(fake_b))
            d_loss = (D(b) - 1).pow(2).mean() + D(fake_b).pow(2).mean()  # <- freed-graph
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()
            g_loss = (D(fake_b) - 1).pow(2).mean() + (rec_a - a).abs().mean()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
    """,
    "a generator of chunks that carries its own state": """
        cell = nn.GRUCell(2, 4)

        def states(n):
            h = torch.zeros(1, 4)
            for _ in range(n):
                h = cell(torch.randn(1, 2), h)  # <- freed-graph
                yield h

        opt = torch.optim.SGD(cell.parameters(), lr=0.1)
        for h in states(3):
            opt.zero_grad()
            h.pow(2).mean().backward()
            opt.step()
    """,
    "a target network's value with a graph": """
        q, target = nn.Linear(4, 2), nn.Linear(4, 2)
        opt = torch.optim.Adam(q.parameters())
        s, s2, r = torch.randn(16, 4), torch.randn(16, 4), torch.randn(16)
        goal = r + 0.9 * torch.tanh(q(s2)).max(1).values  # <- freed-graph
        for _ in range(3):
            loss = F.mse_loss(q(s)[:, 0], goal)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "style features of an image that is itself optimised": """
        net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU()).requires_grad_(False)
        image = torch.rand(1, 1, 8, 8, requires_grad=True)
        opt = torch.optim.Adam([image])
        content = net(image)  # <- freed-graph
        for _ in range(3):
            loss = F.mse_loss(net(image + 0.1), content)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "an exponential mean of the loss scales the loss": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        scale = None
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            scale = loss if scale is None else 0.9 * scale + 0.1 * loss  # <- freed-graph
            opt.zero_grad()
            (loss / scale).backward()
            opt.step()
    """,
    "GAN: generator first, undetached in the discriminator's losses": """
        generator = nn.Linear(2, 3)
        discriminator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid())
        adversarial_loss = nn.BCELoss()
        optimizer_G = torch.optim.Adam(generator.parameters())
        optimizer_D = torch.optim.Adam(discriminator.parameters())
        valid, fake = torch.ones(8, 1), torch.zeros(8, 1)
        for i in range(2):
            optimizer_G.zero_grad()
            gen_imgs = torch.tanh(generator(torch.randn(8, 2)))
            g_loss = adversarial_loss(discriminator(gen_imgs), valid)
            g_loss.backward()
            optimizer_G.step()
            optimizer_D.zero_grad()
            real_loss = adversarial_loss(discriminator(torch.randn(8, 3)), valid)
            fake_loss = adversarial_loss(discriminator(gen_imgs), fake)  # <- freed-graph
            d_loss = (real_loss + fake_loss) / 2
            d_loss.backward()
            optimizer_D.step()
    """,
    "both losses of a GAN computed up front": """
        G, D = nn.Linear(2, 3), nn.Linear(3, 1)
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())

        def losses(real):
            fake = torch.tanh(G(torch.randn(8, 2)))
            g_loss = F.softplus(-D(fake)).mean()
            d_loss = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()  # <- freed-graph
            return g_loss, d_loss

        for _ in range(2):
            g_loss, d_loss = losses(torch.randn(8, 3))
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()
    """,
    "a GAN of methods that share self.fake": """
        class Pix2Pix:
            def __init__(self):
                self.netG, self.netD = nn.Linear(3, 3), nn.Linear(6, 1)
                self.opt_G = torch.optim.Adam(self.netG.parameters())
                self.opt_D = torch.optim.Adam(self.netD.parameters())

            def forward(self, a, b):
                self.real_A, self.real_B = a, b
                self.fake_B = torch.tanh(self.netG(a))

            def backward_D(self):
                pred_fake = self.netD(torch.cat([self.real_A, self.fake_B], 1))  # <- freed-graph
                pred_real = self.netD(torch.cat([self.real_A, self.real_B], 1))
                self.loss_D = 0.5 * (pred_fake.pow(2).mean() + (pred_real - 1).pow(2).mean())
                self.loss_D.backward()

            def backward_G(self):
                pred = self.netD(torch.cat([self.real_A, self.fake_B], 1))
                self.loss_G = (pred - 1).pow(2).mean() + F.l1_loss(self.fake_B, self.real_B)
                self.loss_G.backward()

            def optimize(self, a, b):
                self.forward(a, b)
                self.opt_D.zero_grad()
                self.backward_D()
                self.opt_D.step()
                self.opt_G.zero_grad()
                self.backward_G()
                self.opt_G.step()

        model = Pix2Pix()
        for _ in range(2):
            model.optimize(torch.randn(8, 3), torch.randn(8, 3))
    """,
    "VAE-GAN with three optimizers, nothing retained": """
        enc, dec, dis = nn.Linear(4, 2), nn.Linear(2, 4), nn.Linear(4, 1)
        opts = [torch.optim.Adam(m.parameters()) for m in (enc, dec, dis)]
        x = torch.randn(8, 4)
        z = torch.tanh(enc(x))
        rec = torch.tanh(dec(z))
        loss_rec = F.mse_loss(rec, x)
        loss_enc = z.pow(2).mean() + loss_rec
        loss_dec = loss_rec + F.softplus(-dis(rec)).mean()
        opts[0].zero_grad()
        loss_enc.backward()  # <- freed-graph
        opts[0].step()
        opts[1].zero_grad()
        loss_dec.backward()
        opts[1].step()
    """,
    "an entropy temperature that trains the actor": """
        actor, log_alpha = nn.Linear(4, 2), torch.zeros(1, requires_grad=True)
        actor_opt, alpha_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam([log_alpha])
        for _ in range(2):
            log_pi = torch.log_softmax(actor(torch.randn(8, 4)), 1)[:, 0]
            actor_loss = (log_alpha.exp().detach() * log_pi).mean()
            actor_opt.zero_grad()
            actor_loss.backward()
            actor_opt.step()
            alpha_loss = -(log_alpha * (log_pi + 1.0)).mean()  # <- freed-graph
            alpha_opt.zero_grad()
            alpha_loss.backward()
            alpha_opt.step()
    """,
    "recurrent state carried from one rollout to the next": """
        class ActorCritic(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTMCell(3, 8)
                self.actor, self.critic = nn.Linear(8, 2), nn.Linear(8, 1)

            def forward(self, inputs):
                x, (hx, cx) = inputs
                hx, cx = self.lstm(x, (hx, cx))
                return self.critic(hx), self.actor(hx), (hx, cx)

        model = ActorCritic()
        optimizer = torch.optim.Adam(model.parameters())
        hx, cx = torch.zeros(1, 8), torch.zeros(1, 8)
        for episode in range(2):
            values, log_probs = [], []
            for step in range(4):
                value, logit, (hx, cx) = model((torch.randn(1, 3), (hx, cx)))  # <- freed-graph
                values.append(value)
                log_probs.append(logit.log_softmax(1)[0, 0])
            loss = torch.cat(values).pow(2).mean() - torch.stack(log_probs).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    "truncated windows without a cut": """
        cell, head = nn.GRUCell(3, 6), nn.Linear(6, 1)
        opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])

        def train(windows):
            h = torch.zeros(2, 6)
            for window in windows:
                loss = 0
                for x in window:
                    h = cell(x, h)  # <- freed-graph
                    loss = loss + head(h).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()

        train(torch.randn(3, 4, 2, 3))
    """,
    "a list of states, one for each layer": """
        cells = nn.ModuleList(nn.GRUCell(4, 4) for _ in range(2))
        opt = torch.optim.SGD(cells.parameters(), lr=0.1)
        hidden = [torch.zeros(2, 4) for _ in cells]
        for t in range(3):
            x = torch.randn(2, 4)
            for i, cell in enumerate(cells):
                hidden[i] = cell(x, hidden[i])  # <- freed-graph
                x = hidden[i]
            opt.zero_grad()
            x.pow(2).mean().backward()
            opt.step()
    """,
    "state in a variable of an outer function": """
        def make_learner():
            cell = nn.RNNCell(3, 5)
            opt = torch.optim.SGD(cell.parameters(), lr=0.1)
            h = torch.zeros(1, 5)

            def learn(x):
                nonlocal h
                h = cell(x, h)  # <- freed-graph
                opt.zero_grad()
                h.abs().mean().backward()
                opt.step()

            return learn

        learn = make_learner()
        for _ in range(3):
            learn(torch.randn(1, 3))
    """,
    "an external memory that is read and written": """
        class Memory(nn.Module):
            def __init__(self):
                super().__init__()
                self.key, self.value = nn.Linear(3, 4), nn.Linear(3, 4)
                self.cells = torch.zeros(6, 4)

            def read(self, x):
                return torch.softmax(self.key(x) @ self.cells.t(), -1) @ self.cells

            def write(self, x):
                where = torch.softmax(self.key(x) @ self.cells.t(), -1)
                self.cells = self.cells + where.t() @ self.value(x)  # <- freed-graph

        memory, out = Memory(), nn.Linear(4, 1)
        opt = torch.optim.Adam([*memory.parameters(), *out.parameters()])
        for _ in range(3):
            x = torch.randn(5, 3)
            memory.write(x)
            loss = (out(memory.read(x)) - x.sum(1, keepdim=True)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a module's state that the caller resets only once": """
        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.lstm, self.tag = nn.Embedding(9, 4), nn.LSTM(4, 6), nn.Linear(6, 3)
                self.hidden = self.init_hidden()

            def init_hidden(self):
                return torch.zeros(1, 1, 6), torch.zeros(1, 1, 6)

            def forward(self, sentence):
                embeds = self.embed(sentence)
                lstm_out, self.hidden = self.lstm(embeds.view(len(sentence), 1, -1), self.hidden)  # <- freed-graph
                return F.log_softmax(self.tag(lstm_out.view(len(sentence), -1)), dim=1)

        model = Tagger()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.hidden = model.init_hidden()
        for epoch in range(2):
            model.zero_grad()
            loss = F.nll_loss(model(torch.randint(0, 9, (5,))), torch.randint(0, 3, (5,)))
            loss.backward()
            optimizer.step()
    """,
    "statistics of a layer that normalises": """
        class Norm(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.mean, self.scale = torch.zeros(d), nn.Parameter(torch.ones(d))

            def forward(self, x):
                self.mean = 0.9 * self.mean + 0.1 * x.mean(0)  # <- freed-graph
                return (x - self.mean) * self.scale

        net = nn.Sequential(nn.Linear(3, 4), Norm(4), nn.Linear(4, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            loss = net(torch.randn(8, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a running mean, updated in place": """
        net = nn.Linear(3, 4)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        center = torch.zeros(4)
        for _ in range(3):
            z = net(torch.randn(10, 3))
            loss = torch.cosh(z - center).mean()
            center.mul_(0.9).add_(0.1 * z.mean(0))  # <- freed-graph
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "embeddings of a graph, computed once an epoch": """
        emb, lin = nn.Embedding(10, 4), nn.Linear(4, 4)
        opt = torch.optim.Adam([*emb.parameters(), *lin.parameters()])
        for epoch in range(2):
            nodes = torch.relu(lin(emb.weight))  # <- freed-graph
            for _ in range(3):
                i, j = torch.randint(0, 10, (2, 8))
                score = (nodes[i] * nodes[j]).sum(1)
                loss = F.binary_cross_entropy_with_logits(score, torch.ones(8))
                opt.zero_grad()
                loss.backward()
                opt.step()
    """,
    "text features computed before the loop": """
        class Clip(nn.Module):
            def __init__(self):
                super().__init__()
                self.text, self.image = nn.Embedding(5, 4), nn.Linear(6, 4)

            def encode_text(self, ids):
                return F.normalize(self.text(ids), dim=-1)

            def encode_image(self, x):
                return F.normalize(self.image(x), dim=-1)

        def finetune(model, loader):
            opt = torch.optim.AdamW(model.parameters())
            text_features = model.encode_text(torch.arange(5))  # <- freed-graph
            for images, labels in loader:
                logits = model.encode_image(images) @ text_features.t()
                loss = F.cross_entropy(logits, labels)
                opt.zero_grad()
                loss.backward()
                opt.step()

        finetune(Clip(), [(torch.randn(8, 6), torch.randint(0, 5, (8,))) for _ in range(3)])
    """,
    "weights made once by another network": """
        hyper = nn.Linear(2, 12)
        opt = torch.optim.Adam(hyper.parameters())
        weight = torch.tanh(hyper(torch.randn(2))).view(4, 3)  # <- freed-graph
        for _ in range(3):
            loss = F.linear(torch.randn(8, 3), weight).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "the gradient of the score without a graph, then the loss": """
        D = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1))
        opt = torch.optim.Adam(D.parameters())
        for _ in range(2):
            real = torch.randn(8, 3, requires_grad=True)
            score = D(real)
            (g,) = torch.autograd.grad(score.sum(), real)  # <- freed-graph
            loss = F.softplus(-score).mean() + g.pow(2).sum(1).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "alternating steps on one loss": """
        a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        opt_a, opt_b = torch.optim.SGD([a], lr=0.1), torch.optim.SGD([b], lr=0.1)
        loss = (a * b).sum().exp()
        opt_a.zero_grad()
        loss.backward()  # <- freed-graph
        opt_a.step()
        opt_b.zero_grad()
        loss.backward()
        opt_b.step()
    """,
    "three losses, of which two are retained": """
        trunk = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
        heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
        opt = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.1)
        f = trunk(torch.randn(8, 3))
        first, second, third = (head(f).pow(2).mean() for head in heads)
        opt.zero_grad()
        first.backward(retain_graph=True)
        second.backward()  # <- freed-graph
        third.backward()
        opt.step()
    """,
    "micro-batches of one output": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 3), torch.randn(8, 1)
        opt.zero_grad()
        out = model(x)  # <- freed-graph
        for i in range(4):
            rows = slice(2 * i, 2 * i + 2)
            loss = F.mse_loss(out[rows], y[rows]) / 4
            loss.backward()
        opt.step()
    """,
    "a loss of the last turn": """
        model = nn.Linear(3, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        last = torch.zeros(())
        for _ in range(3):
            now = model(torch.randn(8, 3)).logsumexp(1).mean()
            loss = now + 0.5 * last.exp()  # <- freed-graph
            opt.zero_grad()
            loss.backward()
            opt.step()
            last = now
    """,
    "states kept in a window": """
        from collections import deque

        cell, mix = nn.GRUCell(3, 4), nn.Linear(4, 1)
        opt = torch.optim.Adam([*cell.parameters(), *mix.parameters()])
        window = deque(maxlen=3)
        h = torch.zeros(2, 4)
        for t in range(4):
            h = cell(torch.randn(2, 3), h.detach())
            window.append(h)
            context = torch.stack(list(window)).mean(0)  # <- freed-graph
            loss = mix(context).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "states that come back from a replay buffer": """
        class Buffer:
            def __init__(self):
                self.items = []

            def push(self, *item):
                self.items.append(item)

            def sample(self, n):
                return random.sample(self.items, n)

        net, head = nn.LSTMCell(3, 4), nn.Linear(4, 2)
        opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
        buffer, state = Buffer(), (torch.zeros(1, 4), torch.zeros(1, 4))
        for step in range(6):
            obs = torch.randn(1, 3)
            before, state = state, net(obs, state)
            buffer.push(obs, before, torch.randn(1, 2))
            if step > 1:
                loss = 0
                for obs, (h, c), target in buffer.sample(2):
                    h, _ = net(obs, (h, c))  # <- freed-graph
                    loss = loss + F.mse_loss(head(h), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
    """,
    "an output that keeps the state in an object": """
        from types import SimpleNamespace

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn, self.head = nn.RNNCell(3, 4), nn.Linear(4, 1)

            def forward(self, x, state):
                state = self.rnn(x, state)
                return SimpleNamespace(y=self.head(state), state=state)

        class Trainer:
            def __init__(self):
                self.model = Model()
                self.opt = torch.optim.Adam(self.model.parameters())
                self.state = torch.zeros(2, 4)

            def step(self, x):
                out = self.model(x, self.state)
                loss = out.y.pow(2).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.state = out.state  # <- freed-graph

        trainer = Trainer()
        for _ in range(3):
            trainer.step(torch.randn(2, 3))
    """,
    "style targets that keep their graph": """
        def gram(x):
            f = x.flatten(2)
            return f @ f.transpose(1, 2) / f.numel()

        class StyleLoss(nn.Module):
            def __init__(self, feature):
                super().__init__()
                self.target = gram(feature)  # <- freed-graph

            def forward(self, x):
                self.loss = F.mse_loss(gram(x), self.target)
                return x

        def build(cnn, style):
            style_loss = StyleLoss(cnn(style))
            return nn.Sequential(cnn, style_loss), style_loss

        cnn = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU())
        image = torch.rand(1, 1, 8, 8, requires_grad=True)
        model, style_loss = build(cnn, torch.rand(1, 1, 8, 8))
        opt = torch.optim.Adam([image])

        def step():
            opt.zero_grad()
            model(image)
            style_loss.loss.backward()
            opt.step()

        for _ in range(3):
            step()
    """,
    "content targets that keep their graph": """
        class ContentLoss(nn.Module):
            def __init__(self, target):
                super().__init__()
                self.target = target

            def forward(self, x):
                self.loss = F.mse_loss(x, self.target)
                return x

        def build(cnn, content):
            target = cnn(content)  # <- freed-graph
            content_loss = ContentLoss(target)
            return nn.Sequential(cnn, content_loss), content_loss

        cnn = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU())
        image = torch.rand(1, 1, 8, 8, requires_grad=True)
        model, content_loss = build(cnn, torch.rand(1, 1, 8, 8))
        opt = torch.optim.Adam([image])
        for _ in range(3):
            opt.zero_grad()
            model(image)
            content_loss.loss.backward()
            opt.step()
    """,
    "a value that becomes the next target": """
        critic = nn.Linear(3, 1)
        opt = torch.optim.SGD(critic.parameters(), lr=0.1)
        value = critic(torch.randn(3)).exp()
        for t in range(3):
            next_value = critic(torch.randn(3)).exp()
            delta = 1.0 + 0.9 * next_value - value  # <- freed-graph
            opt.zero_grad()
            delta.pow(2).sum().backward()
            opt.step()
            value = next_value
    """,
    "a bank of features by class": """
        class Bank(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc, self.bank = nn.Linear(5, 4), {}

            def forward(self, x, label):
                z = F.normalize(self.enc(x), dim=1)
                others = [f for c, f in self.bank.items() if c != label]
                loss = sum(((z @ f.t()).exp().mean() for f in others), z.pow(2).sum())
                self.bank[label] = z  # <- freed-graph
                return loss

        model = Bank()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4):
            loss = model(torch.randn(4, 5), step % 2)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a buffer that is written in place": """
        class Whiten(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(5, 4)
                self.register_buffer("mean", torch.zeros(4))

            def forward(self, x):
                z = self.lin(x)
                out = z - self.mean.clone()
                self.mean.copy_(0.9 * self.mean + 0.1 * z.mean(0))  # <- freed-graph
                return out

        model = Whiten()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = model(torch.randn(4, 5)).cosh().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a cached property": """
        from functools import cached_property

        class Rotation(nn.Module):
            def __init__(self):
                super().__init__()
                self.raw = nn.Parameter(torch.randn(3, 3))

            @cached_property
            def basis(self):
                return torch.matrix_exp(self.raw - self.raw.t())  # <- freed-graph

            def forward(self, x):
                return x @ self.basis

        model = Rotation()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = model(torch.randn(4, 3)).pow(2)[:, 0].mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "chunks of one output": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        opt.zero_grad()
        for part in model(torch.randn(8, 3)).chunk(4):
            loss = part.pow(2).mean()
            loss.backward()  # <- freed-graph
        opt.step()
    """,
    "one anchor for many negatives": """
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
        opt = torch.optim.SGD(net.parameters(), lr=0.1)

        def train(a, positives, negatives):
            anchor = net(a)  # <- freed-graph
            opt.zero_grad()
            for p, n in zip(positives, negatives):
                loss = F.triplet_margin_loss(anchor, net(p), net(n), margin=5.0)
                loss.backward()
            opt.step()

        train(torch.randn(2, 3), torch.randn(3, 2, 3), torch.randn(3, 2, 3))
    """,
    "a boosted prediction": """
        learners = [nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)) for _ in range(2)]
        x, y = torch.randn(16, 2), torch.randn(16, 1)
        total = torch.zeros(16, 1)
        for learner in learners:
            opt = torch.optim.SGD(learner.parameters(), lr=0.1)
            for _ in range(3):
                loss = F.mse_loss(learner(x), y - total)  # <- freed-graph
                opt.zero_grad()
                loss.backward()
                opt.step()
            total = total + 0.5 * learner(x)
    """,
    "a simulation with a loss at each step": """
        force = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        opt = torch.optim.Adam(force.parameters())
        x = torch.zeros(4, 2)
        for step in range(3):
            x = x + 0.1 * force(x)  # <- freed-graph
            loss = (x - 1).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "samples with a graph in a data set": """
        from torch.utils.data import DataLoader, Dataset

        class Augmented(Dataset):
            def __init__(self, aug, n):
                self.x = torch.tanh(aug(torch.randn(n, 3)))  # <- freed-graph

            def __len__(self):
                return len(self.x)

            def __getitem__(self, i):
                return self.x[i]

        aug, net = nn.Linear(3, 3), nn.Linear(3, 1)
        opt = torch.optim.Adam([*aug.parameters(), *net.parameters()])
        for batch in DataLoader(Augmented(aug, 12), batch_size=4):
            loss = net(batch).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a cache that a module fills at its first call": """
        class Bias(nn.Module):
            def __init__(self):
                super().__init__()
                self.mlp, self.cache = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 3)), {}
            def forward(self, n):
                if n not in self.cache:
                    self.cache[n] = self.mlp(torch.arange(float(n))[:, None])  # <- freed-graph
                return self.cache[n]
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin, self.bias = nn.Linear(3, 3), Bias()
            def forward(self, x):
                return self.lin(x) + self.bias(x.shape[1])
        net = Net()
        opt = torch.optim.Adam(net.parameters())
        for _ in range(3):
            loss = net(torch.randn(2, 5, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a buffer of another object, stored by its own method": """
        class Queue(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("bank", torch.randn(8, 3))
            def push(self, keys):
                self.bank = torch.cat([keys, self.bank])[:8]  # <- freed-graph
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc, self.queue = nn.Linear(4, 3), Queue()
            def forward(self, x):
                q = torch.tanh(self.enc(x))
                loss = (q @ self.queue.bank.t()).logsumexp(1).mean()
                self.queue.push(q)
                return loss
        net = Net()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(3):
            loss = net(torch.randn(4, 4))
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "one of several losses, asked for after their sum": """
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        opt = torch.optim.SGD(net.parameters(), 0.1)
        def norm_of(losses):
            return torch.autograd.grad(losses[0], net[2].weight)[0].norm()
        for _ in range(2):
            losses = net(torch.randn(5, 3)).pow(2).mean(0)
            opt.zero_grad()
            losses.sum().backward()  # <- freed-graph
            norm_of(losses)
            opt.step()
    """,
    "one of two values that are handed over": """
        cell, out = nn.GRUCell(1, 4), nn.Linear(4, 1)
        opt = torch.optim.SGD([*cell.parameters(), *out.parameters()], 0.01)
        def step(x, h):
            h = cell(x, h)
            return out(h), h
        h, x = torch.zeros(1, 4), torch.zeros(1, 1)
        for target in torch.randn(5, 1, 1):
            y, new = step(x, h)
            loss = (y - target).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            h = new.detach()
            x = target if target > 9 else y  # <- freed-graph
    """,
    "values of a rollout that are stacked for several updates": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.value = nn.Linear(4, 8), nn.Linear(8, 1)
            def forward(self, s):
                return self.value(torch.relu(self.body(s))).squeeze(-1)
        net = Net()
        opt = torch.optim.Adam(net.parameters())
        def rollout():
            rows = []
            for _ in range(4):
                v = net(torch.randn(4))
                rows.append((v, 1.0))  # <- freed-graph
            return rows
        def update(rows):
            value = torch.stack([v for v, _ in rows])
            for _ in range(2):
                loss = (value - 1).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
        update(rollout())
    """,
}

GOOD = {
    "truncated backpropagation through time": """
        lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
        opt = torch.optim.Adam([*lstm.parameters(), *head.parameters()])
        state = None
        for _ in range(3):
            out, state = lstm(torch.randn(5, 2, 3), state)
            loss = head(out).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            state = tuple(s.detach() for s in state)
    """,
    "backpropagation over two chunks, by retaining": """
        cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
        opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
        h = torch.zeros(2, 4)
        total = 0
        for t in range(6):
            h = cell(torch.randn(2, 3), h)
            total = total + head(h).pow(2).mean()
            if t % 2:
                opt.zero_grad()
                total.backward()
                opt.step()
                h, total = h.detach(), 0
    """,
    "a view of the weights, made once": """
        w = torch.randn(4, 3, requires_grad=True)
        wt, row = w.t(), w[0]
        for _ in range(3):
            loss = (torch.randn(5, 4) @ w).mean() + (torch.randn(5, 3) @ wt).pow(2).mean() + row.sum()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad.zero_()
    """,
    "two backward calls through sums alone": """
        a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        s = a + b
        s.sum().backward()
        s.sum().backward()
    """,
    "a gan that detaches": """
        G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(3):
            fake = G(torch.randn(8, 2))
            d_loss = F.softplus(-D(torch.randn(8, 3))).mean() + F.softplus(D(fake.detach())).mean()
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()
            g_loss = F.softplus(-D(fake)).mean()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
    """,
    "WGAN with a gradient penalty": """
        G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for step in range(4):
            real = torch.randn(8, 3)
            with torch.no_grad():
                fake = G(torch.randn(8, 2))
            eps = torch.rand(8, 1)
            mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
            (g,) = torch.autograd.grad(D(mix).sum(), mix, create_graph=True)
            d_loss = D(fake).mean() - D(real).mean() + 10 * (g.norm(dim=1) - 1).pow(2).mean()
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()
            if step % 2:
                g_loss = -D(G(torch.randn(8, 2))).mean()
                opt_g.zero_grad()
                g_loss.backward()
                opt_g.step()
    """,
    "MAML": """
        w0 = torch.randn(3, 1, requires_grad=True)
        opt = torch.optim.SGD([w0], lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            for task in range(2):
                x, y = torch.randn(8, 3), torch.randn(8, 1)
                w = w0
                for _ in range(2):
                    (g,) = torch.autograd.grad(F.mse_loss(x @ w, y), w, create_graph=True)
                    w = w - 0.1 * g
                F.mse_loss(x @ w, y).backward()
            opt.step()
    """,
    "a Hessian row by row": """
        def hessian(f, x):
            (g,) = torch.autograd.grad(f(x), x, create_graph=True)
            return torch.stack([torch.autograd.grad(gi, x, retain_graph=True)[0] for gi in g])

        for _ in range(2):
            hessian(lambda x: (x.sin() * x.flip(0)).sum(), torch.randn(3, requires_grad=True))
    """,
    "LBFGS": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        opt = torch.optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe")
        x, y = torch.randn(20, 3), torch.randn(20, 1)

        def closure():
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss

        for _ in range(3):
            opt.step(closure)
    """,
    "several losses summed": """
        trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 3)
        opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
        for _ in range(3):
            f = torch.relu(trunk(torch.randn(8, 4)))
            opt.zero_grad()
            (a(f).pow(2).mean() + b(f).pow(2).mean()).backward()
            opt.step()
    """,
    "an error that the script expects": """
        x = torch.randn(3, requires_grad=True)
        y = x.exp().sum()
        y.backward(retain_graph=True)
        x.grad = None
        y.backward()
    """,
    "actor and critic, with a detached advantage": """
        actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
        actor_opt, critic_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
        for _ in range(3):
            s = torch.randn(16, 4)
            advantage = torch.randn(16) - critic(s).squeeze(1)
            actor_loss = -(torch.log_softmax(actor(s), 1)[:, 0] * advantage.detach()).mean()
            for opt, loss in ((actor_opt, actor_loss), (critic_opt, advantage.pow(2).mean())):
                opt.zero_grad()
                loss.backward()
                opt.step()
    """,
    "PPO": """
        policy = nn.Linear(4, 2)
        opt = torch.optim.Adam(policy.parameters())
        s, a, adv = torch.randn(10, 4), torch.randint(0, 2, (10, 1)), torch.randn(10, 1)
        with torch.no_grad():
            old = torch.log_softmax(policy(s), 1).gather(1, a)
        for _ in range(3):
            ratio = (torch.log_softmax(policy(s), 1).gather(1, a) - old).exp()
            opt.zero_grad()
            (-torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()).backward()
            opt.step()
    """,
    "checkpointed blocks": """
        from torch.utils.checkpoint import checkpoint

        blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(3))
        opt = torch.optim.SGD(blocks.parameters(), lr=0.1)
        for reentrant in (True, False):
            x = torch.randn(8, 4, requires_grad=True)
            for block in blocks:
                x = checkpoint(block, x, use_reentrant=reentrant)
            opt.zero_grad()
            x.pow(2).mean().backward()
            opt.step()
    """,
    "gradients handed on by hand between two halves": """
        lower, upper = nn.Linear(4, 8), nn.Linear(8, 1)
        opt = torch.optim.SGD([*lower.parameters(), *upper.parameters()], lr=0.1)
        for _ in range(3):
            f = torch.tanh(lower(torch.randn(8, 4)))
            g = f.detach().requires_grad_()
            opt.zero_grad()
            upper(g).pow(2).mean().backward()
            f.backward(g.grad)
            opt.step()
    """,
    "functional_call and torch.func": """
        from torch.func import functional_call, grad, vmap

        model = nn.Linear(3, 1)
        params = dict(model.named_parameters())
        loss = lambda p, x: functional_call(model, p, (x,)).pow(2).mean()
        each = vmap(grad(loss), in_dims=(None, 0))({k: v.detach() for k, v in params.items()}, torch.randn(5, 3))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            opt.zero_grad()
            loss(params, torch.randn(5, 3)).backward()
            opt.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD)
def test_the_cause_is_named(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert checked.by("freed-graph") == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD)
def test_silence(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert not checked.alarms, checked.text


def test_the_command_says_the_same(check: Callable[[str], Any], tmp_path: Path) -> None:
    checked = check(BAD["state stored by a statement of its own"])
    (tmp_path / "train.py").write_text(checked.script, encoding="utf-8")
    command = [sys.executable, "-m", "gradtrace", "check", "--format", "json", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    (finding,) = json.loads(done.stdout)["findings"]
    assert {(finding["rule"], finding["line"])} == checked.marked
    assert "`self.hidden = hidden.detach()`" in finding["help"]
    assert done.returncode == 1


AGAIN = "RuntimeError: Trying to backward through the graph a second time (or ...)"


def at(*lines: int) -> Stack:
    """Frames of a file that cannot be read, innermost first."""
    return tuple(Site("/nowhere/train.py", line, f"f{len(lines) - depth}") for depth, line in enumerate(lines))


def reentry(**facts: Any) -> Reentry:
    """By default: at line 4 a hidden state of the last turn enters, which line 4 made and line 7 freed."""
    known: dict[str, Any] = {
        "call": 1,
        "call_stack": at(7),
        "call_request": "backward",
        "call_root": "loss",
        "freed": True,
        "saved_lost": True,
        "op": "TanhBackward0",
        "node": 12,
        "built": at(4),
        "used": at(5),
        "rerun": 1,
        "entry": at(4),
        "entered_later": True,
        "through": frozenset({"MseLossBackward0"}),
        "own_leaves": True,
        "view": False,
    }
    return Reentry(**(known | facts))


def call(*reentries: Reentry, error: str | None = AGAIN, line: int = 7, **facts: Any) -> Backward:
    known: dict[str, Any] = {"root": "loss", "root_node": 30, "retain_graph": False, "create_graph": False, "nodes": 9}
    return Backward(2, "backward", at(line), **(known | facts), reentries=reentries, error=error)


def line_of(event: Backward) -> int:
    (finding,) = FreedGraph().see(event)
    return finding.site.line


def test_the_line_where_the_state_enters() -> None:
    (finding,) = FreedGraph().see(call(reentry()))
    assert (finding.site.line, finding.level) == (4, Level.ERROR)
    assert "`loss`" in finding.message
    assert "detach()" in finding.help
    assert [related.site.line for related in finding.related] == [5, 7]


def test_the_line_that_built_what_every_call_needs() -> None:
    assert line_of(call(reentry(built=at(2), rerun=0))) == 2


def test_the_call_that_freed_it_where_nothing_new_was_built() -> None:
    assert line_of(call(reentry(built=at(2), rerun=0, entered_later=False, own_leaves=False), line=8)) == 7


def test_the_same_root_again() -> None:
    assert line_of(call(reentry(built=at(2), entry=(), entered_later=False, rerun=0))) == 2
    assert line_of(call(reentry(built=at(2), entry=(), entered_later=False, rerun=0), line=8)) == 7


@pytest.mark.parametrize("kind", ["SelectBackward0", "UnbindBackward0"])
def test_rows_need_the_option(kind: str) -> None:
    through = frozenset({kind, "SumBackward0"})
    assert line_of(call(reentry(built=at(2), rerun=0, own_leaves=False, through=through))) == 7


def test_a_gradient_asked_for_first() -> None:
    (finding,) = FreedGraph().see(call(reentry(call_request="grad", built=at(2), rerun=0), line=9))
    assert finding.site.line == 7
    assert "create_graph=True" in finding.help


def test_a_loss_that_strays_into_what_another_optimizer_trains() -> None:
    g, d = frozenset({1}), frozenset({2})
    generator_last = reentry(used=at(3), rerun=0, owners=Owners(old=g, earlier=d, new=d, stepped=d))
    assert line_of(call(generator_last, line=9)) == 3
    generator_first = reentry(entry=at(8), rerun=0, owners=Owners(old=g, earlier=d, new=d, stepped=g))
    assert line_of(call(generator_first, line=9)) == 8


def test_of_several_entries_the_one_where_something_is_gone() -> None:
    harmless, cause = reentry(saved_lost=False, entry=at(3), built=at(1), view=True), reentry()
    assert line_of(call(harmless, cause)) == 4


def test_a_second_run_without_an_error() -> None:
    trained = Owners(old=frozenset({1}), stepped=frozenset({1}))
    (finding,) = FreedGraph().see(call(reentry(owners=trained, saved_lost=False), error=None))
    assert finding.level is Level.WARNING
    assert not list(FreedGraph().see(call(reentry(owners=trained, view=True), error=None)))
    assert not list(FreedGraph().see(call(reentry(), error=None)))


def test_an_error_of_another_kind() -> None:
    assert not list(FreedGraph().see(call(reentry(), error="RuntimeError: the size of tensor a must match")))


def test_a_graph_of_which_nothing_is_known() -> None:
    assert line_of(call()) == 7
    nowhere = Backward(2, "backward", (), "", 1, False, False, 3, error=AGAIN)
    assert not list(FreedGraph().see(nowhere))
