"""Whole training programs, as people write them: each with one fault, or with none though it looks like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

START = "import copy\n"

BAD = {
    "validate midepoch callbacks": """
class Callback:
    def on_batch_end(self, tr):
        pass


class Val(Callback):
    def on_batch_end(self, tr):
        if tr.n % 3 == 0:
            tr.evaluate()


class Trainer:
    def __init__(self, m, cbs):
        self.m, self.cbs, self.n = m, cbs, 0
        self.o = torch.optim.AdamW(m.parameters(), 1e-3)

    @torch.no_grad()
    def evaluate(self):
        self.m.eval()
        return self.m(torch.randn(4, 4)).mean()

    def fit(self, k):
        self.m.train()
        for _ in range(k):
            self.o.zero_grad()
            self.m(torch.randn(8, 4)).pow(2).mean().backward()
            self.o.step()
            self.n += 1
            for c in self.cbs:
                c.on_batch_end(self)  # <- wrong-mode


Trainer(nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)), [Val()]).fit(12)
""",
    "sample images gan generator left eval": """
G = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))
D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())


def sample(net, n):
    net.eval()
    with torch.no_grad():
        return net(torch.randn(n, 4))


for i in range(20):
    od.zero_grad()
    (D(G(torch.randn(8, 4)).detach()).mean() - D(torch.randn(8, 6)).mean()).backward()
    od.step()
    og.zero_grad()
    (-D(G(torch.randn(8, 4))).mean()).backward()
    og.step()
    if i == 9:
        imgs = sample(G, 4)  # <- wrong-mode
""",
    "linear schedule per microbatch hf": """
m = nn.Linear(4, 2)
o = torch.optim.AdamW(m.parameters(), 5e-3)


def get_linear_schedule_with_warmup(opt, w, t):
    def f(s):
        return s / max(1, w) if s < w else max(0.0, (t - s) / max(1, t - w))

    return torch.optim.lr_scheduler.LambdaLR(opt, f)


ACC = 4
N = 32
EP = 2
sch = get_linear_schedule_with_warmup(o, 2, N * EP // ACC)
for ep in range(EP):
    for step in range(N):
        l = F.cross_entropy(m(torch.randn(4, 4)), torch.randint(2, (4,))) / ACC
        l.backward()
        if (step + 1) % ACC == 0:
            o.step()
            o.zero_grad()
        sch.step()  # <- scheduler-steps
""",
    "scheduler before optimizer epoch start": """
import warnings

warnings.simplefilter("ignore")
m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), 0.1)
sch = torch.optim.lr_scheduler.CosineAnnealingLR(o, 20)


def train_one_batch(x):
    o.zero_grad()
    l = m(x).pow(2).mean()
    l.backward()
    sch.step()  # <- scheduler-steps
    o.step()
    return l.item()


for _ in range(10):
    train_one_batch(torch.randn(8, 4))
""",
    "noisy net lr int division": """
class Cfg:
    lr = 1
    scale = 10


m = nn.Linear(4, 1)


def make(c):
    return torch.optim.Adam(m.parameters(), lr=c.lr // c.scale)


o = make(Cfg)
for _ in range(8):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()  # <- no-effect-step
""",
    "polynomial runs out": """
m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), 0.1)
s = torch.optim.lr_scheduler.PolynomialLR(o, total_iters=5, power=0.9)
for ep in range(20):
    for _ in range(3):
        o.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        o.step()  # <- no-effect-step
    s.step()
""",
    "adapters frozen everything": """
enc, ad = nn.Linear(4, 8), nn.Linear(8, 2)


def freeze(*ms):
    for k in ms:
        for p in k.parameters():
            p.requires_grad_(False)


freeze(enc, ad)
prompt = nn.Parameter(torch.randn(4) * 0.1)
o = torch.optim.Adam(list(enc.parameters()) + list(ad.parameters()), 1e-3)
for _ in range(8):
    o.zero_grad()
    l = F.cross_entropy(ad(torch.relu(enc(torch.randn(8, 4) + prompt))), torch.randint(2, (8,)))
    l.backward()
    o.step()  # <- step-without-grad
""",
    "focal single class softmax dim": """
class Seg(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 1, 3, padding=1)

    def forward(self, x):
        return self.c(x)


m = Seg()
o = torch.optim.Adam(m.parameters(), 1e-3)


def dice(logits, t):
    p = torch.softmax(logits, dim=1)  # <- zero-gradient
    return 1 - 2 * (p * t).sum() / (p.sum() + t.sum())


for _ in range(8):
    o.zero_grad()
    dice(m(torch.randn(2, 3, 8, 8)), (torch.rand(2, 1, 8, 8) > 0.5).float()).backward()
    o.step()
""",
    "self attention pool one token": """
class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(8, 1)

    def forward(self, h):
        a = F.softmax(self.w(h), dim=-1)  # <- zero-gradient
        return (a * h).sum(1)


e, p, h = nn.Linear(4, 8), Pool(), nn.Linear(8, 2)
o = torch.optim.Adam([*e.parameters(), *p.parameters(), *h.parameters()])
for _ in range(8):
    l = F.cross_entropy(h(p(torch.tanh(e(torch.randn(6, 5, 4))))), torch.randint(2, (6,)))
    o.zero_grad()
    l.backward()
    o.step()
""",
    "bilstm last output helper": """
def last(seq):
    return seq[:, -1]  # <- zero-gradient


class C(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 6)
        self.r = nn.LSTM(6, 5, bidirectional=True, batch_first=True)
        self.f = nn.Linear(10, 2)

    def forward(self, x):
        o, _ = self.r(self.e(x))
        return self.f(last(o))


m = C()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    l = F.cross_entropy(m(torch.randint(20, (4, 7))), torch.randint(2, (4,)))
    o.zero_grad()
    l.backward()
    o.step()
""",
    "gradnorm nan weight": """
m = nn.Linear(4, 4)
hs = nn.ModuleList(nn.Linear(4, 1) for _ in range(2))
o = torch.optim.Adam([*m.parameters(), *hs.parameters()], 1e-3)


def balance(gs):
    n = torch.stack([g.norm() for g in gs])
    return n.mean() / n  # <- nonfinite-grad


for it in range(24):
    x = torch.randn(8, 4)
    L = [h(torch.tanh(m(x))).pow(2).mean() for h in hs]
    if it >= 18:
        L[1] = L[1] * 0
    gs = [torch.autograd.grad(l, m.weight, retain_graph=True)[0] for l in L]
    w = balance(gs)
    o.zero_grad()
    sum(L).backward()
    m.weight.grad = sum(a * g for a, g in zip(w, gs))
    o.step()
""",
    "gradient standardize std single": """
m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), 0.01)


def centralize(ps):
    for p in ps:
        if p.grad is not None:
            p.grad = (p.grad - p.grad.mean()) / p.grad.std()  # <- nonfinite-grad


for _ in range(6):
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    centralize(m.parameters())
    o.step()
""",
    "window counter resets": """
class Loop:
    def __init__(self):
        self.m = nn.Linear(4, 1)
        self.o = torch.optim.Adam(self.m.parameters())
        self.accum = 16

    def epoch(self, data):
        count = 0
        for x in data:
            self.backward(x)
            count += 1
            if count >= self.accum:  # <- never-stepped
                self.o.step()
                self.o.zero_grad()
                count = 0

    def backward(self, x):
        (self.m(x).pow(2).mean() / self.accum).backward()


l = Loop()
for _ in range(4):
    l.epoch([torch.randn(4, 4) for _ in range(10)])
""",
    "second optimizer never in list": """
enc, dec = nn.Linear(4, 3), nn.Linear(3, 4)
opts = {"enc": torch.optim.Adam(enc.parameters()), "dec": torch.optim.Adam(dec.parameters())}
for _ in range(8):
    for o in opts.values():
        o.zero_grad()
    l = F.mse_loss(dec(torch.tanh(enc(torch.randn(8, 4)))), torch.randn(8, 4))
    l.backward()  # <- never-stepped
    for k in ("dec",):
        opts[k].step()
""",
    "alpha column sac": """
q, pi = nn.Linear(6, 1), nn.Linear(4, 4)
oq, op = torch.optim.Adam(q.parameters()), torch.optim.Adam(pi.parameters())


class Buffer:
    def sample(self, n):
        return torch.randn(n, 4), torch.randn(n, 2), torch.randn(n).unsqueeze(-1), torch.randn(n, 4)


def qv(s, a):
    return q(torch.cat([s, a], -1)).squeeze(-1)


def critic_loss(pred, target):
    return ((pred - target) ** 2).mean()  # <- broadcast-loss


B = Buffer()
for _ in range(5):
    s, a, r, n = B.sample(16)
    with torch.no_grad():
        t = r + 0.99 * qv(n, pi(n)[:, :2]).unsqueeze(-1)
    l = critic_loss(qv(s, a), t)
    oq.zero_grad()
    l.backward()
    oq.step()
""",
    "gae column": """
v, p = nn.Linear(4, 1), nn.Linear(4, 2)
o = torch.optim.Adam(p.parameters())


@torch.no_grad()
def gae(rew, val):
    return rew + 0.99 * val.roll(-1, 0) - val  # <- broadcast-loss


for _ in range(4):
    s = torch.randn(12, 4)
    d = torch.distributions.Categorical(logits=p(s))
    a = d.sample()
    adv = gae(torch.randn(12), v(s))
    adv = (adv - adv.mean()) / (adv.std() + 1e-5)
    l = -(d.log_prob(a) * adv).mean()
    o.zero_grad()
    l.backward()
    o.step()
""",
    "cache from epoch 2": """
m = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
o = torch.optim.Adam(m.parameters())
history = {"loss": []}


def step(i):
    l = m(torch.randn(8, 4)).pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
    if i > 150:
        history["loss"].append(l)  # <- graph-growth


for i in range(260):
    step(i)
""",
    "eval loop four batches": """
m = nn.Sequential(*[k for _ in range(4) for k in (nn.Linear(8, 8), nn.ReLU())], nn.Linear(8, 2))
o = torch.optim.Adam(m.parameters())


def evaluate(loader):
    m.eval()
    c = 0
    for x, y in loader:
        c += (m(x).argmax(1) == y).sum().item()  # <- unused-graph
    return c


for ep in range(3):
    m.train()
    for _ in range(4):
        l = F.cross_entropy(m(torch.randn(8, 8)), torch.randint(2, (8,)))
        o.zero_grad()
        l.backward()
        o.step()
    evaluate([(torch.randn(4, 8), torch.randint(2, (4,))) for _ in range(4)])
""",
    "resize embeddings untied": """
class LM(nn.Module):
    def __init__(self, v):
        super().__init__()
        self.emb = nn.Embedding(v, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, v, bias=False)
        self.tie()

    def tie(self):
        self.head.weight = self.emb.weight

    def forward(self, x):
        return self.head(self.rnn(self.emb(x))[0])


m = LM(12)


def load_glove(m):
    m.emb = nn.Embedding.from_pretrained(torch.randn(12, 8), freeze=False)  # <- broken-tie


load_glove(m)
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    x = torch.randint(12, (4, 6))
    l = F.cross_entropy(m(x).flatten(0, 1), x.flatten())
    o.zero_grad()
    l.backward()
    o.step()
""",
    "freeze typo setattr": """
class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 2)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))

    def freeze(self):
        for p in self.a.parameters():
            setattr(p, "require_grad", False)  # <- misspelt-attribute


m = Backbone()
m.freeze()
o = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(4):
    l = F.cross_entropy(m(torch.randn(8, 4)), torch.randint(2, (8,)))
    o.zero_grad()
    l.backward()
    o.step()
""",
    "two optims same backward": """
class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pi, self.v = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)


m = AC()
oa = torch.optim.Adam([*m.body.parameters(), *m.pi.parameters()], 1e-3)
oc = torch.optim.Adam([*m.body.parameters(), *m.v.parameters()], 1e-3)
for _ in range(6):
    h = torch.tanh(m.body(torch.randn(8, 4)))
    l = m.pi(h).logsumexp(1).mean() + m.v(h).pow(2).mean()
    oa.zero_grad()
    oc.zero_grad()
    l.backward()
    oa.step()
    oc.step()  # <- duplicate-parameter
""",
    "freeze schedule wd": """
b, h = nn.Linear(4, 8), nn.Linear(8, 2)
o = torch.optim.AdamW([*b.parameters(), *h.parameters()], 1e-2, weight_decay=0.1)


def zero():
    for g in o.param_groups:
        for p in g["params"]:
            if p.grad is not None:
                p.grad.zero_()


def set_trainable(m, on):
    for p in m.parameters():
        p.requires_grad = on  # <- frozen-moves


for ep in range(3):
    if ep == 1:
        set_trainable(b, False)
    for _ in range(4):
        zero()
        F.cross_entropy(h(torch.relu(b(torch.randn(8, 4)))), torch.randint(2, (8,))).backward()
        o.step()
""",
    "functional dropout transformer": """
class FF(nn.Module):
    def __init__(self, p=0.2):
        super().__init__()
        self.p = p
        self.a, self.b = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        h = F.dropout(F.gelu(self.a(x)), p=self.p)  # <- wrong-mode
        return x + self.b(h)


m = nn.Sequential(FF(), nn.Linear(8, 2))
o = torch.optim.Adam(m.parameters())
for ep in range(2):
    m.train()
    for _ in range(3):
        l = F.cross_entropy(m(torch.randn(8, 8)), torch.randint(2, (8,)))
        o.zero_grad()
        l.backward()
        o.step()
    m.eval()
    with torch.inference_mode():
        [m(torch.randn(4, 8)) for _ in range(2)]
""",
    "bf16 pure small lr": """
m = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2)).to(torch.bfloat16)
with torch.no_grad():
    for p in m.parameters():
        p.add_(1.0)
o = torch.optim.SGD(m.parameters(), 1e-6)


def fit():
    for _ in range(6):
        l = m(torch.randn(8, 8, dtype=torch.bfloat16)).float().pow(2).mean()
        o.zero_grad()
        l.backward()
        o.step()  # <- no-effect-step


fit()
""",
    "hook late profile": """
m = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
o = torch.optim.Adam(m.parameters())
acts = []


def keep(module, given, out):
    acts.append(out.detach().mean().item())


def probe():
    m[0].register_forward_hook(keep)  # <- hook-growth


for i in range(130):
    if i >= 80:
        probe()
    o.zero_grad()
    m(torch.randn(8, 4)).pow(2).mean().backward()
    o.step()
""",
    "scheduler never": """
m = nn.Linear(4, 1)


def build(m):
    opt = torch.optim.SGD(m.parameters(), 0.1, momentum=0.9)
    sched = torch.optim.lr_scheduler.MultiStepLR(opt, [30, 60])
    return opt, sched


opt = torch.optim.SGD(m.parameters(), 0.1)
lr_sched = torch.optim.lr_scheduler.MultiStepLR(opt, [3, 6])  # <- scheduler-steps
for ep in range(10):
    for _ in range(3):
        opt.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        opt.step()
""",
    "diverge and train on": """
m = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
o = torch.optim.SGD(m.parameters(), 50.0)


def epoch():
    t = 0.0
    for _ in range(20):
        l = F.mse_loss(m(10 * torch.randn(8, 4)), torch.randn(8, 1))
        o.zero_grad()
        l.backward()
        o.step()  # <- nonfinite-grad
        t += l.item()
    return t


for _ in range(3):
    epoch()
""",
}

GOOD = {
    "dino teacher": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.1))
        self.h = nn.Linear(16, 8)

    def forward(self, x):
        return self.h(self.b(x))


student, teacher = Net(), Net()
teacher.load_state_dict(student.state_dict())
teacher.eval()
for p in teacher.parameters():
    p.requires_grad = False
opt = torch.optim.AdamW(student.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, s / 3))
center = torch.zeros(8)
for step in range(12):
    x = torch.randn(16, 8)
    with torch.no_grad():
        t = F.softmax((teacher(x) - center) / 0.04, -1)
    loss = -(t * F.log_softmax(student(x + 0.1 * torch.randn_like(x)) / 0.1, -1)).sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    if step < 4:
        for n, p in student.named_parameters():
            if n.startswith("h"):
                p.grad = None
    opt.step()
    sched.step()
    with torch.no_grad():
        m = 0.99
        for a, b in zip(teacher.parameters(), student.parameters()):
            a.mul_(m).add_((1 - m) * b)
        center = center * 0.9 + 0.1 * t.mean(0)
""",
    "gan alternating": """
G = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 6))
D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(16, 1))
og, od = (
    torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999)),
    torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999)),
)
sg, sd = [torch.optim.lr_scheduler.ExponentialLR(o, 0.99) for o in (og, od)]
bce = nn.BCEWithLogitsLoss()
fixed = torch.randn(4, 4)
for epoch in range(3):
    for i in range(6):
        real = torch.randn(8, 6)
        for p in D.parameters():
            p.requires_grad_(True)
        od.zero_grad()
        fake = G(torch.randn(8, 4)).detach()
        (bce(D(real), torch.ones(8, 1)) + bce(D(fake), torch.zeros(8, 1))).backward()
        od.step()
        if i % 2 == 0:
            for p in D.parameters():
                p.requires_grad_(False)
            og.zero_grad()
            bce(D(G(torch.randn(8, 4))), torch.ones(8, 1)).backward()
            og.step()
    G.eval()
    with torch.no_grad():
        G(fixed)
    G.train()
    sg.step()
    sd.step()
""",
    "wgan gp clip": """
critic = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
oc, og = torch.optim.RMSprop(critic.parameters(), 5e-5), torch.optim.RMSprop(G.parameters(), 5e-5)
for it in range(20):
    x = torch.randn(8, 6)
    oc.zero_grad()
    (critic(G(torch.randn(8, 4)).detach()).mean() - critic(x).mean()).backward()
    oc.step()
    for p in critic.parameters():
        p.data.clamp_(-0.01, 0.01)
    if it % 5 == 4:
        og.zero_grad()
        (-critic(G(torch.randn(8, 4))).mean()).backward()
        og.step()
""",
    "transfer tutorial": """
class R(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        return self.fc(F.relu(self.bn1(self.conv1(x))).mean((2, 3)))


m = R()
for p in m.parameters():
    p.requires_grad = False
m.fc = nn.Linear(8, 2)
opt = torch.optim.SGD(m.fc.parameters(), lr=0.01, momentum=0.9)
sch = torch.optim.lr_scheduler.StepLR(opt, 7, 0.1)
best = copy.deepcopy(m.state_dict())
for epoch in range(3):
    for phase in ("train", "val"):
        m.train() if phase == "train" else m.eval()
        for _ in range(4):
            x, y = torch.randn(4, 3, 8, 8), torch.randint(2, (4,))
            opt.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(m(x), y)
                if phase == "train":
                    loss.backward()
                    opt.step()
        if phase == "train":
            sch.step()
m.load_state_dict(best)
""",
    "moe load balancing noisy topk": """
class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Linear(8, 4)
        self.n = nn.Linear(8, 4)
        self.e = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        lg = self.g(x) + torch.randn(len(x), 4) * F.softplus(self.n(x))
        v, i = lg.topk(2, 1)
        w = torch.zeros_like(lg).scatter(1, i, v.softmax(1))
        return sum(w[:, k : k + 1] * e(x) for k, e in enumerate(self.e)), w.mean(0)


m, h = MoE(), nn.Linear(8, 3)
o = torch.optim.Adam([*m.parameters(), *h.parameters()])
for _ in range(10):
    y, load = m(torch.randn(16, 8))
    loss = F.cross_entropy(h(y), torch.randint(3, (16,))) + load.var()
    o.zero_grad()
    loss.backward()
    o.step()
""",
    "lora": """
base = nn.Linear(8, 8)
base.requires_grad_(False)
A, B = nn.Parameter(torch.randn(2, 8) * 0.1), nn.Parameter(torch.zeros(8, 2))
o = torch.optim.AdamW([A, B], lr=1e-2)
for _ in range(12):
    x = torch.randn(8, 8)
    out = base(x) + x @ A.t() @ B.t()
    o.zero_grad()
    F.mse_loss(out, x.roll(1, 1)).backward()
    o.step()
""",
    "lbfgs then eval": """
m = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 1))
adam = torch.optim.Adam(m.parameters(), 1e-3)
lb = torch.optim.LBFGS(m.parameters(), max_iter=5)


def closure():
    lb.zero_grad()
    x = torch.rand(32, 2, requires_grad=True)
    u = m(x)
    g = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
    l = (g.sum(1) - u[:, 0]).pow(2).mean()
    l.backward()
    return l


for _ in range(5):
    adam.zero_grad()
    l = m(torch.rand(8, 2)).pow(2).mean()
    l.backward()
    adam.step()
for _ in range(4):
    lb.step(closure)
""",
    "onecycle accum scaler": """
m = nn.Linear(4, 2)
o = torch.optim.SGD(m.parameters(), 0.1)
s = torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=8)
sc = torch.amp.GradScaler("cpu")
for i in range(24):
    with torch.autocast("cpu", torch.bfloat16):
        l = F.cross_entropy(m(torch.randn(4, 4)), torch.randint(2, (4,))) / 4
    sc.scale(l).backward()
    if (i + 1) % 4 == 0:
        sc.unscale_(o)
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        sc.step(o)
        sc.update()
        o.zero_grad()
        s.step()
""",
    "ddpg": """
actor, critic = (
    nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh()),
    nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)),
)
ta, tc = copy.deepcopy(actor), copy.deepcopy(critic)
oa, oc = torch.optim.Adam(actor.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 1e-3)
buf = []
for t in range(60):
    s = torch.randn(3)
    actor.eval()
    with torch.no_grad():
        a = actor(s) + 0.1 * torch.randn(1)
    actor.train()
    buf.append((s, a, torch.randn(1), torch.randn(3)))
    if t > 20:
        S, A, R, N = [torch.stack(z) for z in zip(*random.sample(buf, 8))]
        with torch.no_grad():
            y = R + 0.99 * tc(torch.cat([N, ta(N)], 1))
        lc = F.mse_loss(critic(torch.cat([S, A], 1)), y)
        oc.zero_grad()
        lc.backward()
        oc.step()
        la = -critic(torch.cat([S, actor(S)], 1)).mean()
        oa.zero_grad()
        la.backward()
        oa.step()
        for x, z in ((ta, actor), (tc, critic)):
            for p, q in zip(x.parameters(), z.parameters()):
                p.data.copy_(0.99 * p.data + 0.01 * q.data)
""",
    "bert tied pad": """
class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(30, 8, padding_idx=0)
        self.l = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.d = nn.Linear(8, 30)
        self.d.weight = self.e.weight

    def forward(self, x):
        return self.d(self.l(self.e(x), src_key_padding_mask=x == 0))


m = B()
o = torch.optim.AdamW(m.parameters(), 1e-3)
for ep in range(2):
    m.train()
    for _ in range(5):
        x = torch.randint(0, 12, (4, 6))
        x[:, 0] = 1
        l = F.cross_entropy(m(x).flatten(0, 1), x.flatten(), ignore_index=0)
        o.zero_grad()
        l.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
    m.eval()
    with torch.inference_mode():
        m(torch.randint(1, 12, (2, 6)))
m2 = B()
m2.load_state_dict(copy.deepcopy(m.state_dict()))
""",
    "two stage head then all": """
b, h = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 2)
b.requires_grad_(False)
b.eval()
o = torch.optim.Adam(h.parameters(), 1e-3)


def ep(tr):
    for _ in range(4):
        x, y = torch.randn(8, 4), torch.randint(2, (8,))
        l = F.cross_entropy(h(b(x)), y)
        o.zero_grad()
        l.backward()
        o.step()
    b.eval()
    h.eval()
    with torch.no_grad():
        h(b(torch.randn(4, 4)))
    h.train()
    if tr:
        b.train()


ep(False)
ep(False)
b.requires_grad_(True)
b.train()
o = torch.optim.Adam([*b.parameters(), *h.parameters()], 1e-4)
ep(True)
ep(True)
""",
    "mc dropout bayes loss parts": """
m = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
o = torch.optim.Adam(m.parameters())
for ep_ in range(3):
    m.train()
    for _ in range(4):
        mu, lv = m(torch.randn(8, 4)).chunk(2, 1)
        y = torch.randn(8, 1)
        l = (0.5 * torch.exp(-lv) * (y - mu) ** 2 + 0.5 * lv).mean()
        o.zero_grad()
        l.backward()
        o.step()
    with torch.no_grad():
        torch.stack([m(torch.randn(4, 4)) for _ in range(6)]).var(0)
""",
    "pcgrad safe": """
m = nn.Linear(4, 4)
h = [nn.Linear(4, 1) for _ in range(2)]
ps = list(m.parameters())
o = torch.optim.SGD([*ps, *h[0].parameters(), *h[1].parameters()], 0.01)
for _ in range(10):
    x = torch.randn(8, 4)
    L = [k(torch.tanh(m(x))).pow(2).mean() for k in h]
    o.zero_grad()
    gs = [torch.autograd.grad(l, ps, retain_graph=True) for l in L]
    (L[0] + L[1]).backward()
    for p, a, b in zip(ps, *gs):
        d = (a * b).sum()
        p.grad = (a + b) if d >= 0 else a - d / (b.norm() ** 2 + 1e-12) * b + b
    o.step()
""",
    "lr finder": """
m = nn.Linear(4, 1)
st = copy.deepcopy(m.state_dict())
o = torch.optim.SGD(m.parameters(), 1e-7)
s = torch.optim.lr_scheduler.ExponentialLR(o, 3.0)
for i in range(50):
    l = m(torch.randn(16, 4)).pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
    s.step()
    if not math.isfinite(l.item()) or l.item() > 1e6:
        break
m.load_state_dict(st)
o = torch.optim.Adam(m.parameters())
for i in range(5):
    l = m(torch.randn(16, 4)).pow(2).mean()
    o.zero_grad()
    l.backward()
    o.step()
""",
    "neural ode unroll target": """
class Mem(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.GRUCell(3, 8)
        self.o = nn.Linear(8, 1)
        self.h = None

    def reset(self, n):
        self.h = torch.zeros(n, 8)

    def forward(self, x):
        self.h = self.c(x, self.h)
        return self.o(self.h)


q, t = Mem(), Mem()
t.load_state_dict(q.state_dict())
o = torch.optim.Adam(q.parameters())
for ep_ in range(8):
    q.reset(4)
    t.reset(4)
    xs = torch.randn(12, 4, 3)
    ql = [q(x) for x in xs]
    tl = [t(x) for x in xs]
    l = sum(F.mse_loss(a, b.detach()) for a, b in zip(ql[:-1], tl[1:]))
    o.zero_grad()
    l.backward()
    o.step()
""",
    "gradient penalty eval mode bn": """
m = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
o = torch.optim.SGD(m.parameters(), 0.01)
m.train()
for i in range(10):
    x = torch.randn(8, 4)
    if i >= 5:
        for k in m.modules():
            if isinstance(k, nn.BatchNorm1d):
                k.eval()
    o.zero_grad()
    m(x).pow(2).mean().backward()
    o.step()
""",
    "actor critic shared one opt masked adv": """
class AC(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Linear(4, 16)
        self.p = nn.Linear(16, 2)
        self.v = nn.Linear(16, 1)

    def forward(self, x):
        h = torch.tanh(self.b(x))
        return torch.distributions.Categorical(logits=self.p(h)), self.v(h).squeeze(-1)


m = AC()
o = torch.optim.Adam(m.parameters())
for it in range(6):
    S = torch.randn(32, 4)
    with torch.no_grad():
        d, v = m(S)
        a = d.sample()
        lp = d.log_prob(a)
    R = torch.randn(32)
    adv = R - v
    adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for _ in range(2):
        d, v = m(S)
        r = (d.log_prob(a) - lp).exp()
        l = (
            -torch.min(r * adv, r.clamp(0.8, 1.2) * adv).mean()
            + 0.5 * F.mse_loss(v, R)
            - 0.01 * d.entropy().mean()
        )
        o.zero_grad()
        l.backward()
        o.step()
""",
    "rnn bidirectional mean and pack": """
class T(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20, 6, padding_idx=0)
        self.r = nn.LSTM(6, 5, 2, bidirectional=True, batch_first=True, dropout=0.1)
        self.f = nn.Linear(10, 2)

    def forward(self, x, n):
        p = nn.utils.rnn.pack_padded_sequence(self.e(x), n, batch_first=True, enforce_sorted=False)
        o, (h, c) = self.r(p)
        return self.f(torch.cat([h[-2], h[-1]], 1))


m = T()
o = torch.optim.Adam(m.parameters())
for _ in range(6):
    x = torch.randint(1, 20, (4, 7))
    n = torch.randint(2, 8, (4,))
    l = F.cross_entropy(m(x, n), torch.randint(2, (4,)))
    o.zero_grad()
    l.backward()
    o.step()
""",
    "sam": """
class SAM(torch.optim.Optimizer):
    def __init__(self, ps, base, rho=0.05, **k):
        super().__init__(ps, dict(rho=rho, **k))
        self.b = base(self.param_groups, **k)
        self.param_groups = self.b.param_groups

    @torch.no_grad()
    def first_step(self):
        n = torch.norm(torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]))
        for g in self.param_groups:
            for p in g["params"]:
                e = p.grad * g.get("rho", 0.05) / (n + 1e-12)
                p.add_(e)
                self.state[p]["e"] = e
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for g in self.param_groups:
            for p in g["params"]:
                p.sub_(self.state[p]["e"])
        self.b.step()
        self.zero_grad()

    def step(self, closure=None):
        raise NotImplementedError


m = nn.Linear(4, 2)
o = SAM(m.parameters(), torch.optim.SGD, lr=0.1)
for _ in range(8):
    x, y = torch.randn(8, 4), torch.randint(2, (8,))
    F.cross_entropy(m(x), y).backward()
    o.first_step()
    F.cross_entropy(m(x), y).backward()
    o.second_step()
""",
    "ema eval swap": """
m = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
ema = copy.deepcopy(m).requires_grad_(False)
o = torch.optim.Adam(m.parameters())
for e in range(3):
    m.train()
    for _ in range(4):
        o.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        o.step()
        for a, b in zip(ema.parameters(), m.parameters()):
            a.data.mul_(0.9).add_(b.data, alpha=0.1)
    ema.eval()
    with torch.no_grad():
        ema(torch.randn(4, 4)).mean()
""",
    "maml firstorder": """
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
meta = torch.optim.Adam(net.parameters(), 1e-3)
for it in range(5):
    meta.zero_grad()
    for task in range(3):
        f = copy.deepcopy(net)
        inner = torch.optim.SGD(f.parameters(), 0.01)
        for _ in range(2):
            l = f(torch.randn(8, 2)).pow(2).mean()
            inner.zero_grad()
            l.backward()
            inner.step()
        l = f(torch.randn(8, 2)).pow(2).mean()
        g = torch.autograd.grad(l, list(f.parameters()))
        for p, q in zip(net.parameters(), g):
            p.grad = q / 3 if p.grad is None else p.grad + q / 3
    meta.step()
""",
    "frozen lr group unfreeze": """
b, h = nn.Linear(4, 4), nn.Linear(4, 1)
o = torch.optim.SGD([{"params": b.parameters(), "lr": 0.0}, {"params": h.parameters(), "lr": 0.1}])
for i in range(12):
    if i == 6:
        o.param_groups[0]["lr"] = 0.01
    o.zero_grad()
    h(torch.relu(b(torch.randn(8, 4)))).pow(2).mean().backward()
    o.step()
""",
    "warmup zero first epoch scheduler epoch": """
m = nn.Linear(4, 1)
o = torch.optim.SGD(m.parameters(), 0.1)
s = torch.optim.lr_scheduler.LambdaLR(o, lambda e: e / 5)
for e in range(4):
    for _ in range(3):
        o.zero_grad()
        m(torch.randn(8, 4)).pow(2).mean().backward()
        o.step()
    s.step()
""",
    "optimizer for later": """
m, d = nn.Linear(4, 4), nn.Linear(4, 1)
om, od = torch.optim.Adam(m.parameters()), torch.optim.Adam(d.parameters())
START = 100
for i in range(10):
    om.zero_grad()
    l = m(torch.randn(8, 4)).pow(2).mean()
    if i > START:
        l = l - d(m(torch.randn(8, 4))).mean()
    l.backward()
    om.step()
    if i > START:
        od.zero_grad()
        d(torch.randn(8, 4)).mean().backward()
        od.step()
""",
    "pairwise contrastive triplet": """
e = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
o = torch.optim.Adam(e.parameters())


def cdist(a):
    s = (a * a).sum(1)
    return (s[:, None] + s[None] - 2 * a @ a.t()).clamp(min=1e-12).sqrt()


for _ in range(8):
    x, y = torch.randn(12, 4), torch.randint(3, (12,))
    z = F.normalize(e(x), dim=1)
    D = cdist(z)
    same = (y[:, None] == y[None]).float()
    pos = (D * same).max(1)[0]
    neg = (D + 10 * same).min(1)[0]
    l = F.relu(pos - neg + 0.3).mean()
    o.zero_grad()
    l.backward()
    o.step()
""",
}


@pytest.mark.parametrize("name", BAD)
def test_the_fault_is_found_and_nothing_else(check: Callable[[str], Any], name: str) -> None:
    checked = check(START + BAD[name])
    assert checked.marked <= checked.found, checked.text
    assert {(one["rule"], one["line"]) for one in checked.alarms} <= checked.marked, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_a_correct_program_is_silent(check: Callable[[str], Any], name: str) -> None:
    checked = check(START + GOOD[name])
    assert not checked.alarms, checked.text
