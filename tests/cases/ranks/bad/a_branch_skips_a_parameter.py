class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.gate = nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x, step):
        h = self.body(x)
        if step % 2 == 0:  # <- unfinished-reduction
            h = h * torch.sigmoid(self.gate(x))
        return self.head(h)

model = DDP(Net())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    optimizer.zero_grad()
    loss_fn(model(x, i), y).backward()
    optimizer.step()
