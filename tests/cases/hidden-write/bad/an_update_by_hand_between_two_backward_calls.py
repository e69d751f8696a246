import torch

torch.manual_seed(0)

w, u = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)
y = (torch.randn(2, 3) @ u) @ w
y.mean().backward(retain_graph=True)
w.data -= 0.1 * w.grad  # <- hidden-write
w.grad = u.grad = None
y.pow(2).mean().backward()
