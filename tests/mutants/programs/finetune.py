"""Transfer learning: a pretrained backbone is frozen, later thawed, under a new head; warm-up by LambdaLR."""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class ResidualNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.stem = conv_block(1, 8)
        self.block = conv_block(8, 8)
        self.shortcut = nn.Conv2d(8, 8, 1)
        self.fc = nn.Linear(8, num_classes)

    def forward(self, x):
        x = self.stem(x)
        x = self.block(x) + self.shortcut(x)
        x = x.mean(dim=(2, 3))
        return self.fc(x)


def set_trainable(module, flag):
    for param in module.parameters():
        param.requires_grad = flag


def batches(count, classes):
    for _ in range(count):
        y = torch.randint(0, classes, (12,))
        x = 0.5 * torch.randn(12, 1, 8, 8)
        x[:, 0, :, 0] += y.view(-1, 1).float()
        yield x, y


def train_model(model, optimizer, scheduler, classes, num_epochs):
    best_acc, best_state = 0.0, copy.deepcopy(model.state_dict())
    for epoch in range(num_epochs):
        for phase in ("train", "val"):
            if phase == "train":
                model.train()
            else:
                model.eval()
            running_loss, running_corrects = 0.0, 0
            for inputs, labels in batches(12 if phase == "train" else 5, classes):
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = F.cross_entropy(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                        scheduler.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += (outputs.argmax(1) == labels).sum().item()
            acc = running_corrects / (12 * (12 if phase == "train" else 5))
            print(f"{phase} epoch {epoch} loss {running_loss:.3f} acc {acc:.3f}")
            if phase == "val" and acc > best_acc:
                best_acc, best_state = acc, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)


def make_optimizer(parameters, lr, warmup=4):
    optimizer = torch.optim.SGD(parameters, lr=lr, momentum=0.9)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()
    torch.manual_seed(13)
    model = ResidualNet(6)
    train_model(model, *make_optimizer(model.parameters(), args.lr), classes=6, num_epochs=1)
    set_trainable(model, False)
    model.fc = nn.Linear(8, 3)
    train_model(model, *make_optimizer(model.fc.parameters(), args.lr), classes=3, num_epochs=1)
    set_trainable(model, True)
    train_model(model, *make_optimizer(model.parameters(), args.lr / 5), classes=3, num_epochs=2)
