"""An image classifier with batch normalization, dropout and a learning rate schedule."""

import argparse

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
        )
        self.dropout = nn.Dropout(0.25)
        self.classifier = nn.Linear(64, classes)

    def forward(self, x):
        x = self.features(x)
        x = torch.flatten(x, 1)
        x = self.dropout(x)
        return self.classifier(x)


def make_loader(samples, batch_size, shuffle):
    images = torch.randn(samples, 1, 12, 12)
    labels = torch.randint(0, 4, (samples,))
    images += labels.view(-1, 1, 1, 1) * 0.5
    return DataLoader(TensorDataset(images, labels), batch_size=batch_size, shuffle=shuffle)


def train(args, model, loader, criterion, optimizer, epoch):
    model.train()
    running = 0.0
    for batch, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        running += loss.item()
        if batch % args.log_interval == 0:
            print(f"epoch {epoch} batch {batch} loss {loss.item():.4f}")
    return running / len(loader)


def test(model, loader, criterion):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            total += criterion(output, target).item()
            correct += output.argmax(dim=1).eq(target).sum().item()
    print(f"test loss {total / len(loader):.4f} accuracy {correct / len(loader.dataset):.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--log-interval", type=int, default=5)
    args = parser.parse_args()

    torch.manual_seed(0)
    train_loader = make_loader(192, args.batch_size, True)
    test_loader = make_loader(96, args.batch_size, False)
    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, args.epochs + 1):
        train(args, model, train_loader, criterion, optimizer, epoch)
        test(model, test_loader, criterion)
        scheduler.step()


if __name__ == "__main__":
    main()
