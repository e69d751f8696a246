import torch
from torch import nn
from torch.autograd import Variable

torch.manual_seed(0)

model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss = Variable(loss.data, requires_grad=True)  # <- no-graph
    opt.zero_grad()
    loss.backward()
    opt.step()
