import torch
from torch import nn

torch.manual_seed(0)

generator = nn.Linear(2, 3)
discriminator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1), nn.Sigmoid())
adversarial_loss = nn.BCELoss()
optimizer_G = torch.optim.Adam(generator.parameters())
optimizer_D = torch.optim.Adam(discriminator.parameters())
valid, fake = torch.ones(8, 1), torch.zeros(8, 1)
for i in range(2):
    optimizer_G.zero_grad()
    gen_imgs = torch.tanh(generator(torch.randn(8, 2)))
    g_loss = adversarial_loss(discriminator(gen_imgs), valid)
    g_loss.backward()
    optimizer_G.step()
    optimizer_D.zero_grad()
    real_loss = adversarial_loss(discriminator(torch.randn(8, 3)), valid)
    fake_loss = adversarial_loss(discriminator(gen_imgs), fake)  # <- freed-graph
    d_loss = (real_loss + fake_loss) / 2
    d_loss.backward()
    optimizer_D.step()
