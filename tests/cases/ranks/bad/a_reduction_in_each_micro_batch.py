model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    (loss_fn(model(x), y) / 2).backward()  # <- note: reduced-micro-batches
    if i % 2:
        optimizer.step()
        optimizer.zero_grad()
