"""A character network updated by hand, without torch.optim."""

import torch
import torch.nn.functional as F

g = torch.Generator().manual_seed(2147483647)
vocab_size, block_size, n_embd, n_hidden = 15, 3, 6, 32


def build_dataset(words):
    xs, ys = [], []
    for w in words:
        context = [0] * block_size
        for ix in [*w, 0]:
            xs.append(context)
            ys.append(ix)
            context = [*context[1:], ix]
    return torch.tensor(xs), torch.tensor(ys)


words = [[1 + (start + 2 * k) % (vocab_size - 1) for k in range(5)] for start in range(40)]
Xtr, Ytr = build_dataset(words[:32])
Xdev, Ydev = build_dataset(words[32:])

C = torch.randn((vocab_size, n_embd), generator=g)
W1 = torch.randn((n_embd * block_size, n_hidden), generator=g) * 0.3
b1 = torch.randn(n_hidden, generator=g) * 0.01
W2 = torch.randn((n_hidden, vocab_size), generator=g) * 0.1
b2 = torch.zeros(vocab_size)
bngain = torch.ones((1, n_hidden))
bnbias = torch.zeros((1, n_hidden))
bnmean_running = torch.zeros((1, n_hidden))
parameters = [C, W1, b1, W2, b2, bngain, bnbias]
for p in parameters:
    p.requires_grad = True
print(sum(p.nelement() for p in parameters))


def forward(x, training):
    global bnmean_running
    emb = C[x].view(x.shape[0], -1)
    hpreact = emb @ W1 + b1
    if training:
        mean = hpreact.mean(0, keepdim=True)
        with torch.no_grad():
            bnmean_running = 0.9 * bnmean_running + 0.1 * mean
    else:
        mean = bnmean_running
    h = torch.tanh(bngain * (hpreact - mean) + bnbias)
    return h @ W2 + b2


lossi = []
for i in range(60):
    ix = torch.randint(0, Xtr.shape[0], (32,), generator=g)
    logits = forward(Xtr[ix], training=True)
    loss = F.cross_entropy(logits, Ytr[ix])
    for p in parameters:
        p.grad = None
    loss.backward()
    lr = 0.1 if i < 40 else 0.01
    for p in parameters:
        p.data += -lr * p.grad
    if i % 20 == 0:
        print(f"{i:4d}: {loss.item():.4f}")
    lossi.append(loss.log10().item())


@torch.no_grad()
def split_loss(x, y):
    return F.cross_entropy(forward(x, training=False), y).item()


print("train", split_loss(Xtr, Ytr), "dev", split_loss(Xdev, Ydev))
