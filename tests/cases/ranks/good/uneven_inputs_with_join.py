model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Join([model]):
    for x, y in batches(6 - 2 * rank):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
