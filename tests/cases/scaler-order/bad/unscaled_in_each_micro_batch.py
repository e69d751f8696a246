import torch
from torch import nn

torch.manual_seed(0)

class Trainer:
    def __init__(self, every):
        self.net = nn.Linear(4, 2)
        self.opt = torch.optim.AdamW(self.net.parameters())
        self.amp = torch.amp.GradScaler("cpu", init_scale=256.0)
        self.every = every

    def micro(self, x, last):
        loss = self.net(x).pow(2).mean() / self.every
        self.amp.scale(loss).backward()
        self.amp.unscale_(self.opt)  # <- scaler-order
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        if last:
            self.amp.step(self.opt)
            self.amp.update()
            self.opt.zero_grad()
        return norm

trainer = Trainer(3)
for i in range(6):
    trainer.micro(torch.randn(8, 4), i % 3 == 2)
