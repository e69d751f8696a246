import torch
from torch import nn

torch.manual_seed(0)

class Style(nn.Module):
    def forward(self, x):
        self.loss = x.pow(2).mean()
        return x
    def backward(self, retain_graph=True):
        self.loss.backward(retain_graph=retain_graph)  # <- unneeded-retain
        return self.loss

style = Style()
net = nn.Sequential(nn.Linear(3, 2), style)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 3))
    style.backward()
    opt.step()
