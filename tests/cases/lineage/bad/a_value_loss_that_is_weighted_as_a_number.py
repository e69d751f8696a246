import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def mlp(i, o, h=16):
    return nn.Sequential(nn.Linear(i, h), nn.Tanh(), nn.Linear(h, o))


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.v = mlp(4, 2), mlp(4, 1)

    def forward(self, s):
        return torch.distributions.Categorical(logits=self.pi(s)), self.v(s).squeeze(-1)

model = ActorCritic()
opt = torch.optim.Adam(model.parameters())
for _ in range(8):
    s, ret = torch.randn(32, 4), torch.randn(32)
    dist, value = model(s)
    a = dist.sample()
    policy_loss = -(dist.log_prob(a) * (ret - value.detach())).mean()
    value_loss = F.mse_loss(value, ret)
    loss = policy_loss + 0.5 * value_loss.item()  # <- unreached-parameter
    opt.zero_grad()
    loss.backward()
    opt.step()
