"""Reading values of tensors that lie on a device: each read waits until all that was queued there is done."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from gradtrace.watcher.compat import local_part


def waits(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether to read a value of one of these waits for a device."""
    return not all(tensor.is_cpu for tensor in tensors)


def have_values(tensors: Sequence[torch.Tensor]) -> list[bool]:
    """Of each, or of what this rank holds of it, whether it is more than zeros: in one read where they all lie on one
    device."""
    parts = map(local_part, tensors)
    return together([(tensor._values() if tensor.is_sparse else tensor).any() for tensor in parts])


def largest(tensors: Sequence[torch.Tensor]) -> list[float]:
    """Of each, dense and not empty, the largest absolute value; NaN where there is one. In one read as well."""
    # abs() would take as much memory again
    return together([torch.linalg.vector_norm(tensor, math.inf) for tensor in tensors])


def together(values: list[torch.Tensor]) -> list[Any]:
    """These single values, in one read where they all lie on one device."""
    if len({value.device for value in values}) == 1:
        found: list[Any] = torch.stack(values).tolist()
        return found
    return [value.item() for value in values]
