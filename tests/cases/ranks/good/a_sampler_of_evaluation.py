dataset = TensorDataset(torch.randn(8, 8), torch.randn(8, 1))
loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in batches(4, seed=2 * epoch + rank):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            loss_fn(model(x), y)
    model.train()
