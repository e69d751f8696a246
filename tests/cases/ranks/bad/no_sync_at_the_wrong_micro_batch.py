model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    with model.no_sync() if i % 2 else contextlib.nullcontext():
        loss_fn(model(x), y).backward()  # <- unreduced-grad
    if i % 2:
        optimizer.step()
        optimizer.zero_grad()
