"""Two heads on one trunk, each with a backward call of its own: the first must keep the trunk's graph."""

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

    optimizer.zero_grad()
    # Both graphs go through `features`: without retain_graph the second call would find it freed.
    digit_loss.backward(retain_graph=True)
    parity_loss.backward()  # the gradients of both add up in the trunk
    optimizer.step()

print(f"losses {digit_loss.item():.3f} and {parity_loss.item():.3f}")
