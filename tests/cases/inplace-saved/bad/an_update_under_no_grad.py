import torch
from torch import nn

torch.manual_seed(0)

student, teacher = nn.Linear(4, 4), nn.Linear(4, 4)
loss = teacher(student(torch.randn(3, 4))).pow(2).mean()
with torch.no_grad():
    for mine, theirs in zip(teacher.parameters(), student.parameters()):
        mine.lerp_(theirs, 0.1)  # <- inplace-saved
loss.backward()
