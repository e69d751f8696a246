"""Parameters of an optimizer that never receive a gradient, and those that are idle on purpose."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

MLP = """
import copy
def mlp(i=4, o=2):
    return nn.Sequential(nn.Linear(i, 16), nn.Tanh(), nn.Linear(16, o))
"""

BAD = {
    "a learner that is a copy": """
        m = mlp(4, 2)
        o = torch.optim.Adam(m.parameters())
        for _ in range(5):
            learner = copy.deepcopy(m)  # <- unreached-parameter
            inner = torch.optim.SGD(learner.parameters(), 0.1)
            learner(torch.randn(8, 4)).pow(2).mean().backward()
            inner.step()
            inner.zero_grad()
            loss = learner(torch.randn(8, 4)).pow(2).mean()
            o.zero_grad()
            loss.backward()
            o.step()
    """,
    "a custom Function without a gradient for its weight": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                return x * w
            @staticmethod
            def backward(ctx, grad):
                x, w = ctx.saved_tensors
                return grad * w, None  # <- unreached-parameter
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.w = mlp(4, 2), nn.Parameter(torch.ones(2))
            def forward(self, x):
                return Scale.apply(self.net(x), self.w)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a custom Function that computes its output again, with gradients off": """
        class Mix(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                return (x * w).tanh()
            @staticmethod
            def backward(ctx, grad):
                x, w = (one.detach().requires_grad_() for one in ctx.saved_tensors)
                out = (x * w).tanh()
                out.requires_grad_()
                return torch.autograd.grad(out, (x, w), grad, allow_unused=True)  # <- unreached-parameter
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.w, self.out = nn.Parameter(torch.ones(4)), nn.Linear(4, 1)
            def forward(self, x):
                return self.out(Mix.apply(x, self.w))
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a quantizer that stops what lies before it": """
        class Quantize(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, bits):
                return torch.round(x * bits) / bits
            @staticmethod
            def backward(ctx, grad):
                return None, None  # <- unreached-parameter
        enc, dec = mlp(4, 3), mlp(3, 2)
        o = torch.optim.SGD([*enc.parameters(), *dec.parameters()], 0.1)
        for _ in range(6):
            z = Quantize.apply(enc(torch.randn(8, 4)), 8)
            o.zero_grad()
            dec(z).pow(2).mean().backward()
            o.step()
    """,
    "a detach in the middle": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc = mlp(4, 8)
                self.dec = mlp(8, 4)
            def forward(self, x):
                z = self.enc(x)
                z = z.detach()  # <- unreached-parameter
                return self.dec(z)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            l = m(torch.randn(8, 4)).pow(2).mean()
            print(l.item())
            l.backward()
            o.step()
    """,
    "a number computed from a parameter": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc = mlp(4, 3)
                self.scale = nn.Parameter(torch.tensor(2.6))
            def forward(self, x):
                scale = self.scale.exp().item()  # <- unreached-parameter
                return scale * self.enc(x)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            l = F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long())
            l.backward()
            o.step()
            print(l.item())
    """,
    "an index computed from a parameter": """
        class Crop(nn.Module):
            def __init__(self):
                super().__init__()
                self.where, self.head = nn.Linear(8, 1), nn.Linear(4, 2)
            def forward(self, x):
                start = torch.sigmoid(self.where(x)) * 4
                rows = []
                for i in range(len(x)):
                    first = int(start[i])  # <- unreached-parameter
                    rows.append(x[i, first:first + 4])
                return self.head(torch.stack(rows))
        m = Crop()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            F.cross_entropy(m(torch.randn(8, 8)), torch.zeros(8).long()).backward()
            o.step()
    """,
    "a code book without a loss of its own": """
        class Codes(nn.Module):
            def __init__(self):
                super().__init__()
                self.book, self.enc, self.dec = nn.Embedding(6, 3), nn.Linear(4, 3), nn.Linear(3, 4)
            def forward(self, x):
                z = self.enc(x)
                q = self.book(torch.cdist(z, self.book.weight).argmin(1))
                return self.dec(z + (q - z).detach())  # <- unreached-parameter
        m = Codes()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a sample without a path, beside a check of arguments": """
        enc, dec = mlp(4, 6), mlp(3, 4)
        o = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(6):
            x = torch.randn(8, 4)
            mean, scale = enc(x).chunk(2, 1)
            dist = torch.distributions.Normal(mean, F.softplus(scale) + 0.01)
            z = dist.sample()  # <- unreached-parameter
            loss = F.mse_loss(dec(z), x)
            o.zero_grad()
            loss.backward()
            o.step()
    """,
    "a number taken at construction, printed in each iteration": """
        class Gate(nn.Module):
            def __init__(self, threshold):
                super().__init__()
                self.threshold = threshold
            def forward(self, x):
                return torch.relu(x - self.threshold)
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.level = nn.Parameter(torch.tensor(1.0))
                self.net = mlp(4, 2)
                self.gate = Gate(self.level.item())  # <- unreached-parameter
            def forward(self, x):
                return self.gate(self.net(x))
        m = M()
        o = torch.optim.Adam(m.parameters())
        levels = []
        for _ in range(6):
            o.zero_grad()
            F.mse_loss(m(torch.randn(8, 4)), torch.ones(8, 2)).backward()
            o.step()
            level = m.level.item()
            levels.append(level)
            print(f"{m.level.item():.3f}")
    """,
    "a straight-through sum whose second loss reads the sum": """
        class Codes(nn.Module):
            def __init__(self):
                super().__init__()
                self.book = nn.Embedding(6, 3)
            def forward(self, z):
                q = self.book(torch.cdist(z, self.book.weight).argmin(1))
                q = z + (q - z).detach()  # <- unreached-parameter
                return q, F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        enc, codes, dec = mlp(4, 3), Codes(), mlp(3, 4)
        o = torch.optim.Adam([*enc.parameters(), *codes.parameters(), *dec.parameters()])
        for _ in range(6):
            x = torch.randn(8, 4)
            q, extra = codes(enc(x))
            loss = F.mse_loss(dec(q), x) + extra
            o.zero_grad()
            loss.backward()
            o.step()
    """,
    "a cut value that other values are computed from": """
        enc, dec = mlp(4, 3), mlp(3, 4)
        o = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        def code(x):
            z = enc(x)
            print((z > 0).float().mean().item(), z.argmax(1).tolist())
            return z.data  # <- unreached-parameter
        for _ in range(6):
            x = torch.randn(8, 4)
            z = F.normalize(code(x), dim=1).clone()
            z = torch.cat([z[:4] * 2, z[4:] / 2])
            loss = F.mse_loss(dec(z), x)
            o.zero_grad()
            loss.backward()
            o.step()
    """,
    "numbers of a list that come back as a tensor": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.temps, self.net = nn.ParameterList(nn.Parameter(torch.rand(())) for _ in range(2)), mlp(4, 2)
            def forward(self, x):
                temps = [t.exp().item() for t in self.temps]  # <- unreached-parameter
                return self.net(x) / torch.tensor(temps)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "through numpy and back": """
        enc, dec = mlp(4, 3), mlp(3, 4)
        o = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(6):
            x = torch.randn(8, 4)
            z = torch.from_numpy(enc(x).detach().numpy())  # <- unreached-parameter
            loss = F.mse_loss(dec(z), x)
            o.zero_grad()
            loss.backward()
            o.step()
    """,
    "a result assigned over": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))
            def forward(self, x):
                y = torch.relu(self.a(x))
                z = torch.relu(self.b(y))  # <- unreached-parameter
                z = torch.relu(self.c(y))
                return z
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "an encoder under no_grad": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.enc = nn.LSTM(4, 8, batch_first=True)
                self.dec = mlp(8, 4)
            def forward(self, x):
                with torch.no_grad():  # <- unreached-parameter
                    z, _ = self.enc(x)
                return self.dec(z[:, -1])
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 5, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a parameter read as a number": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp(4, 4)
                self.temp = nn.Parameter(torch.ones(1))
            def forward(self, x):
                return self.net(x) / self.temp.item()  # <- unreached-parameter
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a comparison with a parameter": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp(4, 4)
                self.thr = nn.Parameter(torch.zeros(4))
            def forward(self, x):
                h = self.net(x)
                keep = (h > self.thr).float()  # <- unreached-parameter
                return h * keep
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a parameter that nothing uses": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp(4, 4)
                self.scale = nn.Parameter(torch.ones(4))  # <- unreached-parameter
            def forward(self, x):
                return self.net(x)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a module that nothing calls": """
        class Aux(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 4)
                self.b = nn.Linear(4, 4)
            def forward(self, x):
                return self.b(self.a(x))
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp(4, 4)
                self.extra = Aux()  # <- unreached-parameter
            def forward(self, x):
                return self.net(x)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a decorator": """
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp(4, 8)
            @torch.no_grad()  # <- unreached-parameter
            def forward(self, x):
                return self.net(x)
        enc, dec = Encoder(), nn.Linear(8, 4)
        o = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
        for _ in range(5):
            o.zero_grad()
            dec(enc(torch.randn(8, 4))).pow(2).mean().backward()
            o.step()
    """,
    "a view of a prompt, taken with gradients off": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.prompt = nn.Parameter(torch.randn(2, 4))
                self.out = mlp()
            def forward(self, x):
                with torch.no_grad():  # <- unreached-parameter
                    x = torch.cat([self.prompt.expand(2, 4), x])
                return self.out(x)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "numbers of a parameter, that are printed as well": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.weights = mlp(), nn.Parameter(torch.ones(2))
            def forward(self, x):
                return sum(w * y for w, y in zip(self.weights.tolist(), self.net(x).unbind(1)))  # <- unreached-parameter
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
            print(m.weights.tolist())
    """,
    "the result of a module that computes in several lines, overwritten": """
        class Pool(nn.Module):
            def __init__(self):
                super().__init__()
                self.score = nn.Linear(4, 1)
            def forward(self, h):
                weights = self.score(h).softmax(0)
                return (weights * h).sum(0)
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.pool, self.out = Pool(), mlp()
            def forward(self, x):
                pooled = self.pool(x)  # <- unreached-parameter
                pooled = x[-1]
                return self.out(pooled)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a product that is written into a weight": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.u, self.v = nn.Parameter(torch.randn(2, 1)), nn.Parameter(torch.randn(1, 4))
                self.lin = nn.Linear(4, 2)
            def forward(self, x):
                self.lin.weight.data.copy_(self.u @ self.v)  # <- unreached-parameter
                return self.lin(x)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for i in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
}

GOOD = {
    "a custom Function that withholds what nobody needs": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w, warm):
                ctx.save_for_backward(x, w)
                ctx.warm = warm
                return x * w
            @staticmethod
            def backward(ctx, grad):
                x, w = ctx.saved_tensors
                if ctx.warm:
                    return grad * w, None, None
                return grad * w, (grad * x).sum(0) if ctx.needs_input_grad[1] else None, None
        net, w, frozen = mlp(4, 2), nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2), requires_grad=False)
        o = torch.optim.Adam([*net.parameters(), w, frozen])
        for i in range(8):
            o.zero_grad()
            h = Scale.apply(net(torch.randn(8, 4)), w, i < 5)
            Scale.apply(h, frozen, False).pow(2).mean().backward()
            o.step()
    """,
    "heads of tasks whose turn does not come, in checkpoints and in a teacher": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = mlp(4, 8)
                self.heads = nn.ModuleDict({task: nn.Linear(8, 2) for task in ("first", "second", "third")})
            def forward(self, x, task):
                return self.heads[task](self.body(x))
        m = M()
        teacher = copy.deepcopy(m).requires_grad_(False)
        o = torch.optim.Adam(m.parameters())
        for i in range(6):
            loss = m(torch.randn(8, 4), "first").pow(2).mean()
            o.zero_grad()
            loss.backward()
            o.step()
            saved = {name: p.clone() for name, p in m.state_dict().items()}
            with torch.no_grad():
                for mine, own in zip(teacher.parameters(), m.parameters()):
                    mine.lerp_(own.detach(), 0.1)
    """,
    "steps that only try a schedule out": """
        net = mlp(4, 1)
        before = copy.deepcopy(net.state_dict())
        opt = torch.optim.Adam(net.parameters(), 1.0)
        schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
        for _ in range(5):
            opt.step()
            schedule.step()
        assert all(torch.equal(a, b) for a, b in zip(before.values(), net.state_dict().values()))
        w = torch.randn(3, requires_grad=True)
        w.pow(2).sum().backward()
    """,
    "a last bias that the derivative does not depend on, and values that are saved": """
        net = mlp(1, 1)
        opt = torch.optim.Adam(net.parameters(), 1e-2)
        for _ in range(6):
            x = torch.rand(8, 1, requires_grad=True)
            slope = torch.autograd.grad(net(x).sum(), x, create_graph=True)[0]
            opt.zero_grad()
            (slope - x.detach().cos()).pow(2).mean().backward()
            opt.step()
            best = {name: p.detach().clone() for name, p in net.named_parameters()}
    """,
    "a loaded encoder under no_grad": """
        class M(nn.Module):
            def __init__(self, state):
                super().__init__()
                self.encoder, self.head = mlp(4, 8), nn.Linear(8, 2)
                self.encoder.load_state_dict(state)
            def forward(self, x):
                with torch.no_grad():
                    h = self.encoder(x)
                return self.head(h)
        m = M(mlp(4, 8).state_dict())
        o = torch.optim.Adam(m.parameters(), 0.01)
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a slow copy in the same optimizer": """
        class B(nn.Module):
            def __init__(self):
                super().__init__()
                self.online = mlp()
                self.slow = mlp()
                self.slow.load_state_dict(self.online.state_dict())
            @torch.no_grad()
            def update(self):
                for p, q in zip(self.online.parameters(), self.slow.parameters()):
                    q.data.mul_(0.9).add_(p.data, alpha=0.1)
            def forward(self, x):
                with torch.no_grad():
                    t = self.slow(x)
                return F.mse_loss(self.online(x), t + 1)
        m = B()
        o = torch.optim.Adam(m.parameters(), 0.01)
        for _ in range(8):
            o.zero_grad()
            m(torch.randn(8, 4)).backward()
            o.step()
            m.update()
    """,
    "a value that is logged under a name, of a parameter that waits for its phase": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.heads = mlp(4, 2), nn.ModuleList(nn.Linear(2, 1) for _ in range(2))
            def forward(self, x, head=0):
                return self.heads[head](self.net(x))
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
            metrics = {"bias": m.heads[1].bias.item(), "norm": m.heads[1].weight.norm().item()}
    """,
    "experts without a sample": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.experts = nn.ModuleList((mlp() for _ in range(4)))
                self.gate = nn.Linear(4, 4)
            def forward(self, x):
                g = self.gate(x).softmax(-1)
                k = g.mean(0).argmax().item()
                return self.experts[k](x) * g[:, k:k + 1]
        m = M()
        o = torch.optim.SGD(m.parameters(), 0.01)
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a head of another phase": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = mlp(4, 8)
                self.pre = nn.Linear(8, 4)
                self.cls = nn.Linear(8, 2)
            def forward(self, x, phase):
                h = self.body(x)
                return self.pre(h) if phase == 0 else self.cls(h)
        m = M()
        o = torch.optim.SGD(m.parameters(), 0.01)
        for i in range(8):
            o.zero_grad()
            m(torch.randn(8, 4), 0).pow(2).mean().backward()
            o.step()
    """,
    "a layer that is only copied": """
        class T(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
                self.enc = nn.TransformerEncoder(self.layer, 2)
                self.out = nn.Linear(8, 2)
            def forward(self, x):
                return self.out(self.enc(x)).mean(1)
        m = T()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(4, 5, 8)).pow(2).mean().backward()
            o.step()
    """,
    "frozen and in evaluation mode": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone = mlp(4, 8).eval()
                self.fc = nn.Linear(8, 2)
            def forward(self, x):
                with torch.no_grad():
                    h = self.backbone(x)
                return self.fc(h)
        m = M()
        o = torch.optim.SGD(m.parameters(), 0.1)
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "low rank adapters": """
        class L(nn.Module):
            def __init__(self):
                super().__init__()
                self.base = nn.Linear(4, 4)
                self.base.requires_grad_(False)
                self.A = nn.Parameter(torch.randn(2, 4) * 0.1)
                self.B = nn.Parameter(torch.zeros(4, 2))
            def forward(self, x):
                return self.base(x) + x @ self.A.t() @ self.B.t()
        m = nn.Sequential(L(), nn.ReLU(), L())
        o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad])
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a fixed random target": """
        class RND(nn.Module):
            def __init__(self):
                super().__init__()
                self.target = mlp()
                self.predictor = mlp()
            def forward(self, x):
                with torch.no_grad():
                    t = self.target(x)
                return F.mse_loss(self.predictor(x), t)
        m = RND()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).backward()
            o.step()
    """,
    "two networks, two optimizers": """
        g, d = (mlp(4, 2), mlp(2, 1))
        og, od = (torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters()))
        for _ in range(6):
            f = g(torch.randn(8, 4))
            od.zero_grad()
            (d(f.detach()).mean() - d(torch.randn(8, 2)).mean()).backward()
            od.step()
            og.zero_grad()
            (-d(f).mean()).backward()
            og.step()
    """,
    "a codebook of moving averages, replaced in each forward pass": """
        class Quantizer(nn.Module):
            def __init__(self):
                super().__init__()
                self.codes = nn.Embedding(5, 4)
                self.sums = nn.Parameter(torch.randn(5, 4))
            def forward(self, z):
                index = torch.cdist(z, self.codes.weight).argmin(1)
                q = self.codes(index)
                if self.training:
                    sums = torch.zeros(5, 4).index_add(0, index, z)
                    self.sums = nn.Parameter(self.sums * 0.9 + 0.1 * sums)
                    self.codes.weight = nn.Parameter(self.sums / 2)
                return F.mse_loss(q.detach(), z), z + (q - z).detach()
        enc, vq, dec = nn.Linear(4, 4), Quantizer(), nn.Linear(4, 4)
        m = nn.ModuleList([enc, vq, dec])
        o = torch.optim.Adam(m.parameters())
        for _ in range(8):
            x = torch.randn(8, 4)
            loss, q = vq(enc(x))
            loss = loss + F.mse_loss(dec(q), x)
            o.zero_grad()
            loss.backward()
            o.step()
    """,
    "weights that are only looked at": """
        m = nn.ModuleDict({"used": mlp(), "spare": mlp()})
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m["used"](torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
            with torch.no_grad():
                print([p.view(-1)[0].item() for p in m.parameters()])
    """,
}

#: a model of two parts, and its training
PARTS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = mlp(4, 4), nn.Linear(4, 1)
        self.calls = 0
    def features(self, x):
        return self.body(x)
    def forward(self, x):
        self.calls += 1
        return self.head(self.features(x))
"""
TRAIN = """
net = Net()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for step in range(24):
    loss = net(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

LATE = {
    "detached after the eleventh call": PARTS.replace(
        "return self.body(x)",
        "h = self.body(x)\n        return h.detach() if self.calls > 10 else h  # <- unreached-parameter",
    )
    + TRAIN,
    "numbers from a helper": PARTS.replace(
        "return self.body(x)", "return as_numbers(self.body(x)) if self.calls > 12 else self.body(x)"
    ).replace(
        "class Net",
        "def as_numbers(h):\n    return torch.tensor(h.tolist())  # <- unreached-parameter\n\nclass Net",
    )
    + TRAIN,
    "a view made under inference_mode": PARTS.replace(
        "return self.body(x)",
        "h = self.body(x)\n"
        "        if self.calls > 9:\n"
        "            with torch.inference_mode():  # <- unreached-parameter\n"
        "                h = torch.flatten(h.view(-1, 2, 2), 1)\n"
        "        return h",
    )
    + TRAIN,
    "one of two losses": """
        shared, a, b = mlp(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)
        opt = torch.optim.SGD([*shared.parameters(), *a.parameters()], 0.1)
        other = torch.optim.SGD(b.parameters(), 0.1)
        for step in range(30):
            x = torch.randn(8, 4)
            h = shared(x)
            if step >= 15:
                h = h.data  # <- unreached-parameter
            opt.zero_grad()
            a(h).square().mean().backward()
            opt.step()
            other.zero_grad()
            b(shared(x).detach()).square().mean().backward()
            other.step()
    """,
}

STAGED = {
    "frozen by requires_grad": PARTS
    + TRAIN.replace(
        "    loss = net",
        "    if step == 12:\n        net.body.requires_grad_(False)\n        net.body.zero_grad()\n    loss = net",
    ),
    "an auxiliary loss that ends": """
        net, aux = mlp(4, 4), nn.Linear(4, 2)
        opt = torch.optim.Adam([*net.parameters(), *aux.parameters()])
        for step in range(24):
            h = net(torch.randn(8, 4))
            loss = h.square().mean()
            if step < 10:
                loss = loss + 0.1 * aux(h.detach()).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a cut that comes and goes": PARTS.replace(
        "return self.body(x)", "h = self.body(x)\n        return h.detach() if self.calls % 4 == 3 else h"
    )
    + TRAIN,
    "a second head that takes over": PARTS
    + """
net, second = Net(), nn.Linear(4, 1)
opt = torch.optim.Adam([*net.parameters(), *second.parameters()], 1e-2)
for step in range(24):
    x = torch.randn(8, 4)
    h = net.features(x)
    loss = (net.head(h) - x[:, :1]).square().mean()
    if step >= 12:
        loss = (net.head(h).detach() + second(h.detach()) - x[:, :1]).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a second stage with an optimizer of its own": PARTS
    + TRAIN
    + """
opt = torch.optim.Adam(net.head.parameters(), 1e-2)
def fit(features):
    for step in range(12):
        loss = net.head(features(torch.randn(8, 4))).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
fit(lambda x: net.body(x).detach())
""",
    "a discriminator that starts later": """
        g, d = mlp(4, 4), mlp(4, 1)
        og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
        for step in range(24):
            fake = g(torch.randn(8, 4))
            loss = fake.square().mean()
            if step > 8:
                loss = loss - d(fake).mean()
            og.zero_grad()
            loss.backward()
            og.step()
            if step > 8:
                od.zero_grad()
                d(fake.detach()).mean().backward()
                od.step()
    """,
}

#: cuts behind a flag or a named threshold: notes
SWITCHED = {
    "detached where a flag says so": PARTS.replace(
        "return self.body(x)", "h = self.body(x)\n        if self.frozen:\n            h = h.detach()\n        return h"
    ).replace("self.calls = 0", "self.calls, self.frozen = 0, False")
    + TRAIN.replace("    loss =", "    net.frozen = step >= 12\n    loss ="),
    "detached from a named threshold on": PARTS.replace(
        "return self.body(x)", "h = self.body(x)\n        return h.detach() if self.calls >= FREEZE_AFTER else h"
    ).replace("class Net", "FREEZE_AFTER = 12\nclass Net")
    + TRAIN,
    "set_grad_enabled with a flag": PARTS
    + TRAIN.replace(
        "    loss = net(torch.randn(8, 4))",
        "    train_body = step < 10\n"
        "    with torch.set_grad_enabled(train_body):\n"
        "        h = net.features(torch.randn(8, 4))\n"
        "    loss = net.head(h)",
    ),
    "no_grad in the branch of a flag": PARTS.replace(
        "return self.body(x)",
        "if not self.tune:\n            with torch.no_grad():\n                return self.body(x)\n        return self.body(x)",
    ).replace("self.calls = 0", "self.calls, self.tune = 0, True")
    + TRAIN.replace("    loss =", "    if step == 12:\n        net.tune = False\n    loss ="),
}


@pytest.mark.parametrize("script", SWITCHED.values(), ids=SWITCHED.keys())
def test_a_switched_stage_is_a_note(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert not checked.alarms, checked.text
    assert "on purpose" in checked.text, checked.text


@pytest.mark.parametrize("script", LATE.values(), ids=LATE.keys())
def test_a_late_cut_is_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert checked.by("unreached-parameter") == checked.marked, checked.text
    assert {one["rule"] for one in checked.alarms} == {"unreached-parameter"}, checked.text


@pytest.mark.parametrize("script", STAGED.values(), ids=STAGED.keys())
def test_stages_are_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert not checked.alarms, checked.text


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert {pair for pair in checked.by("unreached-parameter") if pair[1] in loud(checked)} == checked.marked, (
        checked.text
    )


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert not [one for one in checked.alarms if one["rule"] == "unreached-parameter"], checked.text


def loud(checked: Any) -> set[int]:
    """Lines of findings that are more than a note."""
    return {one["line"] for one in checked.alarms if one["rule"] == "unreached-parameter"}
