G, D = DDP(nn.Linear(4, 8)), DDP(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)))
og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
torch.manual_seed(rank)
for x, _ in data:
    od.zero_grad()
    (D(torch.cat([x, G(torch.randn(8, 4)).detach()]))[:8]).mean().backward()
    od.step()
    og.zero_grad()
    with torch.no_grad():
        pass
    for parameter in D.parameters():
        parameter.requires_grad_(False)
    (-D.module(G(torch.randn(8, 4))).mean()).backward()
    for parameter in D.parameters():
        parameter.requires_grad_(True)
    og.step()
