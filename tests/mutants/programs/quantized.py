"""Training aware of quantization: custom functions with a straight-through backward."""

import torch
from torch import nn
from torch.autograd import Function


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clone()


class ClippedReLU(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.save_for_backward(x, alpha)
        return torch.minimum(x.clamp(min=0), alpha)

    @staticmethod
    def backward(ctx, grad_output):
        x, alpha = ctx.saved_tensors
        inside = (x > 0) & (x < alpha)
        grad_x = grad_output * inside
        grad_alpha = (grad_output * (x >= alpha)).sum().view(1)
        return grad_x, grad_alpha


class QuantLinear(nn.Module):
    def __init__(self, in_features, out_features, bits=4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) * in_features**-0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.levels = 2 ** (bits - 1) - 1

    def forward(self, x):
        scale = self.weight.detach().abs().max() / self.levels
        weight = RoundSTE.apply(self.weight / scale) * scale
        return nn.functional.linear(x, weight, self.bias)


class PACT(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor([2.0]))

    def forward(self, x):
        return ClippedReLU.apply(x, self.alpha)


class QuantNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.act1 = QuantLinear(8, 24), PACT()
        self.layer2, self.act2 = QuantLinear(24, 24), PACT()
        self.fc = nn.Linear(24, 3)

    def forward(self, x):
        x = self.act1(self.layer1(x))
        x = self.act2(self.layer2(x))
        return self.fc(x)


def data(batches, size=24):
    for _ in range(batches):
        x = torch.randn(size, 8) * 1.5
        yield x, x[:, :3].argmax(dim=1)


def run_epoch(model, criterion, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total, correct, count = 0.0, 0, 0
    with torch.set_grad_enabled(training):
        for x, y in data(15):
            output = model(x)
            loss = criterion(output, y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(y)
            correct += (output.argmax(1) == y).sum().item()
            count += len(y)
    return total / count, correct / count


torch.manual_seed(8)
net = QuantNet()
decay = [p for name, p in net.named_parameters() if "alpha" not in name]
alphas = [p for name, p in net.named_parameters() if "alpha" in name]
optimizer = torch.optim.SGD([{"params": decay}, {"params": alphas, "weight_decay": 0.01}], lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    train_loss, train_acc = run_epoch(net, criterion, optimizer)
    val_loss, val_acc = run_epoch(net, criterion)
    print(f"{epoch} train {train_loss:.3f}/{train_acc:.2f} val {val_loss:.3f}/{val_acc:.2f}")
