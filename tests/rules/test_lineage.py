"""Programs in the style of real repositories, with one path cut or one loss lost in each, and correct ones that look alike.

The causes lie in helpers, in library code, in one of several losses or branches, or begin late.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

SETTING = """
import copy
from collections import deque
import numpy as np

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))

def fit(model, opt, loss_of, steps=8):
    for step in range(steps):
        loss = loss_of(step)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""

BAD = {
    "an actor that acts without gradients in its own update": """
        class Agent:
            def __init__(self):
                self.actor, self.critic = mlp(4, 2), mlp(6, 1)
                self.actor_opt = torch.optim.Adam(self.actor.parameters(), 1e-3)
                self.critic_opt = torch.optim.Adam(self.critic.parameters(), 1e-3)

            def act(self, s):
                with torch.no_grad():  # <- unreached-parameter
                    return torch.tanh(self.actor(s))

            def update(self, s, a, r):
                q_loss = F.mse_loss(self.critic(torch.cat([s, a], 1)), r)
                self.critic_opt.zero_grad()
                q_loss.backward()
                self.critic_opt.step()
                pi_loss = -self.critic(torch.cat([s, self.act(s)], 1)).mean()
                self.actor_opt.zero_grad()
                pi_loss.backward()
                self.actor_opt.step()

        agent = Agent()
        for _ in range(8):
            s = torch.randn(16, 4)
            agent.update(s, agent.act(s), torch.randn(16, 1))
    """,
    "noise that is scaled in numpy": """
        class VAE(nn.Module):
            def __init__(self):
                super().__init__()
                self.mu, self.std, self.dec = mlp(4, 2), mlp(4, 2), mlp(2, 4)

            def forward(self, x):
                std = F.softplus(self.std(x)).detach().numpy()  # <- unreached-parameter
                return self.dec(self.mu(x) + torch.from_numpy(std) * torch.randn(len(x), 2))

        model = VAE()
        opt = torch.optim.Adam(model.parameters())
        x = torch.randn(32, 4)
        fit(model, opt, lambda step: F.mse_loss(model(x), x))
    """,
    "learned weights of the losses, as numbers": """
        class Weighted(nn.Module):
            def __init__(self, tasks):
                super().__init__()
                self.log_var = nn.Parameter(torch.rand(tasks))

            def forward(self, losses):
                return sum(torch.exp(-s).item() * loss for s, loss in zip(self.log_var, losses))  # <- unreached-parameter

        net, weighted = mlp(4, 2), Weighted(2)
        opt = torch.optim.Adam([*net.parameters(), *weighted.parameters()])
        x = torch.randn(32, 4)

        def losses(step):
            out = net(x)
            return weighted([F.mse_loss(out[:, k], x[:, k]) for k in range(2)])

        fit(net, opt, losses)
    """,
    "a threshold in a helper": """
        def keep(scores, tau):
            mask = scores > tau  # <- unreached-parameter
            return mask.to(scores.dtype)

        class Sparse(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head, self.tau = nn.Linear(4, 8), nn.Linear(8, 1), nn.Parameter(torch.zeros(8))

            def forward(self, x):
                h = self.body(x)
                return self.head(h * keep(h, self.tau))

        model = Sparse()
        x = torch.randn(32, 4)
        fit(model, torch.optim.Adam(model.parameters()), lambda step: F.mse_loss(model(x), x[:, :1]))
    """,
    "hard attention": """
        class Glimpse(nn.Module):
            def __init__(self):
                super().__init__()
                self.score, self.read = nn.Linear(6, 1), mlp(6, 3)

            def choose(self, patches):
                return self.score(patches).squeeze(-1).argmax(1)  # <- unreached-parameter

            def forward(self, patches):
                where = self.choose(patches)
                return self.read(patches[torch.arange(len(patches)), where])

        model = Glimpse()
        x, y = torch.randn(32, 5, 6), torch.randint(3, (32,))
        fit(model, torch.optim.Adam(model.parameters()), lambda step: F.cross_entropy(model(x), y))
    """,
    "a prompt taken by its data": """
        class Prompted(nn.Module):
            def __init__(self):
                super().__init__()
                self.prompt = nn.Parameter(torch.randn(2, 4))
                self.encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
                self.head = nn.Linear(4, 1)

            def with_prompt(self, x):
                prompt = self.prompt.data.unsqueeze(0)  # <- unreached-parameter
                return torch.cat([prompt.expand(len(x), -1, -1), x], 1)

            def forward(self, x):
                return self.head(self.encoder(self.with_prompt(x)).mean(1))

        model = Prompted()
        x = torch.randn(8, 3, 4)
        fit(model, torch.optim.AdamW(model.parameters()), lambda step: model(x).pow(2).mean())
    """,
    "weights of edges, gathered one by one": """
        class Graph(nn.Module):
            def __init__(self):
                super().__init__()
                self.edge, self.node = mlp(2, 1), nn.Linear(3, 1)

            def weights(self, edges):
                found = []
                for e in edges:
                    found.append(torch.sigmoid(self.edge(e)).item())  # <- unreached-parameter
                return torch.tensor(found)

            def forward(self, x, edges):
                return self.node(x * self.weights(edges).unsqueeze(1))

        model = Graph()
        x, edges = torch.randn(6, 3), torch.randn(6, 2)
        fit(model, torch.optim.Adam(model.parameters()), lambda step: model(x, edges).pow(2).mean())
    """,
    "a category that is sampled": """
        class Discrete(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc, self.dec = mlp(4, 6), mlp(6, 4)

            def code(self, x):
                dist = torch.distributions.OneHotCategorical(logits=self.enc(x))
                return dist.sample()  # <- unreached-parameter

            def forward(self, x):
                return self.dec(self.code(x))

        model = Discrete()
        x = torch.randn(32, 4)
        fit(model, torch.optim.Adam(model.parameters()), lambda step: F.mse_loss(model(x), x))
    """,
    "a temperature fitted to a frozen model": """
        class Calibrated(nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model, self.temperature = model, nn.Parameter(torch.tensor(1.7))

            def forward(self, x):
                with torch.no_grad():
                    logits = self.model(x)
                return logits / self.temperature.item()  # <- no-graph

        model = Calibrated(mlp(4, 3))
        opt = torch.optim.SGD([model.temperature], 0.1)
        x, y = torch.randn(32, 4), torch.randint(3, (32,))
        loss = F.cross_entropy(model(x), y)
        loss.backward()
    """,
    "the sum of what was logged": """
        net = mlp(4, 2)
        x = torch.randn(32, 4)

        def terms():
            out = net(x)
            parts = {"fit": F.mse_loss(out, x[:, :2]), "size": out.pow(2).mean()}
            return {name: value.item() for name, value in parts.items()}  # <- no-graph

        loss = sum(terms().values())
        loss.backward()
    """,
    "losses copied into a tensor": """
        nets = [mlp(4, 1) for _ in range(3)]
        x = torch.randn(32, 4)
        losses = [F.mse_loss(net(x), x[:, :1]) for net in nets]
        loss = torch.stack([torch.tensor(one) for one in losses]).mean()  # <- no-graph
        loss.backward()
    """,
    "the adversarial example made after the forward pass": """
        def fgsm(model, x, y, eps=0.1):
            loss = F.cross_entropy(model(x), y)
            x_adv = x.clone()  # <- unused-input
            (g,) = torch.autograd.grad(loss, [x_adv])
            return x_adv + eps * g.sign()

        net = mlp(4, 3)
        fgsm(net, torch.randn(8, 4, requires_grad=True), torch.randint(3, (8,)))
    """,
    "coordinates that are put together twice": """
        class Heat:
            def __init__(self):
                self.net = mlp(2, 1)

            def residual(self, x, t):
                u = self.net(torch.cat([x, t], 1))
                points = torch.cat([x, t], 1)  # <- unused-input
                du = torch.autograd.grad(u.sum(), points, create_graph=True)[0]
                return du[:, 1] - du[:, 0]

        x, t = (torch.rand(16, 1, requires_grad=True) for _ in range(2))
        Heat().residual(x, t)
    """,
    "a map of features that is flattened for its gradient": """
        features, classify = nn.Conv2d(1, 2, 3), nn.Linear(2 * 4 * 4, 3)

        def cam(image):
            maps = features(image)
            scores = classify(maps.flatten(1))
            weights = torch.autograd.grad(scores[:, 0].sum(), maps.flatten(2))[0].mean(2)  # <- unused-input
            return (weights[..., None, None] * maps).sum(1)

        cam(torch.randn(2, 1, 6, 6))
    """,
    "an interpolation that is asked too late": """
        def penalty(critic, real, fake):
            eps = torch.rand(len(real), 1)
            mixed = eps * real + (1 - eps) * fake
            score = critic(mixed)
            mixed.requires_grad_(True)  # <- unused-input
            (g,) = torch.autograd.grad(score.sum(), mixed, create_graph=True)
            return (g.norm(2, 1) - 1).pow(2).mean()

        penalty(mlp(4, 1), torch.randn(8, 4), torch.randn(8, 4))
    """,
    "sharpness-aware steps that begin with the norm": """
        class SAM:
            def __init__(self, params, base, rho=0.05):
                self.params, self.base, self.rho = list(params), base, rho

            def grad_norm(self):
                return torch.stack([p.grad.norm(2) for p in self.params]).norm(2)  # <- grad-before-backward

            def ascend(self):
                scale = self.rho / (self.grad_norm() + 1e-12)
                with torch.no_grad():
                    for p in self.params:
                        p.add_(p.grad * scale)

        net = mlp(4, 1)
        sam = SAM(net.parameters(), torch.optim.SGD(net.parameters(), 0.1))
        x = torch.randn(16, 4)
        for _ in range(3):
            loss = F.mse_loss(net(x), x[:, :1])
            sam.ascend()
            loss.backward()
            sam.base.step()
    """,
    "a client whose gradients are gathered after they are cleared": """
        class Client:
            def __init__(self):
                self.model = mlp(4, 1)
                self.opt = torch.optim.SGD(self.model.parameters(), 0.1)

            def round(self):
                x = torch.randn(16, 4)
                F.mse_loss(self.model(x), x[:, :1]).backward()
                self.opt.step()
                self.opt.zero_grad()
                return {name: p.grad.clone() for name, p in self.model.named_parameters()}  # <- grad-before-backward

        Client().round()
    """,
    "a loss that is assigned over from some iteration on": """
        net = mlp(4, 2)
        opt = torch.optim.Adam(net.parameters())
        for step in range(140):
            x = torch.randn(16, 4)
            out = net(x)
            loss = F.mse_loss(out, x[:, :2])  # <- unused-loss
            if step >= 12:
                loss = out.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "one of two discriminators": """
        class Judges(nn.Module):
            def __init__(self):
                super().__init__()
                self.fine, self.coarse = mlp(8, 1), mlp(4, 1)

            def forward(self, image, small):
                return self.fine(image), self.coarse(small)

        def shrink(image):
            return F.avg_pool1d(image.unsqueeze(1), 2).squeeze(1)

        G, D = mlp(3, 8), Judges()
        g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(8):
            real, fake = torch.randn(16, 8), G(torch.randn(16, 3))
            small = shrink(fake.detach())  # <- dead-loss-term
            fine, coarse = D(fake, small)
            loss_fine, loss_coarse = F.softplus(-fine).mean(), F.softplus(-coarse).mean()
            loss = loss_fine + 0.5 * loss_coarse
            g_opt.zero_grad()
            loss.backward()
            g_opt.step()
            f1, c1 = D(fake.detach(), small)
            f2, c2 = D(real, shrink(real))
            d_loss = F.softplus(f1).mean() + F.softplus(c1).mean() + F.softplus(-f2).mean() + F.softplus(-c2).mean()
            d_opt.zero_grad()
            d_loss.backward()
            d_opt.step()
    """,
    "a value loss that is weighted as a number": """
        class ActorCritic(nn.Module):
            def __init__(self):
                super().__init__()
                self.pi, self.v = mlp(4, 2), mlp(4, 1)

            def forward(self, s):
                return torch.distributions.Categorical(logits=self.pi(s)), self.v(s).squeeze(-1)

        model = ActorCritic()
        opt = torch.optim.Adam(model.parameters())
        for _ in range(8):
            s, ret = torch.randn(32, 4), torch.randn(32)
            dist, value = model(s)
            a = dist.sample()
            policy_loss = -(dist.log_prob(a) * (ret - value.detach())).mean()
            value_loss = F.mse_loss(value, ret)
            loss = policy_loss + 0.5 * value_loss.item()  # <- unreached-parameter
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "the total is kept, a part is backpropagated": """
        class Trainer:
            def __init__(self):
                self.enc, self.dec = mlp(4, 2), mlp(2, 4)
                self.opt = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()])
                self.log = {}

            def step(self, x):
                z = self.enc(x)
                self.log["rec"] = F.mse_loss(self.dec(z), x)
                self.log["reg"] = z.pow(2).mean()
                self.log["total"] = self.log["rec"] + 0.1 * self.log["reg"]  # <- unused-loss
                self.opt.zero_grad()
                self.log["rec"].backward()
                self.opt.step()

        trainer = Trainer()
        for step in range(10):
            trainer.step(torch.randn(16, 4))
            print(step, {name: round(value.item(), 3) for name, value in trainer.log.items()})
    """,
    "a student in its teacher's block": """
        teacher, student = mlp(4, 3), mlp(4, 3)
        x = torch.randn(16, 4)

        def distill():
            with torch.no_grad():  # <- no-graph
                t = teacher(x).softmax(1)
                s = student(x).log_softmax(1)
            return F.kl_div(s, t, reduction="batchmean")

        loss = distill()
        loss.backward()
    """,
    "the query is detached instead of the key": """
        class MoCo(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder, self.project = mlp(4, 6), nn.Linear(6, 3)
                self.register_buffer("queue", F.normalize(torch.randn(10, 3), dim=1))

            def embed(self, x):
                return F.normalize(self.project(self.encoder(x).detach()), dim=1)  # <- unreached-parameter

            def forward(self, x):
                q, k = self.embed(x), self.embed(x + 0.1)
                logits = torch.cat([(q * k.detach()).sum(1, keepdim=True), q @ self.queue.t()], 1)
                return F.cross_entropy(logits / 0.1, torch.zeros(len(x), dtype=torch.long))

        model = MoCo()
        x = torch.randn(16, 4)
        fit(model, torch.optim.SGD(model.parameters(), 0.1), lambda step: model(x))
    """,
    "a mixture whose gates only choose": """
        class Mixture(nn.Module):
            def __init__(self, experts=3):
                super().__init__()
                self.gate = nn.Linear(4, experts)
                self.experts = nn.ModuleList(mlp(4, 1) for _ in range(experts))

            def forward(self, x):
                _, chosen = self.gate(x).topk(1, dim=1)  # <- unreached-parameter
                outs = torch.stack([expert(x) for expert in self.experts], 1)
                return outs.gather(1, chosen.unsqueeze(-1)).squeeze(1)

        model = Mixture()
        x = torch.randn(32, 4)
        fit(model, torch.optim.Adam(model.parameters()), lambda step: F.mse_loss(model(x), x[:, :1]))
    """,
    "a learned step of quantization": """
        class Round(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.round()

            @staticmethod
            def backward(ctx, grad):
                return grad

        class Quantized(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin, self.step = nn.Linear(4, 2), nn.Parameter(torch.tensor(0.1))

            def weight(self):
                step = self.step.detach()  # <- unreached-parameter
                return Round.apply(self.lin.weight / step) * step

            def forward(self, x):
                return F.linear(x, self.weight(), self.lin.bias)

        model = Quantized()
        x = torch.randn(16, 4)
        fit(model, torch.optim.Adam(model.parameters()), lambda step: F.mse_loss(model(x), x[:, :2]))
    """,
    "a scale read by float()": """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin, self.scale = nn.Linear(4, 2), nn.Parameter(torch.tensor(0.37))

            def forward(self, x):
                return torch.mul(self.lin(x), float(self.scale))  # <- unreached-parameter

        model = Scaled()
        x = torch.randn(16, 4)
        fit(model, torch.optim.Adam(model.parameters()), lambda step: F.mse_loss(model(x), x[:, :2]))
    """,
    "augmentation with a fresh parameter": """
        def jitter(x):
            gain = nn.Parameter(torch.ones(x.shape[1]))  # <- unoptimized-parameter
            return x * gain

        net = mlp(4, 1)
        x = torch.randn(16, 4)
        fit(net, torch.optim.Adam(net.parameters()), lambda step: F.mse_loss(net(jitter(x)), x[:, :1]))
    """,
}

GOOD = {
    "metrics of all kinds": """
        net = mlp(4, 3)
        opt = torch.optim.Adam(net.parameters())
        sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
        history, best = {"loss": [], "acc": []}, float("inf")
        for _ in range(10):
            x, y = torch.randn(16, 4), torch.randint(3, (16,))
            logits = net(x)
            loss = F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            history["loss"].append(loss.item())
            history["acc"].append((logits.argmax(1) == y).float().mean().item())
            ema = 0.9 * history["loss"][-1] + 0.1 * loss.item()
            sched.step(loss.item())
            if loss < best:
                best = loss.detach()
            norm = sum(p.grad.norm().item() ** 2 for p in net.parameters()) ** 0.5
    """,
    "a Q-network with a replay and a target": """
        q, target = mlp(4, 2), None
        target = copy.deepcopy(q)
        opt, replay = torch.optim.Adam(q.parameters()), deque(maxlen=50)
        s = torch.randn(4)
        for step in range(20):
            with torch.no_grad():
                a = q(s).argmax().item()
            s2 = torch.randn(4)
            replay.append((s, a, s2.sum().item(), s2))
            s = s2
            if len(replay) >= 8:
                ss, aa, rr, nn2 = zip(*random.sample(list(replay), 8))
                now = q(torch.stack(ss)).gather(1, torch.tensor(aa).unsqueeze(1)).squeeze(1)
                goal = torch.tensor(rr) + 0.9 * target(torch.stack(nn2)).max(1).values.detach()
                loss = F.smooth_l1_loss(now, goal)
                opt.zero_grad()
                loss.backward()
                opt.step()
            if step % 5 == 0:
                target.load_state_dict(q.state_dict())
    """,
    "BYOL": """
        online, predictor = mlp(4, 3), nn.Linear(3, 3)
        slow = copy.deepcopy(online).requires_grad_(False)
        opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()])
        for _ in range(8):
            x = torch.randn(16, 4)
            a, b = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
            loss = 0
            for one, other in ((a, b), (b, a)):
                loss = loss + 2 - 2 * F.cosine_similarity(predictor(online(one)), slow(other).detach()).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                for p, s in zip(online.parameters(), slow.parameters()):
                    s.lerp_(p, 0.01)
    """,
    "a critic with a gradient penalty": """
        G, D = mlp(2, 4), mlp(4, 1)
        g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for step in range(10):
            real = torch.randn(16, 4)
            with torch.no_grad():
                fake = G(torch.randn(16, 2))
            mixed = (torch.rand(16, 1) * (real - fake) + fake).requires_grad_(True)
            (g,) = torch.autograd.grad(D(mixed).sum(), mixed, create_graph=True)
            loss_d = D(fake).mean() - D(real).mean() + 10 * (g.norm(2, 1) - 1).pow(2).mean()
            d_opt.zero_grad()
            loss_d.backward()
            d_opt.step()
            if step % 3 == 0:
                loss_g = -D(G(torch.randn(16, 2))).mean()
                g_opt.zero_grad()
                loss_g.backward()
                g_opt.step()
    """,
    "a hard gumbel sample": """
        enc, dec = mlp(4, 6), mlp(6, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(8):
            x = torch.randn(16, 4)
            code = F.gumbel_softmax(enc(x), tau=0.7, hard=True)
            loss = F.mse_loss(dec(code), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(code.argmax(1).unique().numel())
    """,
    "a straight-through threshold": """
        gate, net = nn.Linear(4, 4), mlp(4, 1)
        opt = torch.optim.Adam([*gate.parameters(), *net.parameters()])
        for _ in range(8):
            x = torch.randn(16, 4)
            soft = torch.sigmoid(gate(x))
            hard = (soft > 0.5).float()
            mask = hard + soft - soft.detach()
            loss = F.mse_loss(net(x * mask), x[:, :1])
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "REINFORCE with a moving baseline": """
        policy = mlp(4, 2)
        opt, baseline = torch.optim.Adam(policy.parameters()), 0.0
        for episode in range(8):
            logs, rewards = [], []
            for t in range(5):
                dist = torch.distributions.Categorical(logits=policy(torch.randn(4)))
                a = dist.sample()
                logs.append(dist.log_prob(a))
                rewards.append(float(a.item()))
            ret = sum(rewards)
            loss = -torch.stack(logs).sum() * (ret - baseline)
            baseline = 0.9 * baseline + 0.1 * ret
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "an auxiliary loss that is only watched": """
        body, head, probe = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
        opt = torch.optim.Adam([*body.parameters(), *head.parameters()])
        for _ in range(8):
            x = torch.randn(16, 4)
            h = body(x)
            loss = F.mse_loss(head(h), x[:, :1])
            with torch.no_grad():
                aux = F.cross_entropy(probe(h), torch.zeros(16, dtype=torch.long))
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(loss.item(), aux.item())
    """,
    "a probe on detached features": """
        body, head, probe = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
        opt = torch.optim.Adam([*body.parameters(), *head.parameters(), *probe.parameters()])
        for _ in range(8):
            x = torch.randn(16, 4)
            h = body(x)
            loss = F.mse_loss(head(h), x[:, :1])
            loss = loss + F.cross_entropy(probe(h.detach()), (x[:, 0] > 0).long())
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "chunks of a sequence": """
        rnn, head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)
        opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
        state = None
        for _ in range(8):
            x = torch.randn(4, 5, 3)
            out, state = rnn(x, state)
            state = state.detach()
            loss = F.mse_loss(head(out), x.sum(2, keepdim=True))
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "weights of the losses from their sizes": """
        net = mlp(4, 2)
        opt = torch.optim.Adam(net.parameters())
        weights = torch.ones(2)
        for _ in range(8):
            x = torch.randn(16, 4)
            out = net(x)
            losses = [F.mse_loss(out[:, k], x[:, k]) for k in range(2)]
            loss = sum(w * one for w, one in zip(weights, losses))
            opt.zero_grad()
            loss.backward()
            opt.step()
            sizes = torch.tensor([one.item() for one in losses])
            weights = 2 * sizes / sizes.sum()
    """,
    "adaptation by an inner step": """
        net = mlp(1, 1)
        opt = torch.optim.Adam(net.parameters(), 1e-2)
        for _ in range(8):
            loss = 0
            for task in range(2):
                x = torch.randn(8, 1)
                params = dict(net.named_parameters())
                inner = F.mse_loss(torch.func.functional_call(net, params, (x,)), x * task)
                grads = torch.autograd.grad(inner, list(params.values()), create_graph=True)
                fast = {name: p - 0.1 * g for (name, p), g in zip(params.items(), grads)}
                loss = loss + F.mse_loss(torch.func.functional_call(net, fast, (x,)), x * task)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "an encoder frozen on purpose": """
        encoder, head = mlp(4, 8), nn.Linear(8, 1)
        encoder.requires_grad_(False)
        opt = torch.optim.Adam(head.parameters())
        for _ in range(8):
            x = torch.randn(16, 4)
            with torch.no_grad():
                h = encoder(x)
            loss = F.mse_loss(head(h), x[:, :1])
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "gradients of some inputs that may be unused": """
        net, extra = mlp(4, 1), nn.Linear(4, 1)
        params = [*net.parameters(), *extra.parameters()]
        for step in range(8):
            x = torch.randn(16, 4)
            loss = F.mse_loss(net(x), x[:, :1])
            if step % 2:
                loss = loss + extra(x).pow(2).mean()
            grads = torch.autograd.grad(loss, params, allow_unused=True)
            with torch.no_grad():
                for p, g in zip(params, grads):
                    if g is not None:
                        p -= 0.1 * g
    """,
    "a learned temperature, shown and limited": """
        net, log_t = mlp(4, 3), nn.Parameter(torch.tensor(0.3))
        opt = torch.optim.Adam([*net.parameters(), log_t])
        for _ in range(8):
            x, y = torch.randn(16, 4), torch.randint(3, (16,))
            loss = F.cross_entropy(net(x) * log_t.exp(), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                log_t.clamp_(0, 4)
            shown = {"t": log_t.exp().item()}
            print(f"{log_t.item():.2f} {shown['t']:.2f}")
    """,
    "a critic that learns from returns of its own": """
        actor, critic = mlp(4, 2), mlp(4, 1)
        a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
        for _ in range(8):
            s, r, s2 = torch.randn(16, 4), torch.randn(16, 1), torch.randn(16, 4)
            with torch.no_grad():
                goal = r + 0.9 * critic(s2)
            value = critic(s)
            dist = torch.distributions.Categorical(logits=actor(s))
            a = dist.sample()
            c_loss = F.mse_loss(value, goal)
            a_loss = -(dist.log_prob(a).unsqueeze(1) * (goal - value).detach()).mean()
            a_opt.zero_grad()
            c_opt.zero_grad()
            (a_loss + c_loss).backward()
            a_opt.step()
            c_opt.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_the_cause_is_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    found = {(one["rule"], one["line"]) for one in checked.alarms}
    # a consequence: what the actor's loss gives to the critic is cleared
    assert {pair for pair in found if pair[0] != "cleared-grad"} == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_nothing_is_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert not checked.alarms, checked.text
