import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(2):
    optimizer.zero_grad()
    for i in range(8):
        loss = model(torch.randn(8, 3)).pow(2).mean() / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            optimizer.zero_grad()
        optimizer.step()  # <- stale-grad
