import torch

torch.manual_seed(0)

w = torch.zeros(3, 2, requires_grad=True).to(torch.float64)  # <- non-leaf-grad
o = torch.optim.SGD([w], lr=.1)
