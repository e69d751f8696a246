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

encoder, policy = net(3, 4), net(4, 2)
e_opt, p_opt = torch.optim.Adam(encoder.parameters()), torch.optim.Adam(policy.parameters())

def represent(x):
    encoder(x).pow(2).mean().backward()
    e_opt.step()
    e_opt.zero_grad()

def control(x):
    p_opt.zero_grad()
    policy(encoder(x)).pow(2).mean().backward()  # <- leaked-grad
    p_opt.step()

for x, y in data:
    represent(x)
    control(x)
