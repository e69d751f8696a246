from torch.distributed.fsdp import fully_shard

model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
fully_shard(model)

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
