import torch
from torch import nn

torch.manual_seed(0)

class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(3, 8)
        self.actor, self.critic = nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, inputs):
        x, (hx, cx) = inputs
        hx, cx = self.lstm(x, (hx, cx))
        return self.critic(hx), self.actor(hx), (hx, cx)

model = ActorCritic()
optimizer = torch.optim.Adam(model.parameters())
hx, cx = torch.zeros(1, 8), torch.zeros(1, 8)
for episode in range(2):
    values, log_probs = [], []
    for step in range(4):
        value, logit, (hx, cx) = model((torch.randn(1, 3), (hx, cx)))  # <- freed-graph
        values.append(value)
        log_probs.append(logit.log_softmax(1)[0, 0])
    loss = torch.cat(values).pow(2).mean() - torch.stack(log_probs).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
