model = DDP(nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data:
    z = model(x)
    parts = [torch.zeros_like(z) for _ in range(world)]
    dist.all_gather(parts, z)
    parts[rank] = z
    loss = torch.cat(parts).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
