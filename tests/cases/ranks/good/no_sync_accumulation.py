model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    last = i % 3 == 2
    with contextlib.nullcontext() if last else model.no_sync():
        (loss_fn(model(x), y) / 3).backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
