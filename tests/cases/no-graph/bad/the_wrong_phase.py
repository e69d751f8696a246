import torch
from torch import nn

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for phase in ["training", "val"]:
    with torch.set_grad_enabled(phase == "train"):  # <- no-graph
        loss = model(torch.randn(8, 4)).pow(2).mean()
        if phase == "training":
            opt.zero_grad()
            loss.backward()
            opt.step()
