model = DDP(nn.Linear(8, 1), find_unused_parameters=True)  # <- note: unneeded-find-unused

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
