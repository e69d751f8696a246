class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 1)
        self.spare = nn.Linear(8, 1)  # <- unfinished-reduction

    def forward(self, x):
        return self.body(x)

model = DDP(Net())

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
