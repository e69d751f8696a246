import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def objective(logits, soft, labels):
    distilled = F.kl_div(F.log_softmax(logits / 2, 1), soft, reduction="batchmean")
    supervised = F.cross_entropy(logits, labels)  # <- unused-loss
    return 4 * distilled


def train(student, teacher, steps=6):
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(steps):
        x, y = torch.randn(16, 5), torch.randint(0, 3, (16,))
        with torch.no_grad():
            soft = F.softmax(teacher(x) / 2, 1)
        loss = objective(student(x), soft, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(nn.Linear(5, 3), nn.Linear(5, 3))
