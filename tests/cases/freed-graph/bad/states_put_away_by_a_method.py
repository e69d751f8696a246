import torch
from torch import nn

torch.manual_seed(0)


class Store:
    def __init__(self, width):
        self.rows, self.width = {}, width

    def look_up(self, key):
        return self.rows.get(key, torch.zeros(self.width))

    def put(self, key, row):
        self.rows[key] = row


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.store, self.cell, self.score = Store(6), nn.GRUCell(4, 6), nn.Linear(6, 1)

    def forward(self, users, seen):
        for user, row in zip(users, seen):
            state = self.store.look_up(user)
            self.store.put(user, self.cell(row[None], state[None])[0])  # <- freed-graph
        return self.score(torch.stack([self.store.look_up(user) for user in users]))


model = Recommender()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = model([0, 1, 2], torch.randn(3, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
