"""Right programs of many kinds, at which no rule may say more than a note."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

PROGRAMS = {
    "a test of the errors that torch raises": """
        import unittest

        class Errors(unittest.TestCase):
            def setUp(self):
                self.x = torch.randn(3, requires_grad=True)

            def test_a_graph_is_freed(self):
                loss = self.x.pow(2).sum()
                loss.backward()
                with self.assertRaises(RuntimeError):
                    loss.backward()

            def test_no_graph(self):
                with torch.no_grad():
                    loss = self.x.pow(2).sum()
                with self.assertRaisesRegex(RuntimeError, "does not require grad"):
                    loss.backward()

            def test_overwritten(self):
                y = self.x.exp()
                loss = y.sum()
                y.mul_(2)
                with self.assertRaises(RuntimeError) as caught:
                    for _ in range(1):
                        loss.backward()

        unittest.main(argv=["tests"], exit=False)
    """,
    "PPO with minibatches and a shared trunk": """
        class ActorCritic(nn.Module):
            def __init__(self):
                super().__init__()
                self.trunk, self.pi, self.v = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)

            def forward(self, s):
                h = torch.tanh(self.trunk(s))
                return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)

        model = ActorCritic()
        opt = torch.optim.Adam(model.parameters(), lr=3e-3)
        for update in range(3):
            states = torch.randn(32, 4)
            with torch.no_grad():
                dist, values = model(states)
                actions = dist.sample()
                old = dist.log_prob(actions)
            returns = torch.randn(32)
            advantages = returns - values
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            for epoch in range(2):
                for ids in torch.randperm(32).split(8):
                    dist, value = model(states[ids])
                    ratio = (dist.log_prob(actions[ids]) - old[ids]).exp()
                    clipped = ratio.clamp(0.8, 1.2)
                    pi_loss = -torch.min(ratio * advantages[ids], clipped * advantages[ids]).mean()
                    loss = pi_loss + 0.5 * F.mse_loss(value, returns[ids]) - 0.01 * dist.entropy().mean()
                    opt.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                    opt.step()
    """,
    "REINFORCE with a learned baseline": """
        policy, baseline = nn.Linear(4, 2), nn.Linear(4, 1)
        opt_p = torch.optim.Adam(policy.parameters())
        opt_b = torch.optim.Adam(baseline.parameters())
        for episode in range(4):
            log_probs, values, rewards = [], [], []
            for t in range(6):
                s = torch.randn(4)
                dist = torch.distributions.Categorical(logits=policy(s))
                a = dist.sample()
                log_probs.append(dist.log_prob(a))
                values.append(baseline(s).squeeze())
                rewards.append(float(a.item() == int(s.sum() > 0)))
            returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
            values = torch.stack(values)
            policy_loss = -(torch.stack(log_probs) * (returns - values.detach())).sum()
            value_loss = F.mse_loss(values, returns)
            for opt, loss in ((opt_p, policy_loss), (opt_b, value_loss)):
                opt.zero_grad()
                loss.backward()
                opt.step()
    """,
    "soft actor-critic": """
        import copy

        actor, q = nn.Linear(3, 2), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        target = copy.deepcopy(q).requires_grad_(False)
        log_alpha = torch.zeros((), requires_grad=True)
        opt_a, opt_q = torch.optim.Adam(actor.parameters()), torch.optim.Adam(q.parameters())
        opt_alpha = torch.optim.Adam([log_alpha])

        def act(s):
            mu, log_std = actor(s).chunk(2, -1)
            dist = torch.distributions.Normal(mu, log_std.clamp(-5, 2).exp())
            raw = dist.rsample()
            return torch.tanh(raw), dist.log_prob(raw).squeeze(-1)

        for step in range(5):
            s, a, r, s2 = torch.randn(16, 3), torch.rand(16, 1), torch.randn(16, 1), torch.randn(16, 3)
            with torch.no_grad():
                a2, logp2 = act(s2)
                goal = r + 0.99 * (target(torch.cat([s2, a2], 1)) - log_alpha.exp() * logp2.unsqueeze(1))
            opt_q.zero_grad()
            F.mse_loss(q(torch.cat([s, a], 1)), goal).backward()
            opt_q.step()
            for p in q.parameters():
                p.requires_grad = False
            new_a, logp = act(s)
            actor_loss = (log_alpha.exp().detach() * logp - q(torch.cat([s, new_a], 1)).squeeze(1)).mean()
            opt_a.zero_grad()
            actor_loss.backward()
            opt_a.step()
            for p in q.parameters():
                p.requires_grad = True
            opt_alpha.zero_grad()
            (-(log_alpha * (logp.detach() - 1.0)).mean()).backward()
            opt_alpha.step()
            with torch.no_grad():
                for t, p in zip(target.parameters(), q.parameters()):
                    t.mul_(0.995).add_(0.005 * p)
    """,
    "a recurrent Q-network on a replay buffer": """
        from collections import deque

        class DRQN(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.q = nn.LSTMCell(3, 8), nn.Linear(8, 2)

            def forward(self, s, state):
                h, c = self.lstm(s, state)
                return self.q(h), (h, c)

        net, buffer = DRQN(), deque(maxlen=50)
        opt = torch.optim.Adam(net.parameters())
        state = (torch.zeros(1, 8), torch.zeros(1, 8))
        for step in range(12):
            s = torch.randn(1, 3)
            with torch.no_grad():
                q, state = net(s, state)
            buffer.append((s, tuple(x.clone() for x in state), q.argmax(1)))
            if len(buffer) > 4:
                loss = 0
                for s, st, a in random.sample(list(buffer), 4):
                    q, _ = net(s, st)
                    loss = loss + (q.gather(1, a.unsqueeze(1)) - 1).pow(2).mean()
                opt.zero_grad()
                loss.backward()
                opt.step()
    """,
    "CycleGAN with a pool of images": """
        def net():
            return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))

        G, Fb, DA, DB = net(), net(), nn.Linear(4, 1), nn.Linear(4, 1)
        opt_g = torch.optim.Adam([*G.parameters(), *Fb.parameters()])
        opt_d = torch.optim.Adam([*DA.parameters(), *DB.parameters()])
        pool = []

        def from_pool(x):
            pool.append(x.detach())
            return random.choice(pool[-5:])

        for step in range(4):
            a, b = torch.randn(6, 4), torch.randn(6, 4)
            for p in [*DA.parameters(), *DB.parameters()]:
                p.requires_grad_(False)
            fake_b, fake_a = G(a), Fb(b)
            loss_g = (DB(fake_b) - 1).pow(2).mean() + (DA(fake_a) - 1).pow(2).mean()
            loss_g = loss_g + 10 * (F.l1_loss(Fb(fake_b), a) + F.l1_loss(G(fake_a), b))
            opt_g.zero_grad()
            loss_g.backward()
            opt_g.step()
            for p in [*DA.parameters(), *DB.parameters()]:
                p.requires_grad_(True)
            opt_d.zero_grad()
            for D, real, fake in ((DB, b, fake_b), (DA, a, fake_a)):
                loss_d = 0.5 * ((D(real) - 1).pow(2).mean() + D(from_pool(fake)).pow(2).mean())
                loss_d.backward()
            opt_d.step()
    """,
    "WGAN with clipped weights and several critic steps": """
        G, D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
        opt_g, opt_d = torch.optim.RMSprop(G.parameters(), 5e-4), torch.optim.RMSprop(D.parameters(), 5e-4)
        one, minus = torch.tensor(1.0), torch.tensor(-1.0)
        for step in range(3):
            for p in D.parameters():
                p.requires_grad = True
            for _ in range(5):
                for p in D.parameters():
                    p.data.clamp_(-0.1, 0.1)
                D.zero_grad()
                D(torch.randn(8, 3)).mean().backward(minus)
                D(G(torch.randn(8, 2)).detach()).mean().backward(one)
                opt_d.step()
            for p in D.parameters():
                p.requires_grad = False
            G.zero_grad()
            D(G(torch.randn(8, 2))).mean().backward(minus)
            opt_g.step()
    """,
    "VAE-GAN, retained where it must be": """
        enc, dec, dis = nn.Linear(4, 4), nn.Linear(2, 4), nn.Linear(4, 1)
        opt_e, opt_d, opt_c = (torch.optim.Adam(m.parameters()) for m in (enc, dec, dis))
        for step in range(3):
            x = torch.randn(8, 4)
            mu, logvar = enc(x).chunk(2, 1)
            z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
            rec = torch.tanh(dec(z))
            kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
            rec_loss = F.mse_loss(rec, x)
            loss_c = F.softplus(-dis(x)).mean() + F.softplus(dis(rec.detach())).mean()
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()
            opt_e.zero_grad()
            opt_d.zero_grad()
            (rec_loss + kl + F.softplus(-dis(rec)).mean()).backward()
            opt_e.step()
            opt_d.step()
    """,
    "momentum contrast": """
        import copy

        class MoCo(nn.Module):
            def __init__(self):
                super().__init__()
                self.q = nn.Linear(6, 4)
                self.k = copy.deepcopy(self.q)
                for p in self.k.parameters():
                    p.requires_grad = False
                self.register_buffer("queue", F.normalize(torch.randn(4, 16), dim=0))
                self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

            @torch.no_grad()
            def momentum(self):
                for a, b in zip(self.q.parameters(), self.k.parameters()):
                    b.data = b.data * 0.99 + a.data * 0.01

            @torch.no_grad()
            def enqueue(self, keys):
                at = int(self.ptr)
                self.queue[:, at : at + len(keys)] = keys.t()
                self.ptr[0] = (at + len(keys)) % 16

            def forward(self, x1, x2):
                q = F.normalize(self.q(x1), dim=1)
                with torch.no_grad():
                    self.momentum()
                    k = F.normalize(self.k(x2), dim=1)
                pos = (q * k).sum(1, keepdim=True)
                logits = torch.cat([pos, q @ self.queue.clone().detach()], 1) / 0.1
                self.enqueue(k)
                return F.cross_entropy(logits, torch.zeros(len(x1), dtype=torch.long))

        model = MoCo()
        opt = torch.optim.SGD(model.q.parameters(), lr=0.1)
        for _ in range(6):
            x = torch.randn(4, 6)
            loss = model(x + 0.1 * torch.randn_like(x), x)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "BYOL": """
        import copy

        online, predictor = nn.Linear(6, 4), nn.Linear(4, 4)
        target = copy.deepcopy(online)
        for p in target.parameters():
            p.requires_grad = False
        opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()])
        for _ in range(4):
            x = torch.randn(8, 6)
            v1, v2 = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
            p1, p2 = predictor(online(v1)), predictor(online(v2))
            with torch.no_grad():
                t1, t2 = target(v1), target(v2)
            loss = 4 - 2 * (F.cosine_similarity(p1, t2).mean() + F.cosine_similarity(p2, t1).mean())
            opt.zero_grad()
            loss.backward()
            opt.step()
            with torch.no_grad():
                for a, b in zip(online.parameters(), target.parameters()):
                    b.lerp_(a, 0.01)
    """,
    "distillation with an ensemble": """
        teachers = [nn.Linear(4, 3).eval() for _ in range(2)]
        student = nn.Linear(4, 3)
        opt = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
            with torch.no_grad():
                soft = sum(t(x).softmax(1) for t in teachers) / 2
            logits = student(x)
            loss = F.cross_entropy(logits, y) + F.kl_div(logits.log_softmax(1), soft, reduction="batchmean")
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a bilevel search that unrolls one step": """
        w, alpha = torch.randn(3, 2, requires_grad=True), torch.zeros(2, requires_grad=True)
        opt_w, opt_a = torch.optim.SGD([w], lr=0.1), torch.optim.Adam([alpha])

        def loss_of(w, x, y):
            return F.mse_loss(torch.tanh(x @ w) @ alpha.softmax(0), y)

        for _ in range(3):
            xt, yt, xv, yv = torch.randn(8, 3), torch.randn(8), torch.randn(8, 3), torch.randn(8)
            (g,) = torch.autograd.grad(loss_of(w, xt, yt), w, create_graph=True)
            opt_a.zero_grad()
            loss_of(w - 0.1 * g, xv, yv).backward()
            opt_a.step()
            opt_w.zero_grad()
            loss_of(w, xt, yt).backward()
            opt_w.step()
    """,
    "learning to reweight examples": """
        from torch.func import functional_call

        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            x, y, xv, yv = torch.randn(8, 4), torch.randn(8, 1), torch.randn(4, 4), torch.randn(4, 1)
            params = dict(model.named_parameters())
            eps = torch.zeros(8, requires_grad=True)
            cost = (functional_call(model, params, (x,)) - y).pow(2).squeeze(1)
            grads = torch.autograd.grad((eps * cost).sum(), list(params.values()), create_graph=True)
            fast = {k: p - 0.1 * g for (k, p), g in zip(params.items(), grads)}
            (g_eps,) = torch.autograd.grad(F.mse_loss(functional_call(model, fast, (xv,)), yv), eps)
            weights = (-g_eps).clamp(min=0)
            weights = weights / weights.sum().clamp(min=1e-8)
            opt.zero_grad()
            (weights.detach() * (model(x) - y).pow(2).squeeze(1)).sum().backward()
            opt.step()
    """,
    "invariant risk minimisation": """
        model = nn.Linear(4, 1)
        opt = torch.optim.Adam(model.parameters())
        for _ in range(3):
            loss, penalty = 0, 0
            for env in range(2):
                x, y = torch.randn(8, 4), torch.rand(8, 1).round()
                scale = torch.ones(1, requires_grad=True)
                risk = F.binary_cross_entropy_with_logits(model(x) * scale, y)
                (g,) = torch.autograd.grad(risk, scale, create_graph=True)
                loss, penalty = loss + risk, penalty + g.pow(2).sum()
            opt.zero_grad()
            (loss + penalty).backward()
            opt.step()
    """,
    "a domain classifier behind a reversed gradient": """
        class Reverse(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale):
                ctx.scale = scale
                return x.view_as(x)

            @staticmethod
            def backward(ctx, grad):
                return -ctx.scale * grad, None

        body, label, domain = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)
        opt = torch.optim.SGD([*body.parameters(), *label.parameters(), *domain.parameters()], lr=0.1)
        for _ in range(3):
            f = torch.relu(body(torch.randn(8, 4)))
            loss = F.cross_entropy(label(f), torch.randint(0, 3, (8,)))
            loss = loss + F.cross_entropy(domain(Reverse.apply(f, 0.5)), torch.randint(0, 2, (8,)))
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "GradCAM beside the training": """
        net, head = nn.Conv2d(1, 4, 3), nn.Linear(4, 2)
        opt = torch.optim.Adam([*net.parameters(), *head.parameters()])

        def cam(x):
            maps = torch.relu(net(x))
            maps.retain_grad()
            head(maps.mean((2, 3)))[:, 1].sum().backward()
            weights = maps.grad.mean((2, 3), keepdim=True)
            for p in [*net.parameters(), *head.parameters()]:
                p.grad = None
            return torch.relu((weights * maps.detach()).sum(1))

        for epoch in range(2):
            for _ in range(2):
                opt.zero_grad()
                out = head(torch.relu(net(torch.rand(3, 1, 8, 8))).mean((2, 3)))
                F.cross_entropy(out, torch.randint(0, 2, (3,))).backward()
                opt.step()
            cam(torch.rand(1, 1, 8, 8))
    """,
    "deep dream": """
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Conv2d(4, 4, 3)).requires_grad_(False)
        image = torch.rand(1, 1, 12, 12)
        for octave in range(2):
            image = F.interpolate(image, scale_factor=1.2).requires_grad_(True)
            for _ in range(3):
                net(image).norm().backward()
                image.data += 0.01 * image.grad.data / image.grad.data.abs().mean()
                image.grad.data.zero_()
            image = image.detach()
    """,
    "elastic weight consolidation": """
        model = nn.Linear(4, 3)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        fisher, anchor = {}, {}

        def consolidate(data):
            for n, p in model.named_parameters():
                fisher[n], anchor[n] = torch.zeros_like(p), p.detach().clone()
            for x in data:
                model.zero_grad()
                out = model(x).log_softmax(-1)
                F.nll_loss(out, out.argmax(-1)).backward()
                for n, p in model.named_parameters():
                    fisher[n] += p.grad.detach() ** 2 / len(data)
            model.zero_grad()

        for task in range(2):
            for _ in range(3):
                x = torch.randn(8, 4)
                loss = F.cross_entropy(model(x), torch.randint(0, 3, (8,)))
                for n, p in model.named_parameters():
                    if fisher:
                        loss = loss + (fisher[n] * (p - anchor[n]).pow(2)).sum()
                opt.zero_grad()
                loss.backward()
                opt.step()
            consolidate(torch.randn(4, 2, 4))
    """,
    "a neural differential equation with its adjoint": """
        class Adjoint(torch.autograd.Function):
            @staticmethod
            def forward(ctx, z, field, steps, *params):
                ctx.field, ctx.steps = field, steps
                with torch.no_grad():
                    for _ in range(steps):
                        z = z + field(z) / steps
                ctx.save_for_backward(z, *params)
                return z

            @staticmethod
            def backward(ctx, a):
                z, *params = ctx.saved_tensors
                total = [torch.zeros_like(p) for p in params]
                for _ in range(ctx.steps):
                    with torch.enable_grad():
                        z = z.detach().requires_grad_(True)
                        f = ctx.field(z)
                        gz, *gp = torch.autograd.grad(f, (z, *params), a)
                    z = z - f / ctx.steps
                    a = a + gz / ctx.steps
                    total = [t + g / ctx.steps for t, g in zip(total, gp)]
                return (a, None, None, *total)

        field, head = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2)), nn.Linear(2, 1)
        opt = torch.optim.Adam([*field.parameters(), *head.parameters()])
        for _ in range(3):
            z = Adjoint.apply(torch.randn(6, 2), field, 4, *field.parameters())
            opt.zero_grad()
            head(z).pow(2).mean().backward()
            opt.step()
    """,
    "an attention decoder with teacher forcing": """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.emb, self.cell = nn.Embedding(7, 6), nn.GRUCell(12, 6)
                self.attn, self.out = nn.Linear(6, 6), nn.Linear(6, 7)

            def forward(self, token, h, memory):
                w = torch.softmax((memory @ self.attn(h).unsqueeze(2)).squeeze(2), 1)
                h = self.cell(torch.cat([self.emb(token), (w.unsqueeze(1) @ memory).squeeze(1)], 1), h)
                return self.out(h), h

        enc, dec = nn.GRU(5, 6, batch_first=True), Decoder()
        opts = [torch.optim.Adam(m.parameters()) for m in (enc, dec)]
        for step in range(3):
            memory, h = enc(torch.randn(4, 5, 5))
            h, token, target = h[0], torch.zeros(4, dtype=torch.long), torch.randint(0, 7, (4, 3))
            loss = 0
            for t in range(3):
                logits, h = dec(token, h, memory)
                loss += F.cross_entropy(logits, target[:, t])
                token = target[:, t] if random.random() < 0.5 else logits.argmax(1).detach()
            for opt in opts:
                opt.zero_grad()
            loss.backward()
            for opt in opts:
                opt.step()
    """,
    "a flow with a log-determinant": """
        class Coupling(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))

            def forward(self, x):
                a, b = x.chunk(2, 1)
                s, t = self.net(a).chunk(2, 1)
                s = torch.tanh(s)
                return torch.cat([b * s.exp() + t, a], 1), s.sum(1)

        flow = nn.ModuleList(Coupling() for _ in range(2))
        opt = torch.optim.Adam(flow.parameters())
        for _ in range(3):
            x, total = torch.randn(8, 4), 0
            for layer in flow:
                x, logdet = layer(x)
                total = total + logdet
            loss = (0.5 * x.pow(2).sum(1) - total).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "stochastic weight averaging and a schedule": """
        from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        swa, opt = AveragedModel(model), torch.optim.SGD(model.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
        swa_sched = SWALR(opt, swa_lr=0.05)
        data = [torch.randn(8, 3) for _ in range(2)]
        for epoch in range(4):
            for x in data:
                opt.zero_grad()
                model(x).pow(2).mean().backward()
                opt.step()
            if epoch > 1:
                swa.update_parameters(model)
                swa_sched.step()
            else:
                sched.step()
        update_bn(data, swa)
    """,
    "low-rank adapters on a frozen layer": """
        class LoRA(nn.Module):
            def __init__(self, base, r=2):
                super().__init__()
                self.base = base
                for p in self.base.parameters():
                    p.requires_grad_(False)
                self.a = nn.Parameter(0.1 * torch.randn(r, base.in_features))
                self.b = nn.Parameter(0.1 * torch.randn(base.out_features, r))

            def forward(self, x):
                return self.base(x) + x @ self.a.t() @ self.b.t()

        model = nn.Sequential(LoRA(nn.Linear(4, 8)), nn.ReLU(), LoRA(nn.Linear(8, 2)))
        opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
        for i in range(8):
            loss = model(torch.randn(4, 4)).pow(2).mean() / 4
            loss.backward()
            if (i + 1) % 4 == 0:
                opt.step()
                opt.zero_grad(set_to_none=True)
    """,
    "gradients of several tasks, projected": """
        trunk, heads = nn.Linear(4, 6), nn.ModuleList(nn.Linear(6, 1) for _ in range(2))
        params = list(trunk.parameters())
        opt = torch.optim.SGD([*params, *heads.parameters()], lr=0.1)
        for _ in range(3):
            f = torch.tanh(trunk(torch.randn(8, 4)))
            losses = [head(f).pow(2).mean() for head in heads]
            opt.zero_grad()
            flat = []
            for i, loss in enumerate(losses):
                grads = torch.autograd.grad(loss, params, retain_graph=True)
                flat.append(torch.cat([g.flatten() for g in grads]))
            sum(losses).backward()
            a, b = flat
            if a @ b < 0:
                a = a - (a @ b) / b.pow(2).sum() * b
            at = 0
            for p in params:
                p.grad = (a + b)[at : at + p.numel()].view_as(p).clone()
                at += p.numel()
            opt.step()
    """,
    "a two-phase script: pretraining, then probing": """
        enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(3):
            x = torch.randn(8, 4)
            opt.zero_grad()
            F.mse_loss(dec(torch.tanh(enc(x))), x).backward()
            opt.step()
        enc.eval()
        for p in enc.parameters():
            p.requires_grad = False
        x = torch.randn(32, 4)
        features = torch.tanh(enc(x))
        probe = nn.Linear(3, 2)
        opt = torch.optim.SGD(probe.parameters(), lr=0.1)
        for epoch in range(3):
            for ids in torch.randperm(32).split(8):
                loss = F.cross_entropy(probe(features[ids]), (x[ids, 0] > 0).long())
                opt.zero_grad()
                loss.backward()
                opt.step()
    """,
    "an adversarial training loop": """
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def pgd(x, y, eps=0.1, steps=3):
            delta = torch.empty_like(x).uniform_(-eps, eps).requires_grad_()
            for _ in range(steps):
                (g,) = torch.autograd.grad(F.cross_entropy(model(x + delta), y), delta)
                delta.data = (delta.data + 0.05 * g.sign()).clamp(-eps, eps)
            return (x + delta).detach()

        def free(x, y, replays=2):
            noise = torch.zeros_like(x)
            for _ in range(replays):
                noise.requires_grad_()
                loss = F.cross_entropy(model(x + noise), y)
                opt.zero_grad()
                loss.backward()
                noise = (noise + 0.05 * noise.grad.sign()).clamp(-0.1, 0.1).detach()
                opt.step()

        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
            adv = pgd(x, y)
            opt.zero_grad()
            F.cross_entropy(model(adv), y).backward()
            opt.step()
            free(x, y)
    """,
    "an optimizer in the backward pass": """
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        opts = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

        def hook(p):
            opts[p].step()
            opts[p].zero_grad()

        for p in model.parameters():
            p.register_post_accumulate_grad_hook(hook)
        for _ in range(3):
            model(torch.randn(8, 3)).pow(2).mean().backward()
    """,
    "an optimizer whose step goes on after super().step()": """
        class Proximal(torch.optim.SGD):
            def step(self, closure=None):
                loss = super().step(closure)
                with torch.no_grad():
                    for group in self.param_groups:
                        for p in group["params"]:
                            p.copy_(p.sign() * (p.abs() - 1e-3).clamp(min=0))
                return loss

        model = nn.Linear(3, 1)
        opt = Proximal(model.parameters(), lr=0.1)
        for _ in range(4):
            opt.zero_grad()
            model(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()

        def closure():
            opt.zero_grad()
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()
            return loss

        for _ in range(4):
            opt.step(closure)
    """,
    "an optimizer that takes second derivatives in its step": """
        class Diagonal(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {})

            def step(self):
                params = [p for group in self.param_groups for p in group["params"]]
                signs = [torch.randint_like(p, 2) * 2 - 1.0 for p in params]
                products = torch.autograd.grad([p.grad for p in params], params, signs)
                for p, product in zip(params, products):
                    p.data -= 0.1 * p.grad.detach() / (product.abs() + 0.1)

        model = nn.Linear(3, 1)
        opt = Diagonal(model.parameters())
        for _ in range(4):
            opt.zero_grad()
            model(torch.randn(8, 3)).pow(2).mean().backward(create_graph=True)
            opt.step()
        opt.zero_grad()
    """,
}


@pytest.mark.parametrize("script", PROGRAMS.values(), ids=PROGRAMS)
def test_right_programs(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert checked.exception is None, checked.text
    assert not checked.alarms, checked.text
