"""A few values of a tensor, kept to check later whether they changed."""

from __future__ import annotations

import torch

from gradtrace.watcher.compat import local_part

#: values taken of one tensor at most
_MOST = 256


def take(tensor: torch.Tensor) -> torch.Tensor:
    """Values from all over the tensor, the same ones each time."""
    # outside of any graph, and cheaper than no_grad
    values = local_part(tensor).data
    while values.numel() > _MOST:
        lengths = values.shape
        widest = lengths.index(max(lengths))
        step = min(-(-values.numel() // _MOST), lengths[widest])
        values = values[(slice(None),) * widest + (slice(None, None, step),)]
    return values.clone()


def differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the values differ by more than rounding."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return True
    if not (one.is_floating_point() or one.is_complex()):
        return not torch.equal(one, other)
    return not torch.allclose(one, other, rtol=1e-5, atol=1e-8, equal_nan=True)
