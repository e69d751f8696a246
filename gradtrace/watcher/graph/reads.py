"""Reading values of tensors that lie on a device: each read waits until all that was queued there is done."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradtrace.watcher.compat import local_part


def waits(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether to read a value of one of these waits for a device."""
    return not all(tensor.is_cpu for tensor in tensors)


def have_values(tensors: Sequence[torch.Tensor]) -> list[bool]:
    """Of each, or of what this rank holds of it, whether it is more than zeros: in one read where they all lie on one
    device."""
    parts = map(local_part, tensors)
    tests = [(tensor._values() if tensor.is_sparse else tensor).any() for tensor in parts]
    if len({test.device for test in tests}) == 1:
        found: list[bool] = torch.stack(tests).tolist()
        return found
    return [bool(test) for test in tests]
