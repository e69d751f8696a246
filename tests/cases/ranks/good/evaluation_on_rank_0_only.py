model = DDP(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 1)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for epoch in range(3):
    model.train()
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    if rank == 0:
        model.eval()
        with torch.no_grad():
            sum(loss_fn(model.module(x), y).item() for x, y in data)
    dist.barrier()
