model = DDP(nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=4)
for x, y in data:
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
