"""A sparse autoencoder: activations come from forward hooks, gradients are watched by tensor hooks."""

import torch
import torch.nn as nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 12), nn.Sigmoid(), nn.Linear(12, 8), nn.Sigmoid())
        self.decoder = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 16))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class ActivationRecorder:
    """Keeps the last output of each layer that it hooks."""

    def __init__(self, modules):
        self.outputs = {}
        self.handles = [m.register_forward_hook(self.make_hook(name)) for name, m in modules]

    def make_hook(self, name):
        def hook(module, inputs, output):
            self.outputs[name] = output

        return hook

    def close(self):
        for handle in self.handles:
            handle.remove()
        self.outputs.clear()


def sparsity(activations, rho=0.1):
    penalty = 0.0
    for activation in activations.values():
        rho_hat = activation.mean(dim=0)
        penalty = penalty + (rho * torch.log(rho / rho_hat) + (1 - rho) * torch.log((1 - rho) / (1 - rho_hat))).sum()
    return penalty


def clamp_gradient(grad):
    return grad.clamp(-0.5, 0.5)


def batch(size=16):
    base = torch.randn(size, 4)
    return torch.cat([base, base.flip(1), base * 0.5, base.abs()], dim=1)


def main():
    torch.manual_seed(4)
    model = Autoencoder()
    recorder = ActivationRecorder([(n, m) for n, m in model.encoder.named_modules() if isinstance(m, nn.Sigmoid)])
    for parameter in model.parameters():
        parameter.register_hook(clamp_gradient)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.MSELoss()
    norms = []
    for step in range(40):
        x = batch()
        optimizer.zero_grad()
        reconstruction = loss_fn(model(x), x)
        penalty = sparsity(recorder.outputs)
        loss = reconstruction + 0.02 * penalty
        loss.backward()
        norms.append(sum(p.grad.norm().item() for p in model.parameters()))
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: reconstruction {reconstruction.item():.4f} penalty {penalty.item():.4f}")
    recorder.close()
    model.eval()
    errors = []
    with torch.inference_mode():
        for _ in range(6):
            x = batch()
            errors.append(loss_fn(model(x), x).item())
    print(f"error {sum(errors) / 6:.4f} mean gradient norm {sum(norms) / len(norms):.4f}")


main()
