"""Checksums of tensors: made on their device, without waiting for it, and read when the run is over."""

from __future__ import annotations

from collections.abc import Sequence

import torch

#: which times something is looked at: fewer and fewer, so that a long run costs no more than a short one
LOOKS = frozenset((0, *(2**power for power in range(40))))
#: of what cannot be summed: a sparse tensor, for one; and of what is not there
UNKNOWN, NOTHING = -2, -1
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def checksum(tensor: torch.Tensor | None) -> torch.Tensor:
    """The sum of the bit patterns of all elements, as one int64 on the tensor's device: exact, in whatever order it is
    computed, so that equal tensors have equal sums on every rank."""
    if tensor is None:
        return torch.tensor(NOTHING)
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return torch.tensor(UNKNOWN)
    plain = tensor.detach()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    if plain.is_floating_point():
        plain = plain.view(_BITS[plain.element_size()])
    return plain.sum(dtype=torch.int64)


def numbers(sums: Sequence[torch.Tensor]) -> list[int]:
    """Their values, read from the device."""
    return [int(one) for one in sums]
