import torch
from torch import nn

torch.manual_seed(0)

def net(*sizes):
    return nn.Sequential(*(part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.Tanh())))

model = net(3, 4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(8)]
gen, disc = net(2, 4, 3), net(3, 4, 1)
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())

actor, critic = net(3, 4, 2), net(3, 4, 1)
a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
for x, y in data:
    dist = torch.distributions.Categorical(logits=actor(x))
    action = dist.sample()
    value = critic(x).squeeze(1)
    advantage = y.squeeze(1) - value
    policy_loss = -(dist.log_prob(action) * advantage).mean()
    a_opt.zero_grad(); c_opt.zero_grad()
    policy_loss.backward(retain_graph=True)  # <- leaked-grad
    advantage.pow(2).mean().backward()
    a_opt.step(); c_opt.step()
