import torch
from torch import nn

torch.manual_seed(0)

actor, log_alpha = nn.Linear(4, 2), torch.zeros(1, requires_grad=True)
actor_opt, alpha_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam([log_alpha])
for _ in range(2):
    log_pi = torch.log_softmax(actor(torch.randn(8, 4)), 1)[:, 0]
    actor_loss = (log_alpha.exp().detach() * log_pi).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    alpha_loss = -(log_alpha * (log_pi + 1.0)).mean()  # <- freed-graph
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
