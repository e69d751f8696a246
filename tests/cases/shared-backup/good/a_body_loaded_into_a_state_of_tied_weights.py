import torch
from torch import nn

torch.manual_seed(0)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 6), nn.Linear(6, 9, bias=False)
        self.body = nn.Linear(6, 6)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.body(self.embed(x)).tanh())


model = Tied()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
pretrained = {"embed.weight": torch.randn(9, 6)}
x = torch.randint(9, (16,))
for stage in range(2):
    state = model.state_dict()
    for batch in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), x).backward()
        optimizer.step()
    state.update(pretrained)
    model.load_state_dict(state)
state = model.state_dict()
state["embed.weight"] = pretrained["embed.weight"]
model.load_state_dict(state)
model.load_state_dict(model.state_dict())
