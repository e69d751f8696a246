import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)

w = nn.Parameter(torch.zeros(3))
loss = w.norm() + torch.linalg.vector_norm(w) + F.normalize(w, dim=0).sum() + F.cosine_similarity(w, w, dim=0)
loss = loss + F.pairwise_distance(w[None], w[None]).sum() + torch.cdist(w[None], w[None]).sum()
loss.backward()
