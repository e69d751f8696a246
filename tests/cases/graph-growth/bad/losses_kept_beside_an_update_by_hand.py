import torch

torch.manual_seed(0)
w = torch.randn(4, 1, requires_grad=True)
history = []
for _ in range(12):
    x = torch.randn(16, 4)
    loss = (x @ w - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
    history.append(loss)  # <- graph-growth
print(sum(one.item() for one in history))
