import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    logs = []
    for _ in range(5):
        probs = model(torch.randn(4)).log_softmax(0)
        logs.append(probs[torch.multinomial(probs.exp(), 1).item()].item())  # <- no-graph
    loss = -(torch.tensor(logs) * torch.rand(5)).sum()
    loss.requires_grad = True
    opt.zero_grad()
    loss.backward()
    opt.step()
