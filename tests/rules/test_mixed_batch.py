"""Samples that mix along the wrong dimension are told where the code itself shows what is meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RULE = "mixed-batch"

IMPORTS = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

#: the line to be blamed is marked
BAD = {
    "einsum": """\
lin = nn.Linear(4, 4); q = torch.randn(6, 4); c = torch.randn(6, 5, 4)
w = torch.einsum("bd,btd->bt", lin(q), c).softmax(0)  # here
torch.einsum("bt,btd->bd", w, c).pow(2).mean().backward()
""",
    "mul sum": """\
lin = nn.Linear(4, 1); c = torch.randn(6, 5, 4)
w = F.softmax(lin(c).squeeze(-1), dim=0)  # here
(w.unsqueeze(-1) * c).sum(1).pow(2).mean().backward()
""",
    "bmm with implicit dim": """\
lin = nn.Linear(4, 4); c = torch.randn(6, 5, 4)
s = torch.bmm(lin(c), c.transpose(1, 2))
w = nn.Softmax(dim=0)(s)  # here
torch.bmm(w, c).pow(2).mean().backward()
""",
    "lstm last": """\
rnn = nn.LSTM(4, 8); fc = nn.Linear(8, 2)
o, _ = rnn(torch.randn(6, 5, 4))  # here
fc(o[:, -1, :]).mean().backward()
""",
    "gru in module": """\
class G(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 4); self.g = nn.GRU(4, 8, 2, bidirectional=True); self.o = nn.Linear(16, 1)
    def forward(self, t):
        h, _ = self.g(self.e(t))  # here
        return self.o(h[:, -1])
m = G()
m(torch.randint(0, 10, (7, 3))).mean().backward()
""",
    "batch first last sample": """\
rnn = nn.LSTM(4, 8, batch_first=True); fc = nn.Linear(8, 2)
o, _ = rnn(torch.randn(5, 6, 4))
fc(o[-1]).mean().backward()  # here
""",
    "policy by gather": """\
m = nn.Linear(4, 3); x = torch.randn(6, 4); a = torch.randint(0, 3, (6, 1))
p = F.softmax(m(x), dim=0)  # here
(-p.gather(1, a).squeeze(1).log()).mean().backward()
""",
    "probabilities of a distribution": """\
from torch.distributions import Categorical
m = nn.Linear(4, 3); x = torch.randn(6, 4)
d = Categorical(torch.softmax(m(x), dim=0))  # here
(-d.log_prob(d.sample())).mean().backward()
""",
    "log softmax and nll": """\
m = nn.Sequential(nn.Linear(4, 3), nn.LogSoftmax(dim=0)); x = torch.randn(6, 4)
nn.NLLLoss()(m(x), torch.randint(0, 3, (6,))).backward()  # here too
""".replace("# here too", "# here"),
    "attention averaged": """\
a = nn.MultiheadAttention(8, 2); fc = nn.Linear(8, 3); x = torch.randn(6, 5, 8)
o, _ = a(x, x, x)  # here
F.cross_entropy(fc(F.relu(x + o).mean(1)), torch.randint(0, 3, (6,))).backward()
""",
    "transformer's first token": """\
class T(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16)
        self.encoder, self.fc = nn.TransformerEncoder(layer, 1), nn.Linear(8, 3)
    def forward(self, x):
        x = self.encoder(x)  # here
        return self.fc(x[:, 0])
F.cross_entropy(T()(torch.randn(6, 5, 8)), torch.randint(0, 3, (6,))).backward()
""",
    "gru averaged after a layer": """\
g = nn.GRU(4, 8); one, two = nn.Linear(8, 8), nn.Linear(8, 1); x = torch.randn(6, 5, 4)
o, _ = g(x)  # here
two(torch.tanh(one(o)).max(dim=1).values).sum().backward()
""",
    "sizes exchanged by view": """\
e = nn.Embedding(9, 4); g = nn.GRU(4, 8); t = torch.randint(0, 9, (5, 7))
x = e(t).view(7, 5, -1)  # here
g(x)[0][-1].sum().backward()
""",
    "batch of a loader taken for time": """\
from torch.utils.data import DataLoader, TensorDataset
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r, self.o = nn.Embedding(9, 4), nn.LSTM(4, 8), nn.Linear(8, 9)
    def forward(self, t):
        h, _ = self.r(F.dropout(self.e(t), 0.1))  # here
        return self.o(h)
m = LM()
for (t,) in DataLoader(TensorDataset(torch.randint(0, 9, (20, 7))), batch_size=5, shuffle=True):
    F.cross_entropy(m(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten()).backward()
""",
    "features of a loader through a layer": """\
from torch.utils.data import DataLoader
data = [(torch.randn(6, 4), torch.randn(6, 1)) for _ in range(12)]
i, r, o = nn.Linear(4, 4), nn.GRU(4, 8), nn.Linear(8, 1)
for x, y in DataLoader(data, batch_size=4, shuffle=True):
    h, _ = r(i(x))  # here
    F.mse_loss(o(h), y).backward()
""",
    "width brought to the front by view": """\
c, r = nn.Conv2d(1, 3, 3), nn.LSTM(12, 8)
f = c(torch.randn(5, 1, 6, 9))
s = f.view(7, 5, 12)  # here
r(s)[0][-1].sum().backward()
""",
    "attention pooling with one score": """\
g, s = nn.GRU(4, 6, batch_first=True), nn.Linear(6, 1)
h, _ = g(torch.randn(5, 7, 4))
w = torch.softmax(s(h), dim=0)  # here
(w * h).sum(dim=1).pow(2).mean().backward()
""",
    "state flattened": """\
g = nn.LSTM(4, 8, 2, batch_first=True); fc = nn.Linear(16, 2); x = torch.randn(6, 5, 4)
_, (h, c) = g(x)
h = h.view(6, -1)  # here
fc(h).sum().backward()
""",
    "heads in front of a batch that stays": """\
qkv, out = nn.Linear(8, 8), nn.Linear(8, 1)
x = torch.randn(6, 5, 8)
q = qkv(x).reshape(2, 6, 5, 4)  # here
y = (q @ q.transpose(-1, -2)).softmax(-1) @ q
out(y.reshape(6, 5, 8)).mean().backward()
""",
}

GOOD = {
    "right attention": """\
lin = nn.Linear(4, 4); q = torch.randn(6, 4); c = torch.randn(6, 5, 4)
w = torch.einsum("bd,btd->bt", lin(q), c).softmax(1)
torch.einsum("bt,btd->bd", w, c).pow(2).mean().backward()
""",
    "time first": """\
enc = nn.Linear(4, 4); c = torch.randn(5, 6, 4)
s = enc(c).sum(-1)
w = s.softmax(0)
torch.bmm(w.t().unsqueeze(1), c.transpose(0, 1)).mean().backward()
""",
    "time first mul": """\
enc = nn.Linear(4, 4); c = torch.randn(5, 6, 4)
w = enc(c).sum(-1, keepdim=True).softmax(0)
(w * c).sum(0).mean().backward()
""",
    "pooling over nodes with heads": """\
enc = nn.Linear(4, 3); x = torch.randn(7, 4)
w = enc(x).softmax(0)
(w.t() @ x).mean().backward()
""",
    "experts first": """\
g = nn.Linear(4, 3); x = torch.randn(7, 4); e = torch.randn(3, 7, 5)
w = g(x).t().softmax(0)
(w.unsqueeze(-1) * e).sum(0).mean().backward()
""",
    "slots": """\
s = nn.Parameter(torch.randn(3, 4)); x = torch.randn(7, 4)
a = (s @ x.t()).softmax(0)
a = a / a.sum(1, keepdim=True)
(a @ x).mean().backward(retain_graph=True)
(a.unsqueeze(-1) * x.unsqueeze(0)).sum(1).mean().backward()
""",
    "rnn right ones": """\
x = torch.randn(6, 5, 4)
o, h = nn.LSTM(4, 8)(x); o[-1].mean().backward()
o, h = nn.LSTM(4, 8, batch_first=True)(x); o[:, -1].mean().backward()
o, h = nn.GRU(4, 8)(x.transpose(0, 1)); o.transpose(0, 1)[:, -1].mean().backward()
o, h = nn.GRU(4, 8)(x); h[-1].mean().backward()
o, h = nn.RNN(4, 8)(x); o.mean().backward()
""",
    "packed": """\
x = torch.randn(6, 5, 4)
p = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 5, 4, 3, 2, 1]), batch_first=True)
o, h = nn.LSTM(4, 8, batch_first=True)(p)
o, _ = nn.utils.rnn.pad_packed_sequence(o, batch_first=True)
o[:, -1].mean().backward()
o, h = nn.GRU(4, 8, batch_first=True)(p)
""",
    "one sample": """\
o, _ = nn.LSTM(4, 8)(torch.randn(6, 1, 4)); o[:, -1].mean().backward()
""",
    "importance weights": """\
w = nn.Linear(4, 1)(torch.randn(5, 7, 4)).squeeze(-1)
(w.softmax(0).detach() * w).sum(0).mean().backward()
(w.detach() + nn.Parameter(torch.zeros(5, 7))).softmax(0).mul(torch.randn(5, 7)).sum(0).mean().backward()
""",
    "a distribution over classes": """\
from torch.distributions import Categorical
m = nn.Linear(4, 3); x = torch.randn(6, 4)
d = Categorical(torch.softmax(m(x), dim=1))
(-d.log_prob(d.sample())).mean().backward()
one = Categorical(torch.softmax(m(x[0]), dim=0))
(-one.log_prob(one.sample())).mean().backward()
""",
    "log softmax over classes": """\
m = nn.Linear(4, 3); x = torch.randn(6, 4)
F.nll_loss(F.log_softmax(m(x), dim=1), torch.randint(0, 3, (6,))).backward()
p = m(x).softmax(1)
p.gather(1, torch.zeros(6, 1, dtype=torch.long)).log().mean().backward()
""",
    "time first, averaged over time": """\
x = torch.randn(6, 5, 8); fc = nn.Linear(8, 3)
o, _ = nn.MultiheadAttention(8, 2)(x, x, x)
fc(o.mean(0)).sum().backward()
o = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)(x)
(fc(o.mean(1)).sum() + fc(o[:, 0]).sum()).backward()
""",
    "loss of each step averaged over the batch": """\
x = torch.randn(6, 5, 4); fc = nn.Linear(8, 1)
o, _ = nn.GRU(4, 8)(x)
(fc(o) - x[..., :1]).pow(2).mean(1).sum().backward()
""",
    "batch mean taken off": """\
x = torch.randn(6, 5, 4); fc = nn.Linear(8, 1)
o, _ = nn.GRU(4, 8)(x)
fc(o - o.mean(1, keepdim=True)).sum().backward()
""",
    "state brought to the front": """\
x = torch.randn(6, 5, 4)
_, (h, c) = nn.LSTM(4, 8, 2, bidirectional=True)(x)
h.permute(1, 0, 2).reshape(5, -1).sum().backward()
_, h = nn.GRU(4, 8, 2)(x)
h.view(2, 1, 5, 8).sum().backward()
""",
    "heads": """\
x = nn.Linear(8, 8)(torch.randn(6, 5, 8))
x.view(6, 5, 2, 4).transpose(1, 2).reshape(12, 5, 4).sum().backward()
""",
    "loaders": """\
from torch.utils.data import DataLoader, TensorDataset
e, r, o = nn.Embedding(9, 4), nn.GRU(4, 8), nn.Linear(8, 9)
b = nn.GRU(4, 8, batch_first=True)
for (t,) in DataLoader(TensorDataset(torch.randint(0, 9, (20, 7))), batch_size=5, shuffle=True):
    o(r(e(t.t()))[0]).mean().backward()
    o(r(e(t).transpose(0, 1))[0]).mean().backward()
    o(b(e(t))[0]).mean().backward()
for (x,) in DataLoader(TensorDataset(torch.randn(20, 3, 4)), batch_size=5):
    o(r(x)[0]).mean().backward()
""",
    "images and patches": """\
x = nn.Conv2d(1, 8, 3, padding=1)(torch.randn(6, 1, 4, 4))
x.view(6, 8, 16).transpose(1, 2).sum().backward(retain_graph=True)
x.view(2, 3, 8, 4, 4).mean(1).sum().backward(retain_graph=True)
x.view(6, 2, 4, 16).sum(1).mean().backward()
""",
    "one score a step, time first": """\
g, s = nn.GRU(4, 6), nn.Linear(6, 1)
h, _ = g(torch.randn(7, 5, 4))
w = torch.softmax(s(h), dim=0)
(w * h).sum(dim=0).pow(2).mean().backward()
""",
    "last state of one layer": """\
x = torch.randn(6, 5, 4)
_, h = nn.GRU(4, 8, batch_first=True)(x)
h[-1].mean().backward()
_, (h, c) = nn.LSTM(4, 8, batch_first=True)(x)
(h[-1] + c[-1]).mean().backward()
_, h = nn.RNN(4, 8, 2)(x)
h[:, -1].mean().backward()
""",
    "heads split in their place": """\
qkv, out = nn.Linear(8, 8), nn.Linear(8, 1)
x = torch.randn(6, 5, 8)
q = qkv(x).reshape(6, 5, 2, 4).permute(2, 0, 1, 3)
y = (q @ q.transpose(-1, -2)).softmax(-1) @ q
out(y.permute(1, 2, 0, 3).reshape(6, 5, 8)).mean().backward()
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
