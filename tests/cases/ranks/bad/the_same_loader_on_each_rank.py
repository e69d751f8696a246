dataset = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(dataset, batch_size=4, shuffle=True):
    optimizer.zero_grad()
    out = model(x)  # <- same-data
    loss_fn(out, y).backward()
    optimizer.step()
