"""A Trainer with callbacks, early stopping and a scheduler, as many repositories write their own."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Regressor(nn.Module):
    def __init__(self, features, hidden=24, depth=2):
        super().__init__()
        self.input = nn.Linear(features, hidden)
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth))
        self.norm = nn.LayerNorm(hidden)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        x = torch.relu(self.input(x))
        for layer in self.layers:
            x = x + self.drop(torch.relu(layer(x)))
        return self.head(self.norm(x)).squeeze(-1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.state = patience, float("inf"), 0, None

    def on_epoch_end(self, trainer, value):
        if value < self.best:
            self.best, self.bad, self.state = value, 0, copy.deepcopy(trainer.model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


class History:
    def __init__(self):
        self.values = []

    def on_epoch_end(self, trainer, value):
        self.values.append(value)
        return False


class Trainer:
    def __init__(self, model, train_loader, valid_loader, callbacks, lr=1e-2, clip=0.5):
        self.model = model
        self.train_loader, self.valid_loader = train_loader, valid_loader
        self.callbacks, self.clip = callbacks, clip
        self.criterion = nn.MSELoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=1)

    def _train_step(self, batch):
        x, y = batch
        self.optimizer.zero_grad()
        prediction = self.model(x)
        loss = self.criterion(prediction, y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def _validate(self):
        self.model.eval()
        losses = [self.criterion(self.model(x), y).item() for x, y in self.valid_loader]
        return sum(losses) / len(losses)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for batch in self.train_loader:
                total += self._train_step(batch)
            valid = self._validate()
            self.scheduler.step(valid)
            print(f"epoch {epoch}: train {total / len(self.train_loader):.4f} valid {valid:.4f}")
            stops = [callback.on_epoch_end(self, valid) for callback in self.callbacks]
            if any(stops):
                break


def main():
    torch.manual_seed(12)
    x = torch.randn(240, 6)
    y = x[:, 0] * x[:, 1] + torch.sin(x[:, 2])
    train_set, valid_set = random_split(TensorDataset(x, y), [160, 80])
    history = History()
    trainer = Trainer(
        Regressor(6),
        DataLoader(train_set, batch_size=16, shuffle=True),
        DataLoader(valid_set, batch_size=16),
        [EarlyStopping(patience=3), history],
    )
    trainer.fit(epochs=4)
    print("best", min(history.values))


if __name__ == "__main__":
    main()
