import torch
from torch import nn

torch.manual_seed(0)

netG, netD = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizerG, optimizerD = torch.optim.Adam(netG.parameters()), torch.optim.Adam(netD.parameters())
criterion = nn.BCEWithLogitsLoss()
for _ in range(2):
    netD.zero_grad()
    output = netD(torch.randn(8, 3)).view(-1)
    errD_real = criterion(output, torch.ones(8))
    errD_real.backward()
    fake = netG(torch.randn(8, 2))
    output = netD(fake).view(-1)  # <- freed-graph
    errD_fake = criterion(output, torch.zeros(8))
    errD_fake.backward()
    optimizerD.step()
    netG.zero_grad()
    output = netD(fake).view(-1)
    errG = criterion(output, torch.ones(8))
    errG.backward()
    optimizerG.step()
