import torch
from torch import nn

torch.manual_seed(0)

actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
actor_opt, critic_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for _ in range(3):
    s = torch.randn(16, 4)
    advantage = torch.randn(16) - critic(s).squeeze(1)
    actor_loss = -(torch.log_softmax(actor(s), 1)[:, 0] * advantage.detach()).mean()
    for opt, loss in ((actor_opt, actor_loss), (critic_opt, advantage.pow(2).mean())):
        opt.zero_grad()
        loss.backward()
        opt.step()
