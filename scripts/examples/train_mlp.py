"""A small classifier, trained and tested as one does; gradtrace finds nothing to complain about."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(2, 32)
        self.output = nn.Linear(32, 2)

    def forward(self, points):
        return self.output(torch.relu(self.hidden(points)))


torch.manual_seed(0)
points = torch.randn(512, 2)
inside = (points.norm(dim=1) < 1.2).long()  # is the point in the circle?
train = DataLoader(TensorDataset(points[:384], inside[:384]), batch_size=32, shuffle=True)
test = DataLoader(TensorDataset(points[384:], inside[384:]), batch_size=128)

model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(5):
    for batch, labels in train:
        loss = nn.functional.cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        hits = sum((model(batch).argmax(dim=1) == labels).sum().item() for batch, labels in test)
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}, test accuracy {hits / 128:.0%}")
