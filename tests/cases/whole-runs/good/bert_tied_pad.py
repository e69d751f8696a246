import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(30, 8, padding_idx=0)
        self.l = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.d = nn.Linear(8, 30)
        self.d.weight = self.e.weight

    def forward(self, x):
        return self.d(self.l(self.e(x), src_key_padding_mask=x == 0))


m = B()
o = torch.optim.AdamW(m.parameters(), 1e-3)
for ep in range(2):
    m.train()
    for _ in range(5):
        x = torch.randint(0, 12, (4, 6))
        x[:, 0] = 1
        l = F.cross_entropy(m(x).flatten(0, 1), x.flatten(), ignore_index=0)
        o.zero_grad()
        l.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
    m.eval()
    with torch.inference_mode():
        m(torch.randint(1, 12, (2, 6)))
m2 = B()
m2.load_state_dict(copy.deepcopy(m.state_dict()))
