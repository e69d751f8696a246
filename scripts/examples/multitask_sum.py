"""Two heads on one trunk, trained by one combined loss: one backward call runs through both."""

import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Linear(8, 16)
digit_head = nn.Linear(16, 10)
parity_head = nn.Linear(16, 2)
parameters = [*trunk.parameters(), *digit_head.parameters(), *parity_head.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.1)

inputs = torch.randn(32, 8)
digits = torch.randint(10, (32,))

for _ in range(5):
    features = torch.relu(trunk(inputs))
    digit_loss = nn.functional.cross_entropy(digit_head(features), digits)
    parity_loss = nn.functional.cross_entropy(parity_head(features), digits % 2)
    loss = digit_loss + 0.5 * parity_loss

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(f"loss {loss.item():.3f}")
