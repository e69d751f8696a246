"""Losses that are computed in each iteration and never backpropagated; and metrics, which are none."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

SETTING = """
def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))
"""

BAD = {
    "assigned over": """
        net = mlp()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(8):
            x = torch.randn(8, 4)
            loss = F.smooth_l1_loss(net(x), x.sum(1, keepdim=True))  # <- unused-loss
            loss = F.mse_loss(net(x), x[:, :1])
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "assigned over, in a trainer": """
        class Trainer:
            def __init__(self):
                self.net, self.crit = mlp(4, 3), nn.CrossEntropyLoss()
                self.opt = torch.optim.Adam(self.net.parameters())
            def losses(self, x, y):
                logits = self.net(x)
                total = self.crit(logits, y)  # <- unused-loss
                total = 0.01 * logits.pow(2).mean()
                return total
            def fit(self):
                for _ in range(8):
                    loss = self.losses(torch.randn(8, 4), torch.randint(3, (8,)))
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()
        Trainer().fit()
    """,
    "only printed, of a head that nothing else trains": """
        body, first, second = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        opt = torch.optim.Adam([*body.parameters(), *first.parameters(), *second.parameters()])
        for step in range(8):
            x = torch.randn(8, 4)
            h = body(x)
            price = F.mse_loss(first(h), x[:, :1])
            area = F.mse_loss(second(h), x[:, 1:2])  # <- unused-loss
            opt.zero_grad()
            price.backward()
            opt.step()
            print(step, price.item(), area.item())
    """,
    "the sum is printed, one part is backpropagated": """
        enc, dec = mlp(4, 4), mlp(2, 4)
        opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for step in range(8):
            x = torch.randn(8, 4)
            mu, logvar = enc(x).chunk(2, 1)
            z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
            recon = F.mse_loss(dec(z), x)
            kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()
            loss = recon + 0.1 * kl  # <- unused-loss
            opt.zero_grad()
            recon.backward()
            opt.step()
            print(step, loss.item())
    """,
    "the critic's own loss is only printed": """
        critic = mlp()
        opt = torch.optim.Adam(critic.parameters())
        for step in range(8):
            real, fake = torch.randn(8, 4, requires_grad=True), torch.randn(8, 4)
            w_loss = critic(fake).mean() - F.softplus(critic(real)).mean()  # <- unused-loss
            (g,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
            penalty = ((g.norm(2, 1) - 1) ** 2).mean()
            opt.zero_grad()
            penalty.backward()
            opt.step()
            print(w_loss.item())
    """,
}

GOOD = {
    "one of several losses, printed after each epoch": """
        body, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        opt = torch.optim.SGD([*body.parameters(), *a.parameters()], 0.1)
        for epoch in range(4):
            for _ in range(4):
                x = torch.randn(8, 4)
                h = body(x)
                losses = dict(first=F.mse_loss(a(h), x[:, :1]), second=F.l1_loss(b(h), x[:, 1:2]))
                opt.zero_grad()
                losses["first"].backward()
                opt.step()
            print({key: loss.item() for key, loss in losses.items()})
    """,
    "one of several losses, printed now and then": """
        body, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        opt = torch.optim.SGD([*body.parameters(), *a.parameters()], 0.1)
        for step in range(24):
            x = torch.randn(8, 4)
            h = body(x)
            losses = dict(first=F.mse_loss(a(h), x[:, :1]), second=F.l1_loss(b(h), x[:, 1:2]))
            opt.zero_grad()
            losses["first"].backward()
            opt.step()
            if step % 10 == 9:
                print(losses["second"].item())
    """,
    "losses of a model, each for its stage": """
        body, a, b = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        def losses_of(x):
            h = body(x)
            return dict(first=F.mse_loss(a(h), x[:, :1]), second=F.l1_loss(b(h), x[:, 1:2]))
        opt = torch.optim.SGD([*body.parameters(), *a.parameters()], 0.1)
        for _ in range(8):
            losses = losses_of(torch.randn(8, 4))
            opt.zero_grad()
            losses["first"].backward()
            opt.step()
        opt = torch.optim.SGD([*body.parameters(), *a.parameters(), *b.parameters()], 0.1)
        for _ in range(8):
            losses = losses_of(torch.randn(8, 4))
            opt.zero_grad()
            sum(losses.values()).backward()
            opt.step()
    """,
    "schedules that are tried out": """
        net = mlp()
        opt = torch.optim.Adam(net.parameters())
        schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
        print(net(torch.randn(2, 4)).mean().item())
        for step in range(8):
            opt.step()
            schedule.step()
    """,
    "a metric with a graph": """
        net = mlp()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        seen = 0.0
        for _ in range(8):
            x = torch.randn(8, 4)
            pred = net(x)
            mae = F.l1_loss(pred, x[:, :1])
            loss = F.mse_loss(pred, x[:, :1])
            opt.zero_grad()
            loss.backward()
            opt.step()
            seen += mae.item()
            print(f"{loss:.3f} {mae:.3f}")
    """,
    "a validation loss in each epoch": """
        net = mlp()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        xv = torch.randn(8, 4)
        for _ in range(8):
            x = torch.randn(8, 4)
            loss = F.mse_loss(net(x), x[:, :1])
            opt.zero_grad()
            loss.backward()
            opt.step()
            val_loss = F.mse_loss(net(xv), xv[:, :1])
            print(loss.item(), val_loss.item())
    """,
    "losses of a GAN, summed to be printed": """
        G, D = mlp(2, 4), mlp(4, 1)
        g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        bce = nn.BCEWithLogitsLoss()
        for _ in range(8):
            real, fake = torch.randn(8, 4), G(torch.randn(8, 2))
            d_opt.zero_grad()
            err_real = bce(D(real), torch.ones(8, 1))
            err_real.backward()
            err_fake = bce(D(fake.detach()), torch.zeros(8, 1))
            err_fake.backward()
            err = err_real + err_fake
            d_opt.step()
            g_opt.zero_grad()
            g_err = bce(D(fake), torch.ones(8, 1))
            g_err.backward()
            g_opt.step()
            print(err.item(), g_err.item())
    """,
    "a running total": """
        net = mlp()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        total = 0
        for i in range(8):
            x = torch.randn(8, 4)
            loss = F.mse_loss(net(x), x[:, :1]) / 2
            total = total + loss
            loss.backward()
            if i % 2:
                opt.step()
                opt.zero_grad()
                print(total.item())
                total = 0
    """,
    "losses of several tasks, summed later": """
        net = mlp(4, 3)
        opt = torch.optim.Adam(net.parameters())
        for _ in range(8):
            x = torch.randn(8, 4)
            losses = []
            for k in range(3):
                loss = F.mse_loss(net(x)[:, k], x[:, k])
                losses.append(loss)
            loss = torch.stack(losses).sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "the losses of PPO with what is logged": """
        pi, v = mlp(4, 2), mlp(4, 1)
        opt = torch.optim.Adam([*pi.parameters(), *v.parameters()])
        x, old = torch.randn(16, 4), torch.randn(16)
        a, ret = torch.randint(2, (16,)), torch.randn(16)
        for _ in range(8):
            dist = torch.distributions.Categorical(logits=pi(x))
            logp = dist.log_prob(a)
            ratio = (logp - old).exp()
            pi_loss = -torch.min(ratio * ret, ratio.clamp(0.8, 1.2) * ret).mean()
            v_loss = F.mse_loss(v(x).squeeze(-1), ret)
            approx_kl = (old - logp).mean()
            ent = dist.entropy().mean()
            loss = pi_loss + 0.5 * v_loss
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(approx_kl.item(), ent.item())
    """,
    "a head that waits for its phase": """
        body, first, second = mlp(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        opt = torch.optim.Adam([*body.parameters(), *first.parameters(), *second.parameters()])
        for step in range(20):
            x = torch.randn(8, 4)
            h = body(x)
            one, two = F.mse_loss(first(h), x[:, :1]), F.mse_loss(second(h), x[:, 1:2])
            loss = one if step < 10 else one + two
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "the loss of a closure": """
        net = mlp()
        opt = torch.optim.LBFGS(net.parameters(), max_iter=4)
        x = torch.randn(8, 4)
        def closure():
            opt.zero_grad()
            loss = F.mse_loss(net(x), x[:, :1])
            loss.backward()
            return loss
        for _ in range(6):
            loss = opt.step(closure)
            print(loss.item())
    """,
    "a warm-up, and the derivative as a loss": """
        net = mlp(1, 1)
        opt = torch.optim.Adam(net.parameters())
        for step in range(8):
            x = torch.rand(16, 1, requires_grad=True)
            (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
            loss = (slope - x.detach().cos()).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            error = (net(x) - x.sin()).abs().mean()
            print(loss.item(), error.item())
    """,
}

#: backward() is missing: the step finds nothing
STARVED = {
    "a plain loop": """
        net = mlp()
        opt = torch.optim.Adam(net.parameters())
        for step in range(6):
            x = torch.randn(8, 4)
            loss = F.mse_loss(net(x), x[:, :1])  # <- unused-loss
            opt.zero_grad()
            opt.step()
            print(loss.item())
    """,
    "a loss class, after another model was trained": """
        class Criterion(nn.Module):
            def forward(self, out, y):
                return (out - y).square().mean()
        net, teacher, criterion = mlp(), mlp(), Criterion()
        def fit(model, opt, backward):
            for step in range(30):
                x = torch.randn(8, 4)
                loss = criterion(model(x), x[:, :1])  # <- unused-loss
                opt.zero_grad()
                if backward:
                    loss.backward()
                opt.step()
        fit(teacher, torch.optim.SGD(teacher.parameters(), 0.1), True)
        student = mlp()
        def distill(opt):
            for step in range(10):
                x = torch.randn(8, 4)
                with torch.no_grad():
                    y = teacher(x)
                loss = criterion(student(x), y)  # <- unused-loss
                opt.step()
                opt.zero_grad()
        distill(torch.optim.SGD(student.parameters(), 0.1))
    """.replace("loss = criterion(model(x), x[:, :1])  # <- unused-loss", "loss = criterion(model(x), x[:, :1])"),
    "one of two networks": """
        g, d = mlp(4, 4), mlp(4, 1)
        og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
        for step in range(8):
            fake = g(torch.randn(8, 4))
            og.zero_grad()
            (-d(fake).mean()).backward()
            og.step()
            od.zero_grad()
            d_loss = F.softplus(d(fake.detach())).mean() + F.softplus(-d(torch.randn(8, 4))).mean()  # <- unused-loss
            od.step()
            print(d_loss.item())
    """,
    "a scaler, which fails": """
        net = mlp()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu")
        for step in range(6):
            x = torch.randn(8, 4)
            loss = F.mse_loss(net(x), x[:, :1])  # <- unused-loss
            opt.zero_grad()
            scaler.scale(loss)
            scaler.step(opt)
            scaler.update()
    """,
}


@pytest.mark.parametrize("script", STARVED.values(), ids=STARVED.keys())
def test_a_missing_backward_call_is_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert checked.by("unused-loss") == checked.marked, checked.text
    assert checked.explained or checked.exception is None, checked.text


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert checked.by("unused-loss") == checked.marked, checked.text
    assert {one["rule"] for one in checked.alarms} <= {"unused-loss", "unreached-parameter"}, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert not checked.by("unused-loss"), checked.text
    assert not checked.alarms, checked.text
