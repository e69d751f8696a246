import torch

torch.manual_seed(0)

w = torch.randn(3, requires_grad=True)
loss = w.exp().sum()
torch.autograd.backward([loss], retain_graph=True)
torch.autograd.backward([loss])  # <- repeated-backward
