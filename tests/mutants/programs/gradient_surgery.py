"""Two tasks whose gradients conflict: each is taken for itself, projected, and written into .grad."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class SharedNet(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.regression = nn.Linear(hidden, 1)
        self.classification = nn.Linear(hidden, 2)

    def forward(self, x):
        z = self.shared(x)
        return self.regression(z).squeeze(-1), self.classification(z)


class PCGrad:
    """Wraps an optimizer; pc_backward takes a list of losses."""

    def __init__(self, optimizer):
        self.optim = optimizer

    def zero_grad(self):
        return self.optim.zero_grad(set_to_none=True)

    def step(self):
        return self.optim.step()

    def pc_backward(self, objectives):
        grads = []
        for objective in objectives:
            self.zero_grad()
            objective.backward(retain_graph=objective is not objectives[-1])
            grads.append([self._grad(p) for p in self.parameters()])
        self.zero_grad()
        for p, *parts in zip(self.parameters(), *self.project(grads), strict=True):
            p.grad = torch.stack(parts).sum(0)

    def parameters(self):
        return [p for group in self.optim.param_groups for p in group["params"]]

    @staticmethod
    def _grad(p):
        return torch.zeros_like(p) if p.grad is None else p.grad.clone()

    @staticmethod
    def project(grads):
        flat = [torch.cat([g.flatten() for g in task]) for task in grads]
        projected = []
        for i, own in enumerate(grads):
            dot = torch.dot(flat[i], flat[1 - i])
            if dot < 0:
                factor = dot / flat[1 - i].square().sum()
                own = [g - factor * other for g, other in zip(own, grads[1 - i], strict=True)]
            projected.append(own)
        return projected


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()

    torch.manual_seed(19)
    net = SharedNet(6, 16)
    optimizer = PCGrad(torch.optim.Adam(net.parameters(), lr=args.lr))
    history = {"regression": [], "classification": []}
    for it in range(args.steps):
        x = torch.randn(24, 6)
        value, label = x[:, 0] - x[:, 1], (x[:, 2] > 0).long()
        prediction, logits = net(x)
        losses = [F.mse_loss(prediction, value), F.cross_entropy(logits, label)]
        optimizer.pc_backward(losses)
        optimizer.step()
        for name, loss in zip(history, losses, strict=True):
            history[name].append(loss.item())
        if it % 10 == 0:
            print(f"it {it:02d} " + " ".join(f"{name} {values[-1]:.4f}" for name, values in history.items()))
    print({name: round(sum(values[-5:]) / 5, 4) for name, values in history.items()})


if __name__ == "__main__":
    main()
