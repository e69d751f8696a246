import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
fisher, anchor = {}, {}

def consolidate(data):
    for n, p in model.named_parameters():
        fisher[n], anchor[n] = torch.zeros_like(p), p.detach().clone()
    for x in data:
        model.zero_grad()
        out = model(x).log_softmax(-1)
        F.nll_loss(out, out.argmax(-1)).backward()
        for n, p in model.named_parameters():
            fisher[n] += p.grad.detach() ** 2 / len(data)
    model.zero_grad()

for task in range(2):
    for _ in range(3):
        x = torch.randn(8, 4)
        loss = F.cross_entropy(model(x), torch.randint(0, 3, (8,)))
        for n, p in model.named_parameters():
            if fisher:
                loss = loss + (fisher[n] * (p - anchor[n]).pow(2)).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    consolidate(torch.randn(4, 2, 4))
