class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 4)
        self.head = None

    def forward(self, x):
        return self.head(self.body(x)) if self.head is not None else self.body(x)

net = Net()
model = DDP(net)
net.head = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()  # <- rank-divergence
