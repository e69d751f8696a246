"""Reading values of tensors that lie on a device: each read waits until all that was queued there is done."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradtrace.watcher.compat import local_part


def waits(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether to read a value of one of these waits for a device."""
    return not all(tensor.is_cpu for tensor in tensors)


def have_values(tensors: Sequence[torch.Tensor], above: float = 0.0) -> list[bool]:
    """Of each, or of what this rank holds of it, whether a value is not zero, or is larger than `above` in absolute terms:
    in one read where they all lie on one device."""
    parts = map(local_part, tensors)
    values = [tensor._values() if tensor.is_sparse else tensor for tensor in parts]
    tests = [(one.abs() > above).any() if above else one.any() for one in values]
    if len({test.device for test in tests}) == 1:
        found: list[bool] = torch.stack(tests).tolist()
        return found
    return [bool(test) for test in tests]
