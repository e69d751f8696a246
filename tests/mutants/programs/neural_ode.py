"""A neural ordinary differential equation, integrated with a Runge-Kutta method, fitted to a spiral."""

import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--niters", type=int, default=36)
parser.add_argument("--batch_time", type=int, default=5)
parser.add_argument("--batch_size", type=int, default=10)
parser.add_argument("--data_size", type=int, default=60)
parser.add_argument("--test_freq", type=int, default=12)
args = parser.parse_args()


def rk4_step(func, t, dt, y):
    k1 = func(t, y)
    k2 = func(t + dt / 2, y + dt * k1 / 2)
    k3 = func(t + dt / 2, y + dt * k2 / 2)
    k4 = func(t + dt, y + dt * k3)
    return y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def odeint(func, y0, t):
    solution = [y0]
    for t0, t1 in zip(t[:-1], t[1:], strict=True):
        y0 = rk4_step(func, t0, t1 - t0, y0)
        solution.append(y0)
    return torch.stack(solution)


class Spiral(nn.Module):
    def forward(self, t, y):
        return torch.mm(y**3, torch.tensor([[-0.1, 2.0], [-2.0, -0.1]]))


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


class RunningAverageMeter:
    def __init__(self, momentum=0.9):
        self.momentum, self.val, self.avg = momentum, None, 0

    def update(self, val):
        self.avg = val if self.val is None else self.avg * self.momentum + val * (1 - self.momentum)
        self.val = val


torch.manual_seed(2)
true_y0 = torch.tensor([[2.0, 0.0]])
t = torch.linspace(0.0, 6.0, args.data_size)
with torch.no_grad():
    true_y = odeint(Spiral(), true_y0, t)


def get_batch():
    s = torch.randperm(args.data_size - args.batch_time)[: args.batch_size]
    batch_y0 = true_y[s]
    batch_t = t[: args.batch_time]
    batch_y = torch.stack([true_y[s + i] for i in range(args.batch_time)], dim=0)
    return batch_y0, batch_t, batch_y


if __name__ == "__main__":
    func = ODEFunc()
    optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3)
    loss_meter = RunningAverageMeter()
    for itr in range(1, args.niters + 1):
        optimizer.zero_grad()
        batch_y0, batch_t, batch_y = get_batch()
        pred_y = odeint(func, batch_y0, batch_t)
        loss = torch.mean(torch.abs(pred_y - batch_y))
        loss.backward()
        optimizer.step()
        loss_meter.update(loss.item())
        if itr % args.test_freq == 0:
            with torch.no_grad():
                pred_y = odeint(func, true_y0, t[:20])
                test_loss = torch.mean(torch.abs(pred_y - true_y[:20]))
                print(f"Iter {itr:04d} | Train {loss_meter.avg:.4f} | Total {test_loss.item():.4f}")
