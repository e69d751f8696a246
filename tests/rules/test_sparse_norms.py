"""sparse-grad where gradients are clipped: torch computes norms of sparse gradients itself since 2.14."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.rules.conftest import Checked

CLIPPED = """
import torch
from torch import nn

torch.manual_seed(0)

table, head = nn.Embedding(9, 3, sparse=True), nn.Linear(3, 1)  # <- sparse-grad
opt = torch.optim.SGD([*table.parameters(), *head.parameters()], 0.1)
for _ in range(2):
    opt.zero_grad()
    head(table(torch.tensor([1, 4]))).pow(2).sum().backward()
    nn.utils.clip_grad_norm_([*table.parameters(), *head.parameters()], 1.0)
    opt.step()
"""


@pytest.mark.skipif(torch.__version__ >= (2, 14), reason="torch computes the norm")
def test_norms_of_sparse_gradients_are_refused(check: Callable[..., Checked]) -> None:
    checked = check(CLIPPED)
    assert checked.by("sparse-grad") == checked.marked, checked.text
