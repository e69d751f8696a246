model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data * 2):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()  # <- rank-divergence
    if rank == 0 and i == 1:
        with torch.no_grad():
            model.module.weight.mul_(0.5)
