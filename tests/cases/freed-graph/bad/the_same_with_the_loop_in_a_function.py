import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

def train(head, features, y, opt):
    for epoch in range(3):
        loss = F.mse_loss(head(features), y)
        opt.zero_grad()
        loss.backward()
        opt.step()

def main():
    encoder, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1)
    opt = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
    features = encoder(torch.randn(32, 4))  # <- freed-graph
    train(head, features, torch.randn(32, 1), opt)

main()
