model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data:
    loss = loss_fn(model(x), y)
    shown = [torch.zeros(()) for _ in range(world)]
    dist.all_gather(shown, loss)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.stack(shown).mean().item()
