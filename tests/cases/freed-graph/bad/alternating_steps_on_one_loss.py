import torch

torch.manual_seed(0)

a, b = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
opt_a, opt_b = torch.optim.SGD([a], lr=0.1), torch.optim.SGD([b], lr=0.1)
loss = (a * b).sum().exp()
opt_a.zero_grad()
loss.backward()  # <- freed-graph
opt_a.step()
opt_b.zero_grad()
loss.backward()
opt_b.step()
