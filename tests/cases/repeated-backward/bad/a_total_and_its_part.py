import torch
from torch import nn

torch.manual_seed(0)

def train(model, opt):
    out = torch.tanh(model(torch.randn(8, 3)))
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    print([p.grad.norm().item() for p in model.parameters()])
    loss.backward()  # <- repeated-backward
    opt.step()

model = nn.Linear(3, 1)
train(model, torch.optim.SGD(model.parameters(), lr=0.1))
