"""NaN and infinity in gradients are told at the operation that makes them, if they reach a leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "nonfinite-grad"

IMPORTS = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

#: the line to be blamed is marked
BAD = {
    "norm by hand": """\
net = nn.Linear(3, 3, bias=False)
opt = torch.optim.Adam(net.parameters())
for step in range(6):
    x = torch.randn(4, 3)
    if step == 3:
        x[0] = 0
    d = net(x).pow(2).sum(1)
    dist = torch.sqrt(d)  # here
    loss = dist.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "acos of cosine": """\
u = nn.Parameter(torch.tensor([1., 0.]))
v = torch.tensor([1., 0.])
ang = torch.acos((u * v).sum())  # here
loss = ang ** 2
loss.backward()
""",
    "std of one": """\
net = nn.Linear(3, 2)
out = net(torch.randn(1, 3))
z = (out - out.mean(0)) / (out.std(0) + 1e-6)  # here
loss = z.sum()
loss.backward()
""",
    "zero over zero": """\
m = nn.Linear(4, 4)
a = F.relu(m(torch.randn(6, 4))) * torch.tensor([[1.], [0.], [1.], [1.], [1.], [1.]])
n = a / a.sum(1, keepdim=True)  # here
n = torch.where(torch.isnan(n), torch.zeros_like(n), n)
loss = n.pow(2).sum()
loss.backward()
""",
    "nan data masked later": """\
m = nn.Linear(4, 1)
x = torch.randn(6, 4)
x[2, 1] = float("nan")
pred = m(x).squeeze(1)  # here
loss = pred[~pred.isnan()].pow(2).mean()
loss.backward()
""",
    "softplus by hand": """\
m = nn.Linear(1, 1)
x = torch.tensor([[1000.], [1.]])
with torch.no_grad(): m.weight.fill_(1.)
s = m(x)
e = torch.exp(s)  # here
y = torch.where(s > 20, s, torch.log(1 + e))
loss = y.mean()
loss.backward()
""",
    "loss is log of zero": """\
m = nn.Linear(4, 3)
with torch.no_grad(): m.weight.mul_(1000)
p = torch.softmax(m(torch.randn(8, 4)), 1)
loss = -torch.log(p).mean()  # here
loss.backward()
""",
    "custom function": """\
class Inv(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)
    @staticmethod
    def backward(ctx, g):  # here
        x, = ctx.saved_tensors
        return g / x.clamp(min=0)
w = nn.Parameter(torch.randn(5))
Inv.apply(w).sum().backward()
""",
    "late nan after many calls": """\
net = nn.Linear(3, 3, bias=False)
opt = torch.optim.SGD(net.parameters(), 1e-3)
for step in range(60):
    x = torch.randn(4, 3)
    if step == 53:
        x[0] = 0
    dist = net(x).pow(2).sum(1).sqrt()  # here
    loss = dist.mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "late mul inf": """\
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), 1e-3)
for step in range(20):
    keep = torch.ones(5, 4, dtype=torch.bool)
    if step == 13:
        keep[0, 1] = False
    logp = net(torch.randn(5, 3)).masked_fill(~keep, float("-inf")).log_softmax(1)
    h = (logp.exp() * logp).nan_to_num(0.0)  # here
    loss = h.sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "autograd grad functional": """\
w = torch.zeros(3, requires_grad=True)
for _ in range(2):
    loss = (w * w).sum().sqrt()  # here
    g, = torch.autograd.grad(loss, w)
    w = (w - 0.1 * g.nan_to_num()).detach().requires_grad_()
""",
    "svd": """\
m = nn.Linear(4, 4, bias=False)
x = torch.zeros(4, 4)
u, s, v = torch.linalg.svd(m(x) + torch.eye(4))  # here
loss = (u @ torch.diag(s.sqrt())).pow(3).sum()
loss.backward()
""",
    "sdpa masked row": """\
m = nn.Linear(4, 4)
q = m(torch.randn(2, 3, 4))
mask = torch.zeros(2, 3, 3); mask[0, 0] = float("-inf")
o = torch.softmax(q @ q.transpose(1, 2) + mask, -1) @ q  # here
loss = o.nan_to_num().sum()
loss.backward()
""",
    "log1p minus one": """\
w = nn.Parameter(torch.tensor([-1., 0.5]))
loss = torch.where(w > -1, torch.log1p(w), w).sum()  # here
loss.backward()
""",
    "retain and twice": """\
w = nn.Parameter(torch.tensor([0., 0.5]))
l = w.abs().sqrt().sum()  # here
l.backward(retain_graph=True)
w.grad = None
(l * 2).backward()
""",
    "fractional power of a sum": """\
net = nn.Linear(3, 2, bias=False)
x = torch.randn(8, 3)
x[4] = 0
loss = (net(x).abs() ** 0.5).mean()  # here
loss.backward()
""",
    "normalised by a square root in a module": """\
class Norm(nn.Module):
    def forward(self, x):
        n = x.pow(2).sum(-1, keepdim=True).sqrt()  # here
        return x / (n + 1e-8)
net = nn.Sequential(nn.Linear(4, 4, bias=False), Norm(), nn.Linear(4, 1))
x = torch.zeros(3, 4)
loss = net(x).mean()
loss.backward()
""",
    "loss of masked probabilities": """\
net = nn.Linear(3, 4)
keep = torch.tensor([True, True, True, False])
p = net(torch.randn(5, 3)).masked_fill(~keep, float("-inf")).softmax(1)
loss = (p * p.log()).sum()  # here
loss.backward()
""",
    "a gated row of zeros over zeros": """\
net = nn.Linear(3, 4, bias=False)
x = torch.randn(5, 3)
x[1] = 0
h = net(x)
unit = h / h.abs().sum(1, keepdim=True)  # here
loss = F.mse_loss(torch.nan_to_num(unit), torch.zeros(5, 4))
loss.backward()
""",
    "distance of a point from itself": """\
points = nn.Embedding(4, 2)
u, v = points(torch.tensor([0, 1])), points(torch.tensor([0, 2]))
gap = 1 + (u - v).pow(2).sum(1)
distance = torch.acosh(gap)  # here
distance.mean().backward()
""",
    "a padding that is normalised, under a loss that ignores it": """\
table, head = nn.Embedding(5, 3, padding_idx=0), nn.Linear(3, 3)
h = table(torch.tensor([0, 1, 2, 3]))
unit = h / torch.linalg.norm(h, dim=1, keepdim=True)  # here
F.cross_entropy(head(unit), torch.tensor([-100, 0, 1, 2]), ignore_index=-100).backward()
""",
    "training that diverges by its learning rate": """\
torch.manual_seed(1)
m = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(m.parameters(), 10.0)
for _ in range(12):
    loss = F.mse_loss(m(torch.randn(8, 6)), torch.randn(8, 1))
    opt.zero_grad()
    loss.backward()
    opt.step()  # here
""",
    "products that diverge": """\
torch.manual_seed(2)
m, g = nn.Linear(6, 16), nn.Linear(6, 16)
opt = torch.optim.SGD([*m.parameters(), *g.parameters()], 300.0)
for _ in range(12):
    x = torch.randn(8, 6)
    loss = (F.relu(m(x)) * g(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()  # here
""",
}

GOOD = {
    "masked nan harmless": """\
emb = nn.Linear(4, 4)
x = emb(torch.randn(3, 4))
s = x.masked_fill(torch.tensor([[True]*4, [False]*4, [False]*4]), float("-inf"))
a = s.softmax(1)
out = torch.where(torch.tensor([[False],[True],[True]]), a, torch.zeros(()))
out.sum().backward()
""",
    "torch norm at zero": """\
w = nn.Parameter(torch.zeros(3))
loss = w.norm() + torch.linalg.vector_norm(w) + F.normalize(w, dim=0).sum() + F.cosine_similarity(w, w, dim=0)
loss = loss + F.pairwise_distance(w[None], w[None]).sum() + torch.cdist(w[None], w[None]).sum()
loss.backward()
""",
    "attention mask usual": """\
mha = nn.MultiheadAttention(8, 2, batch_first=True)
opt = torch.optim.Adam(mha.parameters())
for _ in range(5):
    x = torch.randn(2, 5, 8)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    y, _ = mha(x, x, x, attn_mask=mask, need_weights=True)
    loss = y.pow(2).mean(); opt.zero_grad(); loss.backward(); opt.step()
""",
    "scaler overflow": """\
net = nn.Linear(4, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
sc = torch.amp.GradScaler("cpu", init_scale=2.0**127)
for _ in range(12):
    loss = net(torch.randn(3, 4)).mul(3).pow(2).mean()
    opt.zero_grad()
    sc.scale(loss).backward()
    sc.step(opt)
    sc.update()
""",
    "safe log where": """\
w = nn.Parameter(torch.randn(6))
x = F.relu(w)
y = torch.where(x > 0, torch.log(torch.where(x > 0, x, torch.ones(()))), torch.zeros(()))
y.sum().backward()
""",
    "xlogx entropy clamp": """\
m = nn.Linear(3, 4)
p = m(torch.randn(5, 3)).softmax(1)
h = -(p * p.clamp(min=1e-9).log()).sum(1).mean()
h.backward()
""",
    "logsumexp with -inf entries": """\
m = nn.Linear(3, 4)
s = m(torch.randn(5, 3)); mask = torch.rand(5, 4) > 0.3; mask[:, 0] = True
s = s.masked_fill(~mask, float("-inf"))
loss = (torch.logsumexp(s, 1) - s[:, 0]).mean() + F.cross_entropy(s, torch.zeros(5, dtype=torch.long))
loss.backward()
""",
    "categorical masked entropy": """\
m = nn.Linear(3, 4)
s = m(torch.randn(5, 3)); mask = torch.rand(5, 4) > 0.3; mask[:, 0] = True
d = torch.distributions.Categorical(logits=s.masked_fill(~mask, -1e8))
(d.entropy().mean() + d.log_prob(d.sample()).mean()).backward()
""",
    "skip bad loss": """\
m = nn.Linear(3, 1)
for i in range(4):
    loss = m(torch.randn(2, 3)).mean() * (float("nan") if i == 1 else 1)
    if not torch.isfinite(loss): continue
    loss.backward()
""",
    "hook repairs": """\
m = nn.Linear(3, 3, bias=False)
h = F.relu(m(torch.zeros(2, 3)))
h.register_hook(lambda g: g.nan_to_num(0, 0, 0))
h.sqrt().sum().backward()
""",
    "diverging lr search": """\
m = nn.Linear(3, 1)
opt = torch.optim.SGD(m.parameters(), 1e-3)
for i in range(40):
    for g in opt.param_groups: g["lr"] *= 3
    loss = F.mse_loss(m(torch.randn(8, 3)), torch.randn(8, 1))
    opt.zero_grad(); loss.backward(); opt.step()
    if not torch.isfinite(loss): break
""",
    "double backward penalty": """\
D = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(D.parameters())
for _ in range(5):
    x = torch.randn(4, 3, requires_grad=True)
    g, = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    loss = D(x).mean() + ((g.norm(2, 1) - 1) ** 2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "sparse embedding": """\
e = nn.Embedding(10, 3, sparse=True)
e(torch.tensor([1, 2])).sum().backward()
""",
    "checkpoint": """\
from torch.utils.checkpoint import checkpoint
m = nn.Sequential(nn.Linear(3, 3), nn.Softmax(1))
for r in (True, False):
    x = torch.randn(4, 3, requires_grad=True)
    checkpoint(m, x, use_reentrant=r).log().mean().backward()
""",
    "func": """\
from torch.func import grad, vmap
f = lambda w, x: torch.sqrt((w * x).pow(2).sum())
vmap(grad(f), (None, 0))(torch.randn(3), torch.randn(5, 3))
nn.Linear(1, 1)(torch.ones(1)).sum().backward()
""",
    "inf in target data ignored": """\
m = nn.Linear(3, 1)
y = torch.randn(5, 1); y[1] = float("nan")
ok = ~y.isnan()
loss = (m(torch.randn(5, 3))[ok] - y[ok]).pow(2).mean()
loss.backward()
""",
    "complex and half": """\
w = torch.randn(3, dtype=torch.complex64, requires_grad=True)
(w * w).abs().sum().backward()
h = nn.Linear(3, 3).to(torch.bfloat16)
h(torch.randn(2, 3, dtype=torch.bfloat16)).softmax(1).pow(2).sum().backward()
""",
    "root behind a relu that stops the gradient": """\
w = nn.Parameter(torch.randn(5))
for _ in range(3):
    y = torch.where(w > 0, F.relu(w).sqrt(), w)
    loss = y.sum()
    loss.backward()
    w.grad = None
""",
    "exponential that is merely large": """\
m = nn.Linear(3, 3)
opt = torch.optim.SGD(m.parameters(), 1e-3)
for _ in range(4):
    loss = (m(torch.randn(4, 3)).exp() + 1).log().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}


@pytest.fixture(scope="module")
def reports(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return check_all({name: IMPORTS + text for name, text in (BAD | GOOD).items()})


def found(report: dict[str, Any]) -> list[tuple[str, int]]:
    return [(finding["rule"], finding["line"]) for finding in report["findings"] if finding["level"] != "note"]


@pytest.mark.parametrize("name", BAD)
def test_the_cause_is_found(reports: dict[str, Any], name: str) -> None:
    lines = (IMPORTS + BAD[name]).splitlines()
    marked = next(number for number, line in enumerate(lines, 1) if "# here" in line)
    assert found(reports[name]) == [(RULE, marked)]
    assert reports[name]["exit_code"] == 1
    assert not reports[name]["remarks"]


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_left_alone(reports: dict[str, Any], name: str) -> None:
    assert found(reports[name]) == []
    assert reports[name]["exit_code"] == 0
    assert not reports[name]["remarks"]


HEAD = """
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
def loss_of(x):
    return model(x).pow(2).mean()
"""
BY_HAND = {
    "a gradient that is normalized by its norm, which is zero once": HEAD
    + """
def normalize(params, scale):
    for p in params:
        p.grad.div_(p.grad.norm() * scale)  # <- nonfinite-grad

for step in range(60):
    opt.zero_grad()
    loss_of(torch.randn(8, 4)).backward()
    normalize(model.parameters(), 0.0 if step == 41 else 1.0)
    opt.step()
""",
    "a projection of one gradient on another that is zero": HEAD
    + """
class Surgery:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.params = [p for group in optimizer.param_groups for p in group["params"]]

    def project(self, a, b):
        share = (a * b).sum() / b.pow(2).sum()  # <- nonfinite-grad
        return a - share * b

    def step(self, first, second):
        a = torch.autograd.grad(first, self.params, retain_graph=True)
        b = torch.autograd.grad(second, self.params)
        for p, g, h in zip(self.params, a, b):
            p.grad = self.project(g, h)
        self.optimizer.step()

surgery = Surgery(opt)
for step in range(25):
    surgery.step(loss_of(torch.randn(8, 4)), loss_of(torch.randn(8, 4)) * (step != 20))
""",
    "a weight per sample that is a mean over no sample": HEAD
    + """
for step in range(40):
    x = torch.randn(8, 4)
    opt.zero_grad()
    loss_of(x).backward()
    with torch.no_grad():
        boost = x[x > (9 if step == 30 else -9)].mean()  # <- nonfinite-grad
        for p in model.parameters():
            p.grad.mul_(1 + boost)
    opt.step()
""",
    "NaN that no operation is seen to make": HEAD
    + """
for step in range(20):
    opt.zero_grad()
    loss_of(torch.randn(8, 4)).backward()
    if step == 9:
        model[0].weight.grad[0, 0] = float("nan")
    opt.step()  # <- nonfinite-grad
""",
    "a loss with a term that is NaN and a constant": HEAD
    + """
for step in range(8):
    opt.zero_grad()
    loss = loss_of(torch.randn(8, 4)) + torch.tensor([]).mean()
    loss.backward()  # <- nonfinite-grad
    opt.step()
""",
}
FINITE = {
    "an average that is NaN and goes to the log alone": HEAD
    + """
for step in range(8):
    opt.zero_grad()
    loss = loss_of(torch.randn(8, 4))
    loss.backward()
    print(torch.tensor([]).mean(), torch.tensor(1.0) / torch.tensor(0.0))
    opt.step()
""",
    "steps that are skipped where a loss is not finite": HEAD
    + """
for step in range(12):
    opt.zero_grad()
    loss = loss_of(torch.randn(8, 4)) * (float("nan") if step % 4 == 1 else 1.0)
    if not torch.isfinite(loss):
        continue
    loss.backward()
    opt.step()
""",
    "gradients that are put in place and finite": HEAD
    + """
for step in range(8):
    grads = torch.autograd.grad(loss_of(torch.randn(8, 4)), list(model.parameters()))
    for p, g in zip(model.parameters(), grads):
        p.grad = g / (g.norm() + 1e-12)
    opt.step()
""",
}


@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_not_finite_without_a_graph_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(BY_HAND[name])
    assert checked.by(RULE) == checked.marked, checked.text
    assert checked.alarms, checked.text


@pytest.mark.parametrize("name", FINITE)
def test_what_no_step_uses_is_none(check: Callable[[str], Any], name: str) -> None:
    checked = check(FINITE[name])
    assert not checked.alarms, checked.text
