import torch
from torch import nn

torch.manual_seed(0)

actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
opt_a, opt_c = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(3):
    s = torch.randn(16, 4)
    value = critic(s).squeeze(1)
    critic_loss = (value - 1).pow(2).mean()
    critic_loss.backward()  # <- stale-grad
    opt_c.step()
    opt_a.zero_grad()
    actor_loss = -(torch.log_softmax(actor(s), 1)[:, 0] * value.detach()).mean()
    actor_loss.backward()
    opt_a.step()
