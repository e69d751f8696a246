import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Pix2Pix:
    def __init__(self):
        self.netG, self.netD = nn.Linear(3, 3), nn.Linear(6, 1)
        self.opt_G = torch.optim.Adam(self.netG.parameters())
        self.opt_D = torch.optim.Adam(self.netD.parameters())

    def forward(self, a, b):
        self.real_A, self.real_B = a, b
        self.fake_B = torch.tanh(self.netG(a))

    def backward_D(self):
        pred_fake = self.netD(torch.cat([self.real_A, self.fake_B], 1))  # <- freed-graph
        pred_real = self.netD(torch.cat([self.real_A, self.real_B], 1))
        self.loss_D = 0.5 * (pred_fake.pow(2).mean() + (pred_real - 1).pow(2).mean())
        self.loss_D.backward()

    def backward_G(self):
        pred = self.netD(torch.cat([self.real_A, self.fake_B], 1))
        self.loss_G = (pred - 1).pow(2).mean() + F.l1_loss(self.fake_B, self.real_B)
        self.loss_G.backward()

    def optimize(self, a, b):
        self.forward(a, b)
        self.opt_D.zero_grad()
        self.backward_D()
        self.opt_D.step()
        self.opt_G.zero_grad()
        self.backward_G()
        self.opt_G.step()

model = Pix2Pix()
for _ in range(2):
    model.optimize(torch.randn(8, 3), torch.randn(8, 3))
