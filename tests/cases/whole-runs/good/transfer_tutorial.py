import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class R(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        return self.fc(F.relu(self.bn1(self.conv1(x))).mean((2, 3)))  # also note: frozen-moves


m = R()
for p in m.parameters():
    p.requires_grad = False
m.fc = nn.Linear(8, 2)
opt = torch.optim.SGD(m.fc.parameters(), lr=0.01, momentum=0.9)
sch = torch.optim.lr_scheduler.StepLR(opt, 7, 0.1)
best = copy.deepcopy(m.state_dict())
for epoch in range(3):
    for phase in ("train", "val"):
        m.train() if phase == "train" else m.eval()
        for _ in range(4):
            x, y = torch.randn(4, 3, 8, 8), torch.randint(2, (4,))
            opt.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = F.cross_entropy(m(x), y)
                if phase == "train":
                    loss.backward()
                    opt.step()
        if phase == "train":
            sch.step()
m.load_state_dict(best)
