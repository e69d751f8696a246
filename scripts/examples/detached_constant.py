"""A fault: a learned penalty enters the loss through `.item()` and `detach()`, and no gradient gets through those."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
strength = nn.Parameter(torch.tensor(0.1))
optimizer = torch.optim.SGD([*model.parameters(), strength], lr=0.1)
inputs, targets = torch.randn(16, 4), torch.randn(16, 1)

for _ in range(5):
    error = nn.functional.mse_loss(model(inputs), targets)
    # The penalty enters the loss as a constant: `detach()` cuts it off from the weights.
    penalty = strength.item() * model.weight.detach().pow(2).sum()
    loss = error + penalty

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(f"loss {loss.item():.3f}, gradient of strength: {strength.grad}")
