import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
encoder, head, probe = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)


def step(x, y, z):
    code = encoder(x)
    probing = torch.autograd.grad(F.cross_entropy(probe(code), z), list(probe.parameters()), retain_graph=True)  # also unneeded-retain
    F.cross_entropy(head(code.data), y).backward()  # <- unreached-parameter
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter -= 0.1 * parameter.grad.clamp(-1, 1)
            parameter.grad = None
        for parameter, gradient in zip(probe.parameters(), probing):
            parameter -= 0.1 * gradient


for _ in range(3):
    step(torch.randn(16, 6), torch.randint(0, 2, (16,)), torch.randint(0, 2, (16,)))
