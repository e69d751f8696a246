dataset = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))
model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:  # <- same-data
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
