model = DDP(nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data:
    z = F.normalize(model(x), dim=1)
    others = [torch.zeros_like(z) for _ in range(world)]
    dist.all_gather(others, z)  # <- note: gathered-constant
    loss = F.cross_entropy(z @ torch.cat(others).T / 0.1, torch.arange(len(z)) + rank * len(z))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
