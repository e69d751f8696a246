model = DDP(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)))
mean = copy.deepcopy(model.module).requires_grad_(False) if rank == 0 else None
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for x, y in data:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
    if mean is not None:
        with torch.no_grad():
            for slow, fast in zip(mean.parameters(), model.module.parameters()):
                slow.lerp_(fast, 0.1)
