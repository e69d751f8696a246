"""Terms of a loss that reach nothing which their value depends on; and stop-gradients that are meant."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

SETTING = """
import copy
def mlp(i=4, o=1):
    return nn.Sequential(nn.Linear(i, 8), nn.Tanh(), nn.Linear(8, o))
"""

BAD = {
    "the discriminator is given a detached fake in the generator's step": """
        G, D = mlp(2, 4), mlp(4, 1)
        g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        bce = nn.BCEWithLogitsLoss()
        for _ in range(8):
            real, z = torch.randn(8, 4), torch.randn(8, 2)
            fake = G(z)
            adv = bce(D(fake.detach()), torch.ones(8, 1))  # <- dead-loss-term
            loss = adv + 10 * F.l1_loss(fake, real)
            g_opt.zero_grad()
            loss.backward()
            g_opt.step()
            d_loss = bce(D(real), torch.ones(8, 1)) + bce(D(fake.detach()), torch.zeros(8, 1))
            d_opt.zero_grad()
            d_loss.backward()
            d_opt.step()
    """,
    "conditioned on features that are not detached": """
        class Gan:
            def __init__(self):
                self.enc, self.gen, self.disc = mlp(4, 3), mlp(5, 4), mlp(7, 1)
                self.g_opt = torch.optim.Adam([*self.enc.parameters(), *self.gen.parameters()])
                self.d_opt = torch.optim.Adam(self.disc.parameters())
            def judge(self, image, f):
                return self.disc(torch.cat([image, f], 1))
            def step(self, x, target):
                f = self.enc(x)
                fake = self.gen(torch.cat([f, torch.randn(len(x), 2)], 1))
                frozen = fake.detach()  # <- dead-loss-term
                g_adv = -self.judge(frozen, f).mean()
                g_rec = (fake - target).abs().mean()
                self.g_opt.zero_grad()
                (g_adv + 5 * g_rec).backward()
                self.g_opt.step()
                d = self.judge(fake.detach(), f.detach()).mean() - self.judge(target, f.detach()).mean()
                self.d_opt.zero_grad()
                d.backward()
                self.d_opt.step()
        gan = Gan()
        for _ in range(8):
            gan.step(torch.randn(8, 4), torch.randn(8, 4))
    """,
    "a regularizer under no_grad": """
        net = mlp()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        def size(model):
            with torch.no_grad():
                return sum(p.pow(2).sum() for p in model.parameters())  # <- dead-loss-term
        for _ in range(8):
            x = torch.randn(8, 4)
            loss = F.mse_loss(net(x), x[:, :1]) + 1e-3 * size(net)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a number that is added": """
        net = mlp()
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(8):
            x = torch.randn(8, 4)
            pred = net(x)
            rough = pred.diff(dim=0).pow(2).mean().item()  # <- dead-loss-term
            loss = F.mse_loss(pred, x[:, :1]) + rough
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a term that is made into a tensor again": """
        net = mlp(4, 2)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(8):
            x = torch.randn(8, 4)
            pred = net(x)
            q_loss = F.mse_loss(pred[:, 0], x[:, 0])
            q_loss = torch.tensor(q_loss.item(), requires_grad=True)  # <- dead-loss-term
            loss = F.mse_loss(pred[:, 1], x[:, 1]) + q_loss
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "hard decisions": """
        net = mlp(4, 3)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(8):
            x, y = torch.randn(8, 4), torch.randint(3, (8,))
            logits = net(x)
            wrong = (logits.argmax(1) != y).float().mean()  # <- dead-loss-term
            loss = F.cross_entropy(logits, y) + 0.5 * wrong
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
}

GOOD = {
    "the discriminator's step": """
        G, D = mlp(2, 4), mlp(4, 1)
        g_opt, d_opt = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        bce = nn.BCEWithLogitsLoss()
        for _ in range(8):
            real, fake = torch.randn(8, 4), G(torch.randn(8, 2))
            d_loss = bce(D(real), torch.ones(8, 1)) + bce(D(fake.detach()), torch.zeros(8, 1))
            d_opt.zero_grad()
            d_loss.backward()
            d_opt.step()
            g_loss = bce(D(fake), torch.ones(8, 1)) + F.l1_loss(fake, real)
            g_opt.zero_grad()
            g_loss.backward()
            g_opt.step()
    """,
    "a commitment loss and a straight-through sum": """
        enc, book, dec = mlp(4, 3), nn.Embedding(6, 3), mlp(3, 4)
        opt = torch.optim.Adam([*enc.parameters(), *book.parameters(), *dec.parameters()])
        for _ in range(8):
            x = torch.randn(8, 4)
            z = enc(x)
            q = book(torch.cdist(z, book.weight).argmin(1))
            extra = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
            loss = F.mse_loss(dec(z + (q - z).detach()), x) + extra
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a quantized autoencoder with a discriminator": """
        enc, book, dec, D = mlp(4, 3), nn.Embedding(6, 3), mlp(3, 4), mlp(4, 1)
        opt = torch.optim.Adam([*enc.parameters(), *book.parameters(), *dec.parameters()])
        d_opt = torch.optim.Adam(D.parameters())
        for _ in range(8):
            x = torch.randn(8, 4)
            z = enc(x)
            q = book(torch.cdist(z, book.weight).argmin(1))
            extra = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
            recon = dec(z + (q - z).detach())
            nll = F.mse_loss(recon, x)
            g_loss = -D(recon).mean()
            (a,) = torch.autograd.grad(nll, dec[2].weight, retain_graph=True)
            (b,) = torch.autograd.grad(g_loss, dec[2].weight, retain_graph=True)
            weight = (a.norm() / (b.norm() + 1e-4)).clamp(0, 1e4).detach()
            loss = nll + weight * g_loss + extra
            opt.zero_grad()
            loss.backward()
            opt.step()
            d_loss = F.relu(1 - D(x)).mean() + F.relu(1 + D(recon.detach())).mean()
            d_opt.zero_grad()
            d_loss.backward()
            d_opt.step()
    """,
    "stop-gradients of a siamese network": """
        f, h = mlp(4, 3), nn.Linear(3, 3)
        opt = torch.optim.SGD([*f.parameters(), *h.parameters()], 0.1)
        def D(p, z):
            return -F.cosine_similarity(p, z.detach(), dim=-1).mean()
        for _ in range(8):
            x = torch.randn(8, 4)
            z1, z2 = f(x + 0.1 * torch.randn_like(x)), f(x + 0.1 * torch.randn_like(x))
            loss = D(h(z1), z2) / 2 + D(h(z2), z1) / 2
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "an advantage, entropy and a value loss": """
        body, pi, v = mlp(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
        opt = torch.optim.Adam([*body.parameters(), *pi.parameters(), *v.parameters()])
        for _ in range(8):
            x, ret = torch.randn(16, 4), torch.randn(16)
            h = body(x)
            dist = torch.distributions.Categorical(logits=pi(h))
            a, value = dist.sample(), v(h).squeeze(-1)
            adv = ret - value.detach()
            loss = -(dist.log_prob(a) * adv).mean() + 0.5 * F.mse_loss(value, ret) - 0.01 * dist.entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a detached total that is logged": """
        net = mlp(4, 2)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(8):
            x = torch.randn(8, 4)
            one, two = F.mse_loss(net(x)[:, 0], x[:, 0]), F.mse_loss(net(x)[:, 1], x[:, 1])
            opt.zero_grad()
            one.backward()
            (two + one.detach()).backward()
            opt.step()
    """,
    "an actor through a critic, with a learned temperature": """
        actor, q = mlp(3, 2), mlp(4, 1)
        log_alpha = torch.zeros((), requires_grad=True)
        a_opt, q_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(q.parameters())
        t_opt = torch.optim.Adam([log_alpha])
        for _ in range(8):
            s = torch.randn(8, 3)
            mu, log_std = actor(s).chunk(2, 1)
            dist = torch.distributions.Normal(mu, log_std.exp())
            a = dist.rsample()
            loss = (log_alpha.exp().detach() * dist.log_prob(a) - q(torch.cat([s, a], 1))).mean()
            a_opt.zero_grad()
            loss.backward()
            a_opt.step()
            q_opt.zero_grad()
            F.mse_loss(q(torch.cat([s, a.detach()], 1)), torch.randn(8, 1)).backward()
            q_opt.step()
            t_opt.zero_grad()
            (-(log_alpha * (dist.log_prob(a).detach() - 1).mean())).backward()
            t_opt.step()
    """,
    "weights that are functions of the losses": """
        net = mlp(4, 2)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(8):
            x = torch.randn(8, 4)
            losses = torch.stack([F.mse_loss(net(x)[:, k], x[:, k]) for k in range(2)])
            weights = F.softmax(losses.detach(), 0)
            loss = (weights * losses).sum() + losses[0] / losses[0].item()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a commitment loss of a model that is gone when the next one trains": """
        class Quantizer(nn.Module):
            def __init__(self):
                super().__init__()
                self.codes = nn.Embedding(5, 2)
            def forward(self, z):
                q = self.codes(torch.cdist(z, self.codes.weight).argmin(1))
                return F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z), z + (q - z).detach()
        for vq in (Quantizer(), Quantizer()):
            enc, dec = nn.Linear(4, 2), nn.Linear(2, 4)
            model = nn.ModuleList([enc, vq, dec])
            opt = torch.optim.Adam(model.parameters())
            for _ in range(7):
                x = torch.randn(8, 4)
                commitment, q = vq(enc(x))
                loss = commitment + F.mse_loss(dec(q), x)
                opt.zero_grad()
                loss.backward()
                opt.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert checked.by("dead-loss-term") == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(SETTING + dedent(script))
    assert not checked.alarms, checked.text
