"""A fault: nothing clears the gradients, so every step also repeats all the steps before it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
inputs = torch.randn(64, 4)
targets = inputs.sum(dim=1, keepdim=True)

for step in range(20):
    prediction = model(inputs)
    loss = nn.functional.mse_loss(prediction, targets)
    loss.backward()  # adds to .grad; optimizer.zero_grad() is missing
    optimizer.step()
    if step % 5 == 0:
        print(f"step {step:2}: loss {loss.item():.3f}")
