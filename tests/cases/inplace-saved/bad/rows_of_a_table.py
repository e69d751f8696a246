import torch

torch.manual_seed(0)

w = torch.randn(5, requires_grad=True)
table = torch.zeros(4, 5)
sums = []
for t in range(4):
    table[t] = w * t  # <- inplace-saved
    sums.append((table * table).sum())
sum(sums).backward()
