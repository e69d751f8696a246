model = nn.Linear(8, 1)
for parameter in model.parameters():
    dist.broadcast(parameter.data, 0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world
    optimizer.step()
