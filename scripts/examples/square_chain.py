"""A chain of four operations: the gradient of sum(3 * x**2 + 1) is 6 * x."""

import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

squared = x**2
tripled = squared * 3
shifted = tripled + 1
total = shifted.sum()

total.backward()
print(x.grad)
