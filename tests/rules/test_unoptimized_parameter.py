"""Parameters that receive gradients and are in no optimizer, and those that somebody else updates."""

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
    "a parameter that is clamped into a new one": """
        class Gate(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.scale = mlp(4, 2), nn.Parameter(torch.ones(2))
            def forward(self, x):
                return self.net(x) * self.scale
            def limit(self):
                self.scale = nn.Parameter(self.scale.clamp(0, 2))  # <- unoptimized-parameter
        m = Gate()
        o = torch.optim.Adam(m.parameters())
        for _ in range(8):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
            m.limit()
    """,
    "weights that are normalized into new ones": """
        m = mlp(4, 2)
        o = torch.optim.SGD(m.parameters(), 0.1)
        for _ in range(8):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
            w = m[0].weight.detach()
            m[0].weight = nn.Parameter(w / w.norm(dim=1, keepdim=True))  # <- unoptimized-parameter
    """,
    "a temperature created in a loss function": """
        def contrastive(a, b):
            scale = nn.Parameter(torch.tensor(2.6)).exp()  # <- unoptimized-parameter
            return F.cross_entropy(scale * a @ b.t(), torch.arange(len(a)))
        m = mlp(4, 8)
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            x = torch.randn(8, 4)
            loss = contrastive(m(x), m(x + 0.1))
            o.zero_grad()
            loss.backward()
            o.step()
    """,
    "a projection created in a loss function": """
        class Trainer:
            def __init__(self):
                self.net = mlp(4, 8)
                self.opt = torch.optim.Adam(self.net.parameters())
            def distill(self, h, target):
                proj = nn.Linear(8, 3)  # <- unoptimized-parameter
                return F.mse_loss(proj(h), target)
            def fit(self):
                for _ in range(6):
                    loss = self.distill(self.net(torch.randn(8, 4)), torch.zeros(8, 3))
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()
        Trainer().fit()
    """,
    "a parameter that is cast in the constructor, by a function that trains": """
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp(4, 2).double()
                self.scale = nn.Parameter(torch.ones(2)).to(torch.float64)  # <- unoptimized-parameter
            def forward(self, x):
                return self.net(x) * self.scale
        def train():
            m = Scaled()
            o = torch.optim.Adam(m.parameters())
            for _ in range(6):
                loss = m(torch.randn(8, 4).double()).pow(2).mean()
                o.zero_grad()
                loss.backward()
                o.step()
        train()
    """,
    "layers replaced half-way": """
        m = mlp(4, 2)
        o = torch.optim.Adam(m.parameters())  # <- unoptimized-parameter
        def epoch(steps):
            for _ in range(steps):
                loss = m(torch.randn(8, 4)).pow(2).mean()
                o.zero_grad()
                loss.backward()
                o.step()
        epoch(6)
        m[0], m[2] = nn.Linear(4, 8), nn.Linear(8, 2)
        epoch(6)
    """,
    "blocks in a list": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.inp = nn.Linear(4, 8)
                self.blocks = [mlp(8, 8) for _ in range(3)]  # <- unoptimized-parameter
                self.out = nn.Linear(8, 2)
            def forward(self, x):
                x = self.inp(x)
                for b in self.blocks:
                    x = x + b(x)
                return self.out(x)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "parameters appended to a list": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.inp = nn.Linear(4, 8)
                self.gains = []  # <- unoptimized-parameter
                for _ in range(2):
                    self.gains.append(nn.Parameter(torch.ones(8)))
                self.out = nn.Linear(8, 2)
            def forward(self, x):
                x = self.inp(x)
                for g in self.gains:
                    x = torch.tanh(x * g)
                return self.out(x)
        def train():
            m = M()
            o = torch.optim.Adam(m.parameters())
            for _ in range(6):
                o.zero_grad()
                m(torch.randn(8, 4)).pow(2).mean().backward()
                o.step()
        train()
    """,
    "thawed after the optimizer was made": """
        body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2)
        m = nn.Sequential(body, head)
        body.requires_grad_(False)
        o = torch.optim.Adam(p for p in m.parameters() if p.requires_grad)
        for epoch in range(6):
            if epoch == 2:
                for p in body.parameters():
                    p.requires_grad = True  # <- unoptimized-parameter
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a tuple deep in a trainer": """
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.shared = nn.Linear(4, 8)
                self.branches = tuple(nn.Linear(8, 1) for _ in range(3))  # <- unoptimized-parameter
            def forward(self, x):
                return torch.cat([branch(torch.tanh(self.shared(x))) for branch in self.branches], 1)
        class Trainer:
            def __init__(self):
                self.net = Encoder()
                self.opt = torch.optim.Adam(self.net.parameters())
            def fit(self):
                for _ in range(6):
                    self.opt.zero_grad()
                    self.net(torch.randn(8, 4)).pow(2).mean().backward()
                    self.opt.step()
        Trainer().fit()
    """,
    "a plain tensor": """
        class Prompt(nn.Module):
            def __init__(self):
                super().__init__()
                self.prompt = torch.randn(2, 4, requires_grad=True)  # <- unoptimized-parameter
                self.fc = nn.Linear(4, 2)
            def forward(self, x):
                return self.fc(torch.cat([self.prompt.expand(len(x), -1, -1), x], 1).mean(1))
        m = Prompt()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 3, 4)).pow(2).mean().backward()
            o.step()
    """,
    "plain tensors in a list": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.inp = nn.Linear(4, 8)
                self.gains = [torch.ones(8, requires_grad=True) for _ in range(2)]  # <- unoptimized-parameter
            def forward(self, x):
                x = self.inp(x)
                for gain in self.gains:
                    x = torch.tanh(x * gain)
                return x
        def train():
            m = M()
            o = torch.optim.SGD(m.parameters(), 0.1)
            for _ in range(6):
                o.zero_grad()
                m(torch.randn(8, 4)).pow(2).mean().backward()
                o.step()
        train()
    """,
    "a parameter made in forward": """
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(4, 4)
            def forward(self, x):
                query = nn.Parameter(torch.randn(4))  # <- unoptimized-parameter
                w = (self.lin(x) @ query).softmax(1)
                return (w.unsqueeze(-1) * x).sum(1)
        m = Attention()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 3, 4)).pow(2).mean().backward()
            o.step()
    """,
    "an exhausted generator": """
        body, head = mlp(), nn.Linear(2, 1)
        params = body.parameters()
        print(sum(p.numel() for p in params))
        o = torch.optim.SGD([{"params": params}, {"params": head.parameters()}], lr=0.1)  # <- unoptimized-parameter
        for _ in range(6):
            o.zero_grad()
            head(body(torch.randn(8, 4))).pow(2).mean().backward()
            o.step()
    """,
    "a head replaced after the optimizer": """
        m = mlp(4, 10)
        o = torch.optim.Adam(m.parameters())  # <- unoptimized-parameter
        m[2] = nn.Linear(16, 3)
        for _ in range(6):
            o.zero_grad()
            F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long()).backward()
            o.step()
    """,
    "the copy is trained": """
        m = mlp(4, 3)
        o = torch.optim.Adam(m.parameters())  # <- unoptimized-parameter
        m = copy.deepcopy(m)
        for _ in range(6):
            m.zero_grad()
            F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long()).backward()
            o.step()
    """,
    "a loss with parameters": """
        class Uncertainty(nn.Module):
            def __init__(self):
                super().__init__()
                self.log_var = nn.Parameter(torch.zeros(2))
            def forward(self, a, b):
                return a * torch.exp(-self.log_var[0]) + b * torch.exp(-self.log_var[1]) + self.log_var.sum()
        m, crit = (mlp(4, 2), Uncertainty())
        o = torch.optim.Adam(m.parameters())  # <- unoptimized-parameter
        for _ in range(6):
            out = m(torch.randn(8, 4))
            o.zero_grad()
            crit(out[:, 0].pow(2).mean(), out[:, 1].pow(2).mean()).backward()
            o.step()
    """,
    "centres and an encoder of data": """
        class Centres(nn.Module):
            def __init__(self):
                super().__init__()
                self.points = nn.Parameter(torch.randn(3, 8))
            def forward(self, x, y):
                return (x - self.points[y]).pow(2).sum(1).mean()
        front, m, centres = nn.Linear(4, 4), mlp(4, 8), Centres()
        o = torch.optim.Adam(m.parameters())  # <- unoptimized-parameter
        for _ in range(6):
            o.zero_grad()
            centres(m(front(torch.randn(8, 4))), torch.randint(3, (8,))).backward()
            o.step()
    """,
    "a layer made at the first forward": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = mlp(4, 8)
                self.head = None
            def forward(self, x):
                h = self.body(x)
                if self.head is None:
                    self.head = nn.Linear(h.shape[1], 2)  # <- unoptimized-parameter
                return self.head(h)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "layers made in forward": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.inp = nn.Linear(4, 8)
            def forward(self, x):
                h = torch.relu(self.inp(x))
                return nn.Linear(8, 2)(h)  # <- unoptimized-parameter
        m = Net()
        o = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(5):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "a parameter replaced by a result": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.gain = nn.Parameter(torch.ones(4))
            def forward(self, x):
                self.gain = self.gain.abs()  # <- unoptimized-parameter
                return x * self.gain
        Net()(torch.randn(2, 4))
    """,
    "the values of a state_dict in place of the parameters": """
        m = mlp()
        o = torch.optim.SGD(list(m.state_dict().values()), lr=0.1)  # <- unoptimized-parameter
        for _ in range(6):
            m.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "layers made in forward, and kept for the next one": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.out, self.by_size = mlp(), {}
            def forward(self, x):
                if x.shape[1] not in self.by_size:
                    self.by_size[x.shape[1]] = nn.Linear(x.shape[1], 4)  # <- unoptimized-parameter
                return self.out(self.by_size[x.shape[1]](x))
        m = M()
        o = torch.optim.Adam(m.parameters())
        for i in range(8):
            o.zero_grad()
            m(torch.randn(8, 3 + i % 2)).pow(2).mean().backward()
            o.step()
    """,
    "layers given to a partial": """
        from functools import partial
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.out = mlp()
                self.scale = partial(lambda x, gate: x * gate(x), gate=nn.Linear(4, 4))  # <- unoptimized-parameter
            def forward(self, x):
                return self.out(self.scale(x))
        m = M()
        o = torch.optim.Adam(m.parameters())
        for i in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
}

GOOD = {
    "a perturbation created for each batch, whose gradient is read": """
        def attack(m, x, y):
            delta = nn.Parameter(torch.zeros_like(x))
            F.mse_loss(m(x + delta), y).backward()
            return (x + 0.1 * delta.grad.sign()).detach()
        m = mlp(4, 2)
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            x, y = torch.randn(8, 4), torch.zeros(8, 2)
            x = attack(m, x, y)
            o.zero_grad()
            F.mse_loss(m(x), y).backward()
            o.step()
    """,
    "models of several trials, each with an optimizer of its own": """
        def trial(steps):
            m, probe = mlp(4, 3), nn.Linear(3, 1).requires_grad_(False)
            o = torch.optim.Adam(m.parameters())
            for _ in range(steps):
                o.zero_grad()
                probe(m(torch.randn(8, 4))).pow(2).mean().backward()
                o.step()
        for _ in range(4):
            trial(4)
    """,
    "layers replaced, and an optimizer made for them": """
        m = mlp(4, 2)
        def epoch(o, steps):
            for _ in range(steps):
                loss = m(torch.randn(8, 4)).pow(2).mean()
                o.zero_grad()
                loss.backward()
                o.step()
        epoch(torch.optim.Adam(m.parameters()), 6)
        m[0], m[2] = nn.Linear(4, 8), nn.Linear(8, 2)
        epoch(torch.optim.Adam(m.parameters()), 6)
    """,
    "points that are added and handed over": """
        class Cloud(nn.Module):
            def __init__(self):
                super().__init__()
                self.points = nn.Parameter(torch.randn(8, 3))
        m = Cloud()
        o = torch.optim.Adam(m.parameters(), 0.01)
        for step in range(12):
            o.zero_grad()
            m.points.pow(2).sum(1).mean().backward()
            o.step()
            if step % 2:
                old = o.param_groups[0]["params"][0]
                m.points = nn.Parameter(torch.cat([m.points.detach(), torch.randn(4, 3)]))
                o.state.pop(old, None)
                o.param_groups[0]["params"] = [m.points]
    """,
    "an optimizer for each new parameter": """
        class Code(nn.Module):
            def __init__(self):
                super().__init__()
                self.z, self.net = nn.Parameter(torch.zeros(4)), mlp(4, 2)
        m = Code()
        for _ in range(5):
            m.z = nn.Parameter(torch.randn(4))
            o = torch.optim.Adam(m.parameters(), 0.01)
            for _ in range(4):
                o.zero_grad()
                m.net(m.z).pow(2).mean().backward()
                o.step()
    """,
    "an inner parameter that is moved by hand": """
        class Meta(nn.Module):
            def __init__(self):
                super().__init__()
                self.net, self.fast = mlp(4, 2), nn.Parameter(torch.zeros(2))
        m = Meta()
        o = torch.optim.Adam(m.parameters(), 0.01)
        for _ in range(8):
            o.zero_grad()
            (m.net(torch.randn(8, 4)) + m.fast).pow(2).mean().backward()
            o.step()
            m.fast = nn.Parameter(m.fast.detach() - 0.1 * m.fast.grad)
    """,
    "thawed and handed over": """
        body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2)
        m = nn.Sequential(body, head)
        body.requires_grad_(False)
        o = torch.optim.Adam(p for p in m.parameters() if p.requires_grad)
        for epoch in range(8):
            if epoch == 2:
                body.requires_grad_(True)
                o.add_param_group({"params": body.parameters()})
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "points at which a slope is taken": """
        class Pinn(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
                self.points = torch.rand(10, 1, requires_grad=True)
            def residual(self):
                u = self.net(self.points)
                slope, = torch.autograd.grad(u.sum(), self.points, create_graph=True)
                return (slope - u).pow(2).mean()
        m = Pinn()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m.residual().backward()
            o.step()
    """,
    "the last input kept": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)
                self.seen = None
            def forward(self, x):
                self.seen = x.clone().requires_grad_()
                return self.fc(self.seen)
        m = M()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            print(m.seen.grad.norm())
            o.step()
    """,
    "a plain tensor given to the optimizer or updated by hand": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)
                self.scale = torch.ones(2, requires_grad=True)
                self.shift = torch.zeros(2, requires_grad=True)
            def forward(self, x):
                return self.fc(x) * self.scale + self.shift
        m = M()
        o = torch.optim.Adam([*m.parameters(), m.scale])
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
            with torch.no_grad():
                m.shift -= 0.1 * m.shift.grad
                m.shift.grad = None
    """,
    "parameters in a list of a module given to the optimizer": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.gains = [nn.Parameter(torch.ones(4)) for _ in range(3)]
            def forward(self, x):
                for gain in self.gains:
                    x = torch.tanh(x * gain)
                return x
        m = M()
        o = torch.optim.SGD(m.gains, 0.1)
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "an empty group beside full ones": """
        m = mlp()
        groups = [[p for n, p in m.named_parameters() if "norm" in n], [p for n, p in m.named_parameters()]]
        o = torch.optim.SGD([{"params": group} for group in groups], 0.1)
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).pow(2).mean().backward()
            o.step()
    """,
    "updated by hand": """
        a, b = (mlp(4, 8), nn.Linear(8, 2))
        o = torch.optim.SGD(a.parameters(), 0.01)
        for _ in range(6):
            o.zero_grad()
            b.zero_grad()
            F.cross_entropy(b(a(torch.randn(8, 4))), torch.zeros(8).long()).backward()
            o.step()
            with torch.no_grad():
                for p in b.parameters():
                    p -= 0.01 * p.grad
    """,
    "a prompt for a fixed network": """
        net = mlp(4, 2)
        prompt = nn.Parameter(torch.zeros(1, 4))
        o = torch.optim.Adam([prompt], 0.1)
        for _ in range(6):
            o.zero_grad()
            F.cross_entropy(net(torch.randn(8, 4) + prompt), torch.zeros(8).long()).backward()
            o.step()
    """,
    "an image is optimized": """
        net = mlp(4, 2)
        img = torch.randn(1, 4, requires_grad=True)
        o = torch.optim.LBFGS([img])
        for _ in range(4):
            def c():
                o.zero_grad()
                l = net(img).pow(2).sum()
                l.backward()
                return l
            o.step(c)
    """,
    "only the head is trained": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = mlp(4, 8)
                self.fc = nn.Linear(8, 2)
            def forward(self, x):
                return self.fc(self.body(x))
        m = M()
        o = torch.optim.SGD(m.fc.parameters(), 0.01)
        for _ in range(6):
            o.zero_grad()
            F.cross_entropy(m(torch.randn(8, 4)), torch.zeros(8).long()).backward()
            o.step()
    """,
    "a perceptual loss": """
        feat = mlp(2, 4)
        g = mlp(4, 2)
        o = torch.optim.Adam(g.parameters())
        feat.eval()
        for _ in range(6):
            o.zero_grad()
            F.l1_loss(feat(g(torch.randn(8, 4))), feat(torch.randn(8, 2))).backward()
            o.step()
    """,
    "a random target, and features in which two images are compared": """
        class Measure(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = mlp(4, 3)
                self.weight = nn.Linear(3, 1, bias=False)
            def forward(self, x, y):
                return self.weight((self.layers(x) - self.layers(y)) ** 2).mean()
        net, phi, measure = mlp(4, 4), nn.Linear(4, 4), Measure()
        o = torch.optim.Adam(net.parameters())
        for i in range(12):
            x = torch.randn(8, 4)
            y = net(x)
            l = F.mse_loss(y, phi(x)) if i < 6 else measure(y, x)
            o.zero_grad()
            l.backward()
            o.step()
    """,
    "copies within a meta step": """
        m = mlp(4, 1)
        o = torch.optim.Adam(m.parameters(), 0.01)
        for _ in range(5):
            o.zero_grad()
            for t in range(2):
                f = copy.deepcopy(m)
                io = torch.optim.SGD(f.parameters(), 0.1)
                x = torch.randn(8, 4)
                for _ in range(2):
                    io.zero_grad()
                    f(x).pow(2).mean().backward()
                    io.step()
                io.zero_grad()
                f(x).pow(2).mean().backward()
                for p, q in zip(m.parameters(), f.parameters()):
                    p.grad = q.grad.clone() if p.grad is None else p.grad + q.grad
            o.step()
    """,
    "a target network": """
        q = mlp(4, 2)
        target = copy.deepcopy(q)
        o = torch.optim.Adam(q.parameters())
        for i in range(12):
            s = torch.randn(8, 4)
            y = torch.rand(8) + 0.9 * target(s).max(1).values.detach()
            l = F.smooth_l1_loss(q(s).max(1).values, y)
            o.zero_grad()
            l.backward()
            o.step()
            if i % 5 == 4:
                target.load_state_dict(q.state_dict())
    """,
    "a teacher in a list": """
        class D(nn.Module):
            def __init__(self):
                super().__init__()
                self.student = mlp()
                self._teacher = [mlp().eval()]
            def forward(self, x):
                return F.mse_loss(self.student(x), self._teacher[0](x))
        m = D()
        o = torch.optim.Adam(m.parameters())
        for _ in range(6):
            o.zero_grad()
            m(torch.randn(8, 4)).backward()
            o.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD.keys())
def test_found(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert {pair for pair in checked.by("unoptimized-parameter") if pair[1] in loud(checked)} == checked.marked, (
        checked.text
    )


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD.keys())
def test_silent(check: Callable[[str], Any], script: str) -> None:
    checked = check(MLP + dedent(script))
    assert not [one for one in checked.alarms if one["rule"] == "unoptimized-parameter"], checked.text


def test_one_and_several_are_spoken_of_as_such(check: Callable[[str], Any]) -> None:
    several = check(MLP + dedent(BAD["the values of a state_dict in place of the parameters"])).alarms[0]
    assert "get a gradient in every step, but SGD was passed only their values" in several["message"]
    kept = check(MLP + dedent(BAD["layers made in forward, and kept for the next one"])).alarms[0]
    assert "created after Adam" in kept["message"]


def test_the_class_that_is_no_module_and_the_list_of_what_is_optimized(check: Callable[[str], Any]) -> None:
    script = """
        class Scale:
            def __init__(self):
                self.gain = nn.Parameter(torch.ones(4))
            def __call__(self, x):
                return x * self.gain
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale, self.out = Scale(), mlp()
            def forward(self, x):
                return self.out(self.scale(x))
        m, head = M(), nn.Linear(2, 1)
        given = list(m.parameters())
        o = torch.optim.Adam(given)
        for i in range(6):
            o.zero_grad()
            head(m(torch.randn(8, 4))).pow(2).mean().backward()
            o.step()
    """
    hidden, left_out = sorted(check(MLP + dedent(script)).alarms, key=lambda one: one["line"])
    assert hidden["help"].startswith("make the class of `m.scale` a subclass of nn.Module")
    assert "the parameters for Adam are collected here" in [text for _, text in left_out["related"]]


def loud(checked: Any) -> set[int]:
    """Lines of findings that are more than a note."""
    return {one["line"] for one in checked.alarms if one["rule"] == "unoptimized-parameter"}
