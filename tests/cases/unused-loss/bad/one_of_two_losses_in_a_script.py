import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
judge, maker = nn.Linear(4, 1), nn.Linear(2, 4)
opt_j, opt_m = torch.optim.Adam(judge.parameters()), torch.optim.Adam(maker.parameters())
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
for _ in range(6):
    made = maker(torch.randn(8, 2))
    opt_m.zero_grad()
    maker_loss = criterion(judge(made), ones)
    maker_loss.backward()
    opt_m.step()

    opt_j.zero_grad()
    real_loss = criterion(judge(torch.randn(8, 4)), ones)
    made_loss = criterion(judge(made.detach()), zeros)  # <- unused-loss
    judge_loss = real_loss / 2
    judge_loss.backward()
    opt_j.step()
print(F.sigmoid(judge(torch.randn(1, 4))).item())
