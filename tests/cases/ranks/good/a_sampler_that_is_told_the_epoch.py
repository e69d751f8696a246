dataset = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
sampler = DistributedSampler(dataset)
model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for x, y in DataLoader(dataset, batch_size=4, sampler=sampler):
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
