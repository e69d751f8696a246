import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.1))
        self.h = nn.Linear(16, 8)

    def forward(self, x):
        return self.h(self.b(x))


student, teacher = Net(), Net()
teacher.load_state_dict(student.state_dict())
teacher.eval()
for p in teacher.parameters():
    p.requires_grad = False
opt = torch.optim.AdamW(student.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, s / 3))
center = torch.zeros(8)
for step in range(12):
    x = torch.randn(16, 8)
    with torch.no_grad():
        t = F.softmax((teacher(x) - center) / 0.04, -1)
    loss = -(t * F.log_softmax(student(x + 0.1 * torch.randn_like(x)) / 0.1, -1)).sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    if step < 4:
        for n, p in student.named_parameters():
            if n.startswith("h"):
                p.grad = None
    opt.step()
    sched.step()
    with torch.no_grad():
        m = 0.99
        for a, b in zip(teacher.parameters(), student.parameters()):
            a.mul_(m).add_((1 - m) * b)
        center = center * 0.9 + 0.1 * t.mean(0)
