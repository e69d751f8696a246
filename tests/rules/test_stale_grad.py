"""stale-grad, on scripts as people write them, and on events written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradtrace.model.events import Contribution, End, Step, Use
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Site, Stack
from gradtrace.rules.stale_grad import StaleGrad

BAD = {
    "nobody calls zero_grad": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # <- stale-grad
            opt.step()
    """,
    "zero_grad without parentheses": """
        model = nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters())

        def train_step(x, y):
            optimizer.zero_grad  # <- stale-grad
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()

        for _ in range(3):
            train_step(torch.randn(8, 3), torch.randn(8, 1))
    """,
    "zero_grad once an epoch": """
        from torch.utils.data import DataLoader, TensorDataset

        model = nn.Linear(3, 1)
        loader = DataLoader(TensorDataset(torch.randn(32, 3), torch.randn(32, 1)), batch_size=8)
        opt = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(2):
            opt.zero_grad()
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()  # <- stale-grad
                opt.step()
    """,
    "zero_grad of a copy": """
        import copy

        class Trainer:
            def __init__(self):
                self.model = nn.Linear(3, 1)
                self.best = copy.deepcopy(self.model)
                self.opt = torch.optim.Adam(self.model.parameters())

            def fit(self, steps):
                for _ in range(steps):
                    self.best.zero_grad()
                    loss = self.model(torch.randn(8, 3)).pow(2).mean()
                    loss.backward()  # <- stale-grad
                    self.opt.step()

        Trainer().fit(3)
    """,
    "zero_grad of another optimizer": """
        gen, disc = nn.Linear(2, 3), nn.Linear(3, 1)
        opt_g, opt_d = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
        for _ in range(3):
            opt_g.zero_grad()
            d_loss = F.softplus(disc(gen(torch.randn(4, 2)).detach())).mean()
            d_loss.backward()  # <- stale-grad
            opt_d.step()
            opt_g.zero_grad()
            g_loss = gen(torch.randn(4, 2)).pow(2).mean()
            g_loss.backward()
            opt_g.step()
    """,
    "a closure for SGD": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            x = torch.randn(8, 3)

            def closure():
                loss = model(x).pow(2).mean()
                loss.backward()  # <- stale-grad
                return loss

            opt.step(closure)
    """,
    "LBFGS, zero_grad outside of the closure": """
        coef = torch.zeros(3, requires_grad=True)
        opt = torch.optim.LBFGS([coef], max_iter=4)
        x, y = torch.randn(20, 3), torch.randn(20)

        def closure():
            loss = F.mse_loss(x @ coef, y)
            loss.backward()  # <- stale-grad
            return loss

        for _ in range(2):
            opt.zero_grad()
            opt.step(closure)
    """,
    "an update by hand under no_grad": """
        w, b = torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
        for _ in range(3):
            loss = (torch.randn(8, 3) @ w + b).pow(2).mean()
            loss.backward()  # <- stale-grad
            with torch.no_grad():
                w -= 0.1 * w.grad
                b -= 0.1 * b.grad
    """,
    "an update of .data": """
        model = nn.Linear(3, 1)
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # <- stale-grad
            for f in model.parameters():
                f.data.sub_(f.grad.data * 0.1)
    """,
    "an assignment to .data": """
        def sgd(params, lr):
            for p in params:
                p.data = p.data - lr * p.grad

        model = nn.Linear(3, 1)
        for _ in range(3):
            model(torch.randn(8, 3)).pow(2).mean().backward()  # <- stale-grad
            sgd(model.parameters(), 0.1)
    """,
    "an update of a part": """
        w = torch.randn(3, 2, requires_grad=True)
        for _ in range(3):
            (torch.randn(8, 3) @ w).pow(2).mean().backward()  # <- stale-grad
            w.data[0] -= 0.1 * w.grad[0]
    """,
    "an update with foreach": """
        model = nn.Linear(3, 1)
        params = list(model.parameters())
        for _ in range(3):
            model(torch.randn(8, 3)).pow(2).mean().backward()  # <- stale-grad
            with torch.no_grad():
                torch._foreach_add_(params, [p.grad for p in params], alpha=-0.1)
    """,
    "momentum by hand, in a class": """
        class Momentum:
            def __init__(self, params, lr=0.1):
                self.params, self.lr = list(params), lr
                self.velocity = [torch.zeros_like(p) for p in self.params]

            @torch.no_grad()
            def step(self):
                for p, v in zip(self.params, self.velocity):
                    v.mul_(0.9).add_(p.grad)
                    p.add_(v, alpha=-self.lr)

        model = nn.Linear(3, 1)
        opt = Momentum(model.parameters())
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # <- stale-grad
            opt.step()
    """,
    "an optimizer of the user's own": """
        class SignSGD(torch.optim.Optimizer):
            def __init__(self, params, lr=0.01):
                super().__init__(params, dict(lr=lr))

            @torch.no_grad()
            def step(self):
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.add_(p.grad.sign(), alpha=-group["lr"])

        model = nn.Linear(3, 1)
        opt = SignSGD(model.parameters())
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # <- stale-grad
            opt.step()
    """,
    "an attack that never clears the input's gradient": """
        model = nn.Linear(4, 3).requires_grad_(False)

        def attack(x, y, eps=0.1, steps=5):
            delta = torch.zeros_like(x, requires_grad=True)
            for _ in range(steps):
                loss = F.cross_entropy(model(x + delta), y)
                loss.backward()  # <- stale-grad
                delta.data = (delta + 0.02 * delta.grad.sign()).clamp(-eps, eps)
            return delta.detach()

        attack(torch.randn(8, 4), torch.randint(0, 3, (8,)))
    """,
    "an image that is climbed by hand": """
        net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Tanh()).requires_grad_(False)
        image = torch.rand(1, 1, 8, 8, requires_grad=True)
        for _ in range(4):
            score = net(image)[0, 1].mean()
            score.backward()  # <- stale-grad
            with torch.no_grad():
                image += 0.1 * image.grad / (image.grad.norm() + 1e-8)
    """,
    "a warm-up pass leaves its gradients behind": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def probe(model):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # <- stale-grad
            return {name: p.grad.norm().item() for name, p in model.named_parameters()}

        print(probe(model))
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()
            opt.step()
            opt.zero_grad()
    """,
    "a search for the learning rate leaves its gradients behind": """
        import copy

        def find_lr(model, opt):
            state = copy.deepcopy(model.state_dict())
            for lr in (1e-3, 1e-2, 1e-1):
                for group in opt.param_groups:
                    group["lr"] = lr
                opt.zero_grad()
                model(torch.randn(8, 3)).pow(2).mean().backward()  # <- stale-grad
                opt.step()
            model.load_state_dict(state)

        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        find_lr(model, opt)
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()
            opt.step()
            opt.zero_grad()
    """,
    "saliency after each epoch leaves its gradients behind": """
        model = nn.Linear(3, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def saliency(model, x):
            x = x.clone().requires_grad_()
            model(x).max(1).values.sum().backward()  # <- stale-grad
            return x.grad.abs()

        def train_epoch():
            for _ in range(3):
                x = torch.randn(8, 3)
                F.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()
                opt.step()
                opt.zero_grad()

        for epoch in range(2):
            train_epoch()
            saliency(model, torch.randn(4, 3))
    """,
    "a window counter that starts at one": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        accumulate = 4
        for epoch in range(2):
            for step, x in enumerate(torch.randn(16, 8, 3), start=1):
                (model(x).pow(2).mean() / accumulate).backward()
                if (step + 1) % accumulate == 0:  # <- stale-grad
                    opt.step()
                    opt.zero_grad()
    """,
    "the last window of an epoch gets into the next": """
        class Trainer:
            def __init__(self):
                self.model = nn.Linear(3, 1)
                self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def epoch(self, batches, every=4):
                for i, x in enumerate(batches):
                    loss = self.model(x).pow(2).mean() / every
                    loss.backward()
                    if (i + 1) % every == 0:  # <- stale-grad
                        self.opt.step()
                        self.opt.zero_grad()

        trainer = Trainer()
        for epoch in range(3):
            trainer.epoch(torch.randn(10, 8, 3))
    """,
    "windows that are never cleared": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(8):
            loss = model(torch.randn(8, 3)).pow(2).mean() / 2
            loss.backward()  # <- stale-grad
            if (i + 1) % 2 == 0:
                opt.step()
    """,
    "a gradient scaler": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(3):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = model(torch.randn(8, 3)).float().pow(2).mean()
            scaler.scale(loss).backward()  # <- stale-grad
            scaler.step(opt)
            scaler.update()
    """,
    "a scheduler is stepped, the gradients stay": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        sched = torch.optim.lr_scheduler.StepLR(opt, 2)
        for _ in range(4):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # <- stale-grad
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
    """,
    "only the encoder is cleared": """
        enc, dec = nn.Linear(4, 2), nn.Linear(2, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(3):
            x = torch.randn(8, 4)
            enc.zero_grad()
            loss = F.mse_loss(dec(enc(x)), x)
            loss.backward()  # <- stale-grad
            opt.step()
    """,
    "clearing comes under a condition that never holds again": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4):
            if step == 0:
                opt.zero_grad()
            loss = model(torch.randn(8, 3)).pow(2).mean()
            loss.backward()  # <- stale-grad
            opt.step()
    """,
    "REINFORCE without a zero_grad": """
        class Agent:
            def __init__(self):
                self.policy = nn.Linear(4, 2)
                self.opt = torch.optim.Adam(self.policy.parameters())

            def finish(self, log_probs, rewards):
                returns = torch.tensor(rewards)
                for log_prob, ret in zip(log_probs, returns):
                    (-log_prob * ret).backward()  # <- stale-grad
                self.opt.step()

        agent = Agent()
        for episode in range(3):
            log_probs, rewards = [], []
            for _ in range(4):
                dist = torch.distributions.Categorical(logits=agent.policy(torch.randn(4)))
                action = dist.sample()
                log_probs.append(dist.log_prob(action))
                rewards.append(float(action))
            agent.finish(log_probs, rewards)
    """,
    "the critic's gradient is used by two steps": """
        actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
        opt_a, opt_c = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
        for _ in range(3):
            s = torch.randn(16, 4)
            value = critic(s).squeeze(1)
            critic_loss = (value - 1).pow(2).mean()
            critic_loss.backward()  # <- stale-grad
            opt_c.step()
            opt_a.zero_grad()
            actor_loss = -(torch.log_softmax(actor(s), 1)[:, 0] * value.detach()).mean()
            actor_loss.backward()
            opt_a.step()
    """,
    "moved by hand and, on the sum, by the optimizer": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            model(torch.randn(8, 3)).pow(2).mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.05 * p.grad
            model(torch.randn(8, 3)).pow(2).mean().backward()  # <- stale-grad
            opt.step()
            opt.zero_grad()
    """,
    "validation that shares a function with training": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def run(data, optimizer=None):
            losses = []
            for x in data:
                loss = model(x).pow(2).mean()
                loss.backward()  # <- stale-grad
                if optimizer is not None:
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(loss.item())
            return sum(losses)

        for epoch in range(3):
            model.train()
            run([torch.randn(8, 3) for _ in range(4)], opt)
            model.eval()
            run([torch.randn(8, 3) for _ in range(2)])
    """,
    "validation in a method, with a loop of its own": """
        class Trainer:
            def __init__(self):
                self.model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
                self.opt = torch.optim.Adam(self.model.parameters())

            def validate(self, data):
                self.model.eval()
                for x in data:
                    loss = self.model(x).pow(2).mean()
                    loss.backward()  # <- stale-grad
                self.model.train()

            def fit(self, data):
                for epoch in range(3):
                    for x in data:
                        self.model(x).pow(2).mean().backward()
                        self.opt.step()
                        self.opt.zero_grad()
                    self.validate(data[:2])

        Trainer().fit([torch.randn(8, 3) for _ in range(4)])
    """,
    "validation in a comprehension, without modes": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def compute(x, optimizer):
            loss = model(x).pow(2).mean()
            loss.backward()  # <- stale-grad
            if optimizer:
                optimizer.step()
                optimizer.zero_grad()
            return loss.item()

        def run(data, optimizer):
            return sum([compute(x, optimizer) for x in data])

        for epoch in range(3):
            run([torch.randn(8, 3) for _ in range(4)], opt)
            run([torch.randn(8, 3) for _ in range(2)], None)
    """,
    "an extra step outside of the if": """
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for epoch in range(2):
            optimizer.zero_grad()
            for i in range(8):
                loss = model(torch.randn(8, 3)).pow(2).mean() / 4
                loss.backward()
                if (i + 1) % 4 == 0:
                    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
                    optimizer.step()
                    optimizer.zero_grad()
                optimizer.step()  # <- stale-grad
    """,
    "an extra step before the if, in functions": """
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def micro_step(x):
            (model(x).pow(2).mean() / 2).backward()
            optimizer.step()  # <- stale-grad

        def update():
            optimizer.step()
            optimizer.zero_grad()

        for i in range(8):
            micro_step(torch.randn(8, 3))
            if i % 2:
                update()
    """,
}

GOOD = {
    "a model that is converted after a saliency map": """
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            opt.zero_grad()
            net(torch.randn(8, 4)).pow(2).mean().backward()
            opt.step()
        x = torch.randn(8, 4, requires_grad=True)
        net(x).sum().backward()
        print(x.grad.norm())
        net.half()
    """,
    "a model that is converted while it accumulates": """
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(8):
            net(torch.randn(8, 4)).pow(2).mean().backward()
            net.double()
            net.float()
            if step % 4 == 3:
                opt.step()
                opt.zero_grad()
    """,
    "eligibility traces, kept where the gradients are": """
        value = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        value.zero_grad()
        for t in range(6):
            s = torch.randn(3)
            v = value(s)
            error = float(s.sum()) - v.item()
            v.backward()
            with torch.no_grad():
                for p in value.parameters():
                    p.add_(0.01 * error * p.grad)
                    p.grad.mul_(0.9 * 0.8)
    """,
    "a momentum of one's own, kept where the gradients are": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            model(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
            for p in model.parameters():
                p.grad *= 0.9
    """,
    "windows that grow from epoch to epoch": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            window = 2 if epoch == 0 else 3
            for i in range(6):
                (model(torch.randn(8, 3)).pow(2).mean() / window).backward()
                if (i + 1) % window == 0:
                    opt.step()
                    opt.zero_grad()
    """,
    "frozen without a gradient": """
        body, head = nn.Linear(3, 4), nn.Linear(4, 1)
        opt = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=0.1)
        for step in range(8):
            if step == 3:
                body.requires_grad_(False)
            opt.zero_grad()
            head(torch.tanh(body(torch.randn(8, 3)))).pow(2).mean().backward()
            opt.step()
    """,
    "frozen for the other's turn": """
        gen, disc = nn.Linear(3, 4), nn.Linear(4, 1)
        opt_g, opt_d = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
        for _ in range(5):
            disc.requires_grad_(True)
            opt_d.zero_grad()
            disc(gen(torch.randn(8, 3)).detach()).mean().backward()
            opt_d.step()
            disc.requires_grad_(False)
            opt_g.zero_grad()
            (-disc(gen(torch.randn(8, 3)))).mean().backward()
            opt_g.step()
    """,
    "an attack on the embedding between two backward calls, taken back": """
        embedding, head = nn.Embedding(9, 4), nn.Linear(4, 2)
        opt = torch.optim.Adam([*embedding.parameters(), *head.parameters()])
        for _ in range(4):
            words, labels = torch.randint(9, (6, 5)), torch.randint(2, (6,))
            F.cross_entropy(head(embedding(words).mean(1)), labels).backward()
            weight = embedding.weight
            backup = weight.data.clone()
            weight.data.add_(weight.grad / weight.grad.norm())
            F.cross_entropy(head(embedding(words).mean(1)), labels).backward()
            weight.data = backup
            opt.step()
            opt.zero_grad()
    """,
    "a climb in the weights, taken back, and the sum of both gradients": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for turn in range(4):
            x, climb = torch.randn(8, 3), {}
            model(x).pow(2).mean().backward()
            with torch.no_grad():
                for p in model.parameters():
                    climb[p] = 0.05 * p.grad / p.grad.norm()
                    p.add_(climb[p])
            model(x).pow(2).mean().backward()
            for p in model.parameters():
                if turn % 2:
                    p.data.sub_(climb[p])
                else:
                    with torch.no_grad():
                        p -= climb[p]
            opt.step()
            opt.zero_grad()
    """,
    "zero_grad after the step": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
            opt.zero_grad()
    """,
    "every way to clear": """
        def clear(kind, model, opt):
            params = list(model.parameters())
            if kind == 0:
                opt.zero_grad(set_to_none=False)
            elif kind == 1:
                for p in params:
                    p.grad = None
            elif kind == 2:
                for p in params:
                    p.grad.zero_()
            elif kind == 3:
                for p in params:
                    p.grad.data.zero_()
            elif kind == 4:
                for p in params:
                    p.grad.detach_()
                    p.grad.zero_()
            elif kind == 5:
                for p in params:
                    del p.grad
            elif kind == 6:
                torch._foreach_zero_([p.grad for p in params])
            elif kind == 7:
                for p in params:
                    p.grad = torch.zeros_like(p)
            elif kind == 8:
                for p in params:
                    p.grad.fill_(0)
            elif kind == 9:
                for p in params:
                    p.grad *= 0
            elif kind == 10:
                for p in params:
                    p.grad.data = torch.zeros_like(p)
            else:
                model.zero_grad(set_to_none=True)

        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for kind in [*range(12), *range(12)]:
            model(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
            clear(kind, model, opt)
        for kind in range(12):
            model(torch.randn(8, 3)).pow(2).mean().backward()
            clear(kind, model, opt)
            for _ in range(2):
                model(torch.randn(8, 3)).pow(2).mean().backward()
                opt.step()
                opt.zero_grad()
    """,
    "sparse gradients, zeroed in place": """
        emb = nn.Embedding(9, 3, sparse=True)
        opt = torch.optim.SparseAdam(emb.parameters())
        for _ in range(3):
            opt.zero_grad(set_to_none=False)
            emb(torch.randint(0, 9, (4,))).pow(2).sum().backward()
            opt.step()
    """,
    "accumulation": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(12):
            (model(torch.randn(8, 3)).pow(2).mean() / 4).backward()
            if (i + 1) % 4 == 0:
                opt.step()
                opt.zero_grad()
    """,
    "accumulation with a short last window": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = torch.randn(10, 8, 3)
        for epoch in range(3):
            for i, x in enumerate(batches):
                (model(x).pow(2).mean() / 4).backward()
                if (i + 1) % 4 == 0 or i + 1 == len(batches):
                    opt.step()
                    opt.zero_grad()
    """,
    "accumulation over nested micro-batches": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for batch in torch.randn(3, 8, 3):
            opt.zero_grad(set_to_none=True)
            for micro in batch.split(2):
                (model(micro).pow(2).mean() / 4).backward()
            opt.step()
    """,
    "windows of different lengths": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = 0
        for length in (3, 1, 4, 1, 5, 9, 2, 6):
            model(torch.randn(length, 3)).pow(2).sum().backward()
            seen += length
            if seen >= 8:
                opt.step()
                opt.zero_grad()
                seen = 0
    """,
    "a global counter over epochs that do not divide": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        count = 0
        for epoch in range(4):
            for x in torch.randn(5, 8, 3):
                (model(x).pow(2).mean() / 4).backward()
                count += 1
                if count % 4 == 0:
                    opt.step()
                    opt.zero_grad()
    """,
    "several losses before one step": """
        trunk, a, b = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
        for _ in range(3):
            opt.zero_grad()
            a(torch.tanh(trunk(torch.randn(8, 4)))).pow(2).mean().backward()
            b(torch.tanh(trunk(torch.randn(8, 4)))).pow(2).mean().backward()
            opt.step()
    """,
    "a gan that clears at its own step": """
        G, D = nn.Linear(2, 3), nn.Linear(3, 1)
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(3):
            fake = G(torch.randn(8, 2))
            opt_d.zero_grad()
            F.softplus(-D(torch.randn(8, 3))).mean().backward()
            F.softplus(D(fake.detach())).mean().backward()
            opt_d.step()
            opt_g.zero_grad()
            F.softplus(-D(fake)).mean().backward()
            opt_g.step()
    """,
    "SAM": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            x = torch.randn(8, 3)
            opt.zero_grad()
            model(x).pow(2).mean().backward()
            with torch.no_grad():
                moves = [0.05 * p.grad / (p.grad.norm() + 1e-12) for p in model.parameters()]
                for p, e in zip(model.parameters(), moves):
                    p.add_(e)
            opt.zero_grad()
            model(x).pow(2).mean().backward()
            with torch.no_grad():
                for p, e in zip(model.parameters(), moves):
                    p.sub_(e)
            opt.step()
    """,
    "updates by hand": """
        w = torch.randn(3, 1, requires_grad=True)
        b = torch.zeros(1, requires_grad=True)
        for _ in range(3):
            (torch.randn(8, 3) @ w + b).pow(2).mean().backward()
            with torch.no_grad():
                for p in (w, b):
                    p -= 0.1 * p.grad
                    p.grad.zero_()
    """,
    "an update by hand through autograd.grad": """
        w = torch.randn(3, 1, requires_grad=True)
        for _ in range(3):
            (g,) = torch.autograd.grad((torch.randn(8, 3) @ w).pow(2).mean(), w)
            with torch.no_grad():
                w -= 0.1 * g
    """,
    "an attack that clears": """
        model = nn.Linear(4, 3).requires_grad_(False)
        x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
        delta = torch.zeros_like(x, requires_grad=True)
        for _ in range(4):
            F.cross_entropy(model(x + delta), y).backward()
            delta.data = (delta + 0.02 * delta.grad.detach().sign()).clamp(-0.1, 0.1)
            delta.grad.zero_()
        adv = x.clone()
        for _ in range(4):
            adv = adv.detach().requires_grad_()
            F.cross_entropy(model(adv), y).backward()
            adv = adv + 0.02 * adv.grad.sign()
    """,
    "an average of the weights, and clipping that reads the gradients": """
        import copy

        model = nn.Linear(3, 1)
        shadow = copy.deepcopy(model)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4):
            opt.zero_grad()
            model(torch.randn(8, 3)).pow(2).mean().backward()
            total = sum(p.grad.norm() for p in model.parameters())
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            with torch.no_grad():
                for s, p in zip(shadow.parameters(), model.parameters()):
                    s.mul_(0.9).add_(p, alpha=0.1)
                    p.clamp_(-1, 1)
            if step == 2:
                for s, p in zip(shadow.parameters(), model.parameters()):
                    p.data.copy_(s.data)
    """,
    "two optimizers over the same parameters": """
        emb, lin = nn.Embedding(5, 3), nn.Linear(3, 1)
        params = [*emb.parameters(), *lin.parameters()]
        slow, fast = torch.optim.SGD(params, lr=0.01), torch.optim.Adam(params, lr=0.01)
        for _ in range(3):
            slow.zero_grad()
            lin(emb(torch.randint(0, 5, (8,)))).pow(2).mean().backward()
            slow.step()
            fast.step()
    """,
    "a wrapped optimizer that looks ahead": """
        class Lookahead(torch.optim.Optimizer):
            def __init__(self, base, k=2, alpha=0.5):
                super().__init__([p for g in base.param_groups for p in g["params"]], {})
                self.base, self.k, self.alpha, self.n = base, k, alpha, 0
                self.slow = [p.detach().clone() for g in base.param_groups for p in g["params"]]

            def step(self):
                self.base.step()
                self.n += 1
                if self.n % self.k == 0:
                    for s, p in zip(self.slow, self.param_groups[0]["params"]):
                        s.add_(p.data - s, alpha=self.alpha)
                        p.data.copy_(s)

        model = nn.Linear(3, 1)
        opt = Lookahead(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in range(5):
            opt.zero_grad()
            model(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
    "LBFGS": """
        coef = torch.zeros(3, requires_grad=True)
        opt = torch.optim.LBFGS([coef], max_iter=4, line_search_fn="strong_wolfe")
        x, y = torch.randn(20, 3), torch.randn(20)

        def closure():
            opt.zero_grad()
            loss = F.mse_loss(x @ coef, y)
            loss.backward()
            return loss

        for _ in range(3):
            opt.step(closure)
    """,
    "gradients projected task by task": """
        model = nn.Linear(3, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            grads = []
            for task in range(2):
                opt.zero_grad()
                model(torch.randn(8, 3))[:, task].pow(2).mean().backward()
                grads.append([p.grad.clone() for p in model.parameters()])
            for p, *parts in zip(model.parameters(), *grads):
                p.grad = sum(parts) / 2
            opt.step()
    """,
    "evaluation between steps": """
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            model.train()
            for _ in range(2):
                opt.zero_grad()
                model(torch.randn(8, 3)).pow(2).mean().backward()
                opt.step()
            model.eval()
            with torch.no_grad():
                model(torch.randn(8, 3)).pow(2).mean().item()
    """,
    "a check before the loop that clears": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.randn(8, 3)).sum().backward()
        print([p.grad.norm().item() for p in model.parameters()])
        for p in model.parameters():
            p.grad.data.zero_()
        for _ in range(3):
            model(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
            opt.zero_grad()
    """,
    "a scaler that skips and clears": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
        for _ in range(4):
            opt.zero_grad()
            scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
    """,
    "a regulariser now and then, in its own step": """
        D = nn.Sequential(nn.Linear(3, 8), nn.Softplus(), nn.Linear(8, 1))
        opt = torch.optim.Adam(D.parameters())
        for step in range(6):
            opt.zero_grad()
            F.softplus(-D(torch.randn(8, 3))).mean().backward()
            opt.step()
            if step % 2 == 0:
                real = torch.randn(8, 3, requires_grad=True)
                (g,) = torch.autograd.grad(D(real).sum(), real, create_graph=True)
                opt.zero_grad()
                (0.5 * g.pow(2).sum(1).mean()).backward()
                opt.step()
    """,
    "a regulariser now and then, in the same step": """
        model = nn.Linear(3, 1)
        opt = torch.optim.Adam(model.parameters())
        for step in range(6):
            opt.zero_grad()
            model(torch.randn(8, 3)).pow(2).mean().backward()
            if step % 3 == 0:
                sum(p.abs().sum() for p in model.parameters()).backward()
            opt.step()
    """,
    "stochastic gradient Langevin dynamics": """
        energy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(energy.parameters())
        for _ in range(3):
            x = torch.randn(8, 2)
            for _ in range(3):
                x.requires_grad_(True)
                (g,) = torch.autograd.grad(energy(x).sum(), x)
                x = (x - 0.1 * g + 0.05 * torch.randn_like(x)).detach()
            loss = energy(torch.randn(8, 2)).mean() - energy(x).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "training in two phases": """
        model = nn.Linear(3, 1)
        for lr in (0.1, 0.01):
            opt = torch.optim.SGD(model.parameters(), lr=lr)
            for _ in range(3):
                opt.zero_grad()
                model(torch.randn(8, 3)).pow(2).mean().backward()
                opt.step()
    """,
    "a saliency map in evaluation, cleared": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            model.train()
            for _ in range(3):
                opt.zero_grad()
                model(torch.randn(8, 3)).pow(2).mean().backward()
                opt.step()
            model.eval()
            x = torch.randn(1, 3, requires_grad=True)
            model(x).sum().backward()
            print(x.grad.abs().sum())
    """,
    "a model that is trained in evaluation mode": """
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        model.eval()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(8):
            (model(torch.randn(8, 3)).pow(2).mean() / 2).backward()
            if i % 2:
                opt.step()
                opt.zero_grad()
    """,
    "evaluation and training summed on purpose": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(8):
            x = torch.randn(8, 3)
            opt.zero_grad()
            if i > 2:
                model.eval()
                (model(x + 0.1).pow(2).mean() / 2).backward()
            model.train()
            (model(x).pow(2).mean() / 2).backward()
            opt.step()
    """,
    "a part in evaluation mode": """
        body, head = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), nn.Linear(4, 1)
        opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
        for i in range(8):
            body.train(i % 4 < 2)
            (head(body(torch.randn(8, 3))).pow(2).mean() / 2).backward()
            if i % 2:
                opt.step()
                opt.zero_grad()
    """,
    "a window that the end of an epoch cuts short": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for i in range(7):
                (model(torch.randn(8, 3)).pow(2).mean() / 2).backward()
                if i % 2:
                    opt.step()
                    opt.zero_grad()
            opt.step()
            opt.zero_grad()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD)
def test_the_cause_is_named(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert checked.by("stale-grad") == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD)
def test_silence(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert not checked.alarms, checked.text


def at(line: int, path: str = "/nowhere/train.py") -> Stack:
    return (Site(path, line, "train"),)


def step(calls: int, used: int, optimizer: str = "Adam", path: str = "/nowhere/train.py", **facts: Any) -> Step:
    """A step at line 9 on gradients of backward calls at line 8."""
    contributions = tuple(Contribution(number, at(8, path), "loss", number) for number in range(calls))
    use = Use(contributions, used, at(9, path) if used else (), ("model.weight",), 1)
    return Step(1, optimizer, 7, at(9, path), (use,), **facts)


def found(*steps: Step) -> list[Finding]:
    rule = StaleGrad()
    return [finding for one in (*steps, End()) for finding in rule.see(one)]


def test_the_name_of_a_dead_tensor_dies_with_it(check: Callable[[str], Any]) -> None:
    checked = check("""
        def probe():
            alphas = [torch.ones(3, requires_grad=True) for _ in range(100)]
            for alpha in alphas:
                alpha.sum().backward()
            return {id(alpha) for alpha in alphas}

        def at_the_same_address(addresses):
            tensors = [torch.ones(3, requires_grad=True) for _ in range(200)]
            return next(one for one in tensors if id(one) in addresses)

        beta = at_the_same_address(probe())
        opt = torch.optim.SGD([beta], lr=0.1)
        for _ in range(3):
            beta.pow(2).sum().backward()  # <- stale-grad
            opt.step()
    """)
    assert checked.by("stale-grad") == checked.marked, checked.text
    assert "`beta`" in checked.findings[0]["message"], checked.text


def test_how_many_calls_were_summed_and_how_many_of_them_were_stale() -> None:
    (finding,) = found(step(calls=3, used=2))
    assert (finding.site.line, finding.level) == (8, Level.ERROR)
    assert "from 3 backward calls" in finding.message
    assert "the first 2 were already applied" in finding.message


def test_fresh_gradients_are_fine() -> None:
    assert not found(step(calls=1, used=0), step(calls=4, used=0))


def test_a_second_step_on_the_same_gradient_is_fine() -> None:
    assert not found(step(calls=1, used=1))


def test_an_update_by_hand() -> None:
    (finding,) = found(step(calls=2, used=1, optimizer=""))
    assert finding.message.startswith("the manual update applies")
    assert "`model.weight.grad = None`" in finding.help


def test_a_closure() -> None:
    (finding,) = found(step(calls=4, used=3, optimizer="LBFGS", evaluations=4))
    assert "at the start of the closure" in finding.help


def test_the_largest_group_of_leaves_is_told_of() -> None:
    few, many = step(calls=2, used=1).uses[0], step(calls=3, used=2).uses[0]
    both = Step(1, "Adam", 7, at(9), (few, Use(many.contributions, 2, at(9), ("a", "b", "c"), 3)))
    (finding,) = found(both)
    assert "`a`, `b` and 1 more" in finding.message


SOURCE = """\
def train(loader):
    for epoch in range(3):
        for i, x in enumerate(loader):
            loss = f(x)
            y = x


            loss.backward()
            opt.step()
"""


@pytest.mark.parametrize(
    ("guard", "sizes", "count"),
    [
        ("if (i + 1) % 4 == 0:", [3, 4, 4, 4], 1),
        ("if (i + 1) % 4 == 0:", [4, 4, 6, 4, 6], 1),
        ("if (i + 1) % 4 == 0:", [4, 4, 4, 4, 4], 0),
        ("if (i + 1) % 4 == 0:", [4, 4, 2, 4], 0),
        ("if i % 4 == 0:", [1, 4, 4, 4], 0),
        ("if (i + 1) % 4 == 0:", [3, 4, 5, 4], 0),
        ("if tokens > 100:", [3, 4, 4, 4], 0),
    ],
)
def test_uneven_windows(tmp_path: Path, guard: str, sizes: list[int], count: int) -> None:
    path = tmp_path / "train.py"
    rows = SOURCE.splitlines()
    rows[7:] = [f"            {guard}", f"    {rows[8]}"]
    path.write_text("\n".join(rows))
    findings = found(*(step(calls=size, used=0, path=str(path)) for size in sizes))
    assert [(one.site.line, one.level) for one in findings] == [(8, Level.WARNING)] * count
