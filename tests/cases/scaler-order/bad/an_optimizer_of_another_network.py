import torch
from torch import nn

torch.manual_seed(0)

def make():
    return nn.Linear(4, 2)
student, teacher = make(), make()
opt = torch.optim.Adam(teacher.parameters())
scaler = torch.amp.GradScaler("cpu")
for _ in range(3):
    opt.zero_grad()
    scaler.scale(student(torch.randn(8, 4)).pow(2).mean()).backward()
    scaler.step(opt)  # <- scaler-order
    scaler.update()
