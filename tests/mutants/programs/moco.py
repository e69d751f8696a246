"""Contrastive learning with a momentum encoder and a queue of negatives."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 3, padding=1)
        self.bn = nn.BatchNorm1d(8)
        self.fc = nn.Linear(8 * 12, dim)

    def forward(self, x):
        x = F.relu(self.bn(self.conv(x)))
        return F.normalize(self.fc(x.flatten(1)), dim=1)


class MoCo(nn.Module):
    def __init__(self, dim=16, K=64, m=0.95, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = Encoder(dim)
        self.encoder_k = Encoder(dim)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters(), strict=True):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        self.queue[:, ptr : ptr + batch_size] = keys.T
        self.queue_ptr[0] = (ptr + batch_size) % self.K

    def forward(self, im_q, im_k):
        q = self.encoder_q(im_q)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = self.encoder_k(im_k)
        l_pos = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", q, self.queue.clone().detach())
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return logits, labels


def augment(signal):
    shift = int(torch.randint(0, 3, (1,)))
    return torch.roll(signal, shift, dims=-1) + 0.1 * torch.randn_like(signal)


class AverageMeter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


torch.manual_seed(7)
model = MoCo()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(
    [p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9, weight_decay=1e-4
)
for epoch in range(3):
    losses, top1 = AverageMeter(), AverageMeter()
    model.train()
    for _ in range(12):
        signal = torch.randn(16, 1, 12)
        output, target = model(augment(signal), augment(signal))
        loss = criterion(output, target)
        losses.update(loss.item(), 16)
        top1.update((output.argmax(1) == target).float().mean().item(), 16)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {losses.avg:.4f} top1 {top1.avg:.3f}")
