model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
