"""An autoencoder whose code is detached for logging, on the path to the loss: its encoder never trains."""

import torch
from torch import nn

torch.manual_seed(0)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(16, 4)
        self.decoder = nn.Linear(4, 16)

    def forward(self, x):
        self.code = torch.tanh(self.encoder(x)).detach()
        return self.decoder(self.code)


model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(50):
    batch = torch.randn(32, 16)
    loss = nn.functional.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
