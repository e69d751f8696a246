"""A small language model: autocast, a gradient scaler, gradient accumulation, tied embeddings."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1337)
vocab, block, width, heads = 24, 12, 32, 4
accumulation = 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q = q.view(b, t, heads, c // heads).transpose(1, 2)
        k = k.view(b, t, heads, c // heads).transpose(1, 2)
        v = v.view(b, t, heads, c // heads).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(b, t, c)
        return self.proj(y)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention()
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width), nn.Dropout(0.1))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(block, width)
        self.blocks = nn.ModuleList([Block() for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for layer in self.blocks:
            x = layer(x)
        logits = self.lm_head(self.norm(x))
        loss = F.cross_entropy(logits.view(-1, vocab), targets.view(-1))
        return logits, loss


def get_batch():
    data = (torch.arange(block + 1) + torch.randint(0, vocab, (8, 1))) % vocab
    return data[:, :-1].contiguous(), data[:, 1:].contiguous()


@torch.no_grad()
def estimate_loss(model, batches=6):
    model.eval()
    losses = torch.zeros(batches)
    for k in range(batches):
        x, y = get_batch()
        _, loss = model(x, y)
        losses[k] = loss.item()
    model.train()
    return losses.mean()


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(48):
    x, y = get_batch()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, loss = model(x, y)
        loss = loss / accumulation
    scaler.scale(loss).backward()
    if (step + 1) % accumulation == 0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
    if step % 16 == 15:
        print(f"step {step}: val loss {estimate_loss(model):.4f}")
