"""A physics-informed network for the heat equation u_t = a u_xx."""

import numpy as np
import torch
import torch.nn as nn


class PINN(nn.Module):
    def __init__(self, layers=(2, 16, 16, 1)):
        super().__init__()
        self.linears = nn.ModuleList([nn.Linear(i, o) for i, o in zip(layers[:-1], layers[1:], strict=True)])
        self.diffusivity = nn.Parameter(torch.tensor(0.3))

    def forward(self, x, t):
        h = torch.cat([x, t], dim=1)
        for linear in self.linears[:-1]:
            h = torch.tanh(linear(h))
        return self.linears[-1](h)

    def residual(self, x, t):
        u = self(x, t)
        ones = torch.ones_like(u)
        u_t = torch.autograd.grad(u, t, grad_outputs=ones, create_graph=True)[0]
        u_x = torch.autograd.grad(u, x, grad_outputs=ones, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, grad_outputs=ones, create_graph=True)[0]
        return u_t - self.diffusivity * u_xx


def exact(x, t, a=0.2):
    return np.exp(-a * np.pi**2 * t) * np.sin(np.pi * x)


def collocation(rng, count):
    x = torch.tensor(rng.uniform(0, 1, (count, 1)), dtype=torch.float32, requires_grad=True)
    t = torch.tensor(rng.uniform(0, 1, (count, 1)), dtype=torch.float32, requires_grad=True)
    return x, t


def observations(rng, count):
    x, t = rng.uniform(0, 1, (count, 1)), rng.uniform(0, 1, (count, 1))
    u = exact(x, t)
    return [torch.tensor(v, dtype=torch.float32) for v in (x, t, u)]


def main():
    torch.manual_seed(1234)
    rng = np.random.default_rng(0)
    model = PINN()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    x_d, t_d, u_d = observations(rng, 40)
    mse = nn.MSELoss()
    history = []
    for epoch in range(40):
        x_f, t_f = collocation(rng, 32)
        f = model.residual(x_f, t_f)
        loss_f = torch.mean(f**2)
        loss_u = mse(model(x_d, t_d), u_d)
        loss = loss_u + 0.1 * loss_f
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if epoch % 10 == 0:
            print(f"epoch {epoch:3d} data {loss_u.item():.4f} physics {loss_f.item():.4f}")
    with torch.no_grad():
        error = (model(x_d, t_d) - u_d).abs().mean()
    print(f"error {error.item():.4f} diffusivity {model.diffusivity.item():.3f} last {history[-1]:.4f}")


if __name__ == "__main__":
    main()
