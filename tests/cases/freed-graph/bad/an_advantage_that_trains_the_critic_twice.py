import torch
from torch import nn

torch.manual_seed(0)

actor, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
actor_opt, critic_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(2):
    s, returns = torch.randn(16, 4), torch.randn(16)
    advantage = returns - critic(s).squeeze(1)
    logp = torch.log_softmax(actor(s), 1)[:, 0]
    actor_loss = -(logp * advantage).mean()  # <- freed-graph
    critic_loss = advantage.pow(2).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
