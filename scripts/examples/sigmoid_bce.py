"""One input, one weight, one bias: a sigmoid neuron and its binary cross-entropy."""

import torch
import torch.nn.functional as F
from torch.autograd import grad

y = torch.tensor([1.0])  # the true label
x1 = torch.tensor([1.1])  # the input
w1 = torch.tensor([2.2], requires_grad=True)
b = torch.tensor([0.0], requires_grad=True)

z = x1 * w1 + b
a = torch.sigmoid(z)
loss = F.binary_cross_entropy(a, y)

# Both gradients run through the same graph, so the first call has to keep it.
grad_w1 = grad(loss, w1, retain_graph=True)
grad_b = grad(loss, b)

print("d loss / d w1 =", grad_w1)
print("d loss / d b  =", grad_b)
