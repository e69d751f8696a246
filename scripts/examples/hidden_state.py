"""A fault: a recurrent net reads a wave in chunks and carries its hidden state over, together with the old graph."""

import torch
from torch import nn


class Forecaster(nn.Module):
    """Guesses the next value of a series from the values so far."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(1, 16)
        self.readout = nn.Linear(16, 1)

    def forward(self, chunk, hidden):
        guesses = []
        for value in chunk:
            hidden = self.cell(value, hidden)
            guesses.append(self.readout(hidden))
        return torch.stack(guesses), hidden


torch.manual_seed(0)
wave = torch.sin(torch.arange(21) * 0.4).reshape(-1, 1, 1)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
hidden = torch.zeros(1, 16)

for start in range(0, 20, 2):
    chunk, following = wave[start : start + 2], wave[start + 1 : start + 3]
    guesses, hidden = model(chunk, hidden)  # `hidden` belongs to the graph of the previous chunk
    loss = nn.functional.mse_loss(guesses, following)

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
