"""Knowledge distillation: a teacher is trained, then a student learns from its soft targets and features."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(20)
CLASSES, T, ALPHA = 5, 3.0, 0.7


class Classifier(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Dropout(0.2))
        self.mid = nn.Linear(width, width)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x, return_features=False):
        h = self.stem(x)
        feat = torch.tanh(self.mid(h))
        logits = self.head(feat)
        return (logits, feat) if return_features else logits


def loader(batches, size=16):
    for _ in range(batches):
        y = torch.randint(0, CLASSES, (size,))
        yield F.one_hot(y, 10).float() * 2 + 0.7 * torch.randn(size, 10), y


def kd_loss(student_logits, teacher_logits, labels):
    soft = F.kl_div(
        F.log_softmax(student_logits / T, dim=1), F.softmax(teacher_logits / T, dim=1), reduction="batchmean"
    )
    hard = F.cross_entropy(student_logits, labels)
    return ALPHA * T * T * soft + (1 - ALPHA) * hard


def train_teacher(teacher, epochs=2):
    optimizer = torch.optim.Adam(teacher.parameters(), lr=5e-3)
    teacher.train()
    for _ in range(epochs):
        for x, y in loader(10):
            loss = F.cross_entropy(teacher(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def train_student(student, regressor, teacher, epochs=3):
    params = list(student.parameters()) + list(regressor.parameters())
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2], gamma=0.1)
    teacher.eval()
    for epoch in range(epochs):
        student.train()
        total = 0.0
        for x, y in loader(12):
            with torch.no_grad():
                t_logits, t_feat = teacher(x, return_features=True)
            s_logits, s_feat = student(x, return_features=True)
            loss = kd_loss(s_logits, t_logits, y) + 0.5 * F.mse_loss(regressor(s_feat), t_feat)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(f"epoch {epoch} kd {total / 12:.4f} accuracy {accuracy(student):.3f}")


def accuracy(model):
    model.eval()
    correct = seen = 0
    with torch.no_grad():
        for x, y in loader(6):
            correct += (model(x).argmax(1) == y).sum().item()
            seen += y.numel()
    return correct / seen


teacher, student, regressor = Classifier(32), Classifier(12), nn.Linear(12, 32)
print(f"teacher {train_teacher(teacher):.4f} {accuracy(teacher):.3f}")
train_student(student, regressor, teacher)
