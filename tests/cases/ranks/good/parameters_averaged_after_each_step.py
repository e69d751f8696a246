model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
    with torch.no_grad():
        for parameter in model.parameters():
            dist.all_reduce(parameter)
            parameter /= world
