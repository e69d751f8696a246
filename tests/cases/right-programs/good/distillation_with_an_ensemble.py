import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

teachers = [nn.Linear(4, 3).eval() for _ in range(2)]
student = nn.Linear(4, 3)
opt = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    with torch.no_grad():
        soft = sum(t(x).softmax(1) for t in teachers) / 2
    logits = student(x)
    loss = F.cross_entropy(logits, y) + F.kl_div(logits.log_softmax(1), soft, reduction="batchmean")
    opt.zero_grad()
    loss.backward()
    opt.step()
