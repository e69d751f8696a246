"""Word-level language model: an LSTM trained by truncated backpropagation through time."""

import math

import torch
from torch import nn

VOCAB, SEQ, BATCH = 20, 8, 6


class RNNModel(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(VOCAB, hidden)
        self.rnn = nn.LSTM(hidden, hidden, num_layers=2)
        self.decoder = nn.Linear(hidden, VOCAB)
        self.hidden = hidden

    def forward(self, tokens, hidden):
        emb = self.drop(self.encoder(tokens))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output))
        return decoded.view(-1, VOCAB), hidden

    def init_hidden(self, batch):
        weight = next(self.parameters())
        return weight.new_zeros(2, batch, self.hidden), weight.new_zeros(2, batch, self.hidden)


def repackage_hidden(h):
    """Wraps hidden states in new tensors, to detach them from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def batchify(length):
    data = torch.arange(length * BATCH) * 3 % VOCAB
    noise = torch.randint(0, VOCAB, data.shape)
    data = torch.where(torch.rand(data.shape) < 0.1, noise, data)
    return data.view(BATCH, -1).t().contiguous()


def get_batch(source, i):
    length = min(SEQ, len(source) - 1 - i)
    return source[i : i + length], source[i + 1 : i + 1 + length].reshape(-1)


def evaluate(model, source, criterion):
    model.eval()
    total = 0.0
    hidden = model.init_hidden(BATCH)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, SEQ):
            data, targets = get_batch(source, i)
            output, hidden = model(data, hidden)
            total += len(data) * criterion(output, targets).item()
    return total / (len(source) - 1)


def train(model, source, criterion, optimizer):
    model.train()
    total_loss = 0.0
    hidden = model.init_hidden(BATCH)
    for batch, i in enumerate(range(0, source.size(0) - 1, SEQ)):
        data, targets = get_batch(source, i)
        optimizer.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total_loss += loss.item()
    return total_loss / (batch + 1)


torch.manual_seed(1111)
train_data, val_data = batchify(129), batchify(49)
model = RNNModel()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
for epoch in range(3):
    train_loss = train(model, train_data, criterion, optimizer)
    val_loss = evaluate(model, val_data, criterion)
    print(f"epoch {epoch} train {train_loss:.3f} valid {val_loss:.3f} ppl {math.exp(val_loss):.2f}")
