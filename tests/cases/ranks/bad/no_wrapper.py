model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()  # <- rank-divergence
