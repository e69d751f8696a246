"""Turns a tensor into plain values, without leaving a trace in graphs, random numbers or versions."""

from __future__ import annotations

import torch

from gradtrace.model.story import Value

#: tensors up to so many elements are shown whole
_SMALL = 8
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def value(tensor: torch.Tensor) -> Value:
    """The numbers of a small tensor; of a large one the extent of its finite ones."""
    shape, dtype, device = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), str(tensor.device)
    if not _readable(tensor):
        return Value(shape, dtype, device)
    try:
        with torch.no_grad():
            plain = tensor.detach()
            if tensor.numel() <= _SMALL:
                return _whole(plain, shape, dtype, device)
            return Value(shape, dtype, device) if plain.is_complex() else _extent(plain, shape, dtype, device)
    except (RuntimeError, NotImplementedError):  # what is left over from a transform, or of a dtype without arithmetic
        return Value(shape, dtype, device)


def _readable(tensor: torch.Tensor) -> bool:
    """Whether it has numbers of its own, laid out in the common way."""
    return type(tensor) in _PLAIN and tensor.layout is torch.strided and tensor.device.type != "meta"


def _whole(plain: torch.Tensor, shape: tuple[int, ...], dtype: str, device: str) -> Value:
    numbers = tuple(plain.reshape(-1).tolist())
    wild = plain if plain.is_floating_point() else plain.new_zeros(0, dtype=torch.float32)
    nan, inf = int(wild.isnan().sum()), int(wild.isinf().sum())
    real = [float(one) for one in numbers if not isinstance(one, complex) and abs(one) < float("inf")]
    zero = bool(numbers) and not any(numbers)
    if not real:
        return Value(shape, dtype, device, numbers, nan=nan, inf=inf, zero=zero)
    return Value(shape, dtype, device, numbers, min(real), sum(real) / len(real), max(real), nan, inf, zero)


def _extent(plain: torch.Tensor, shape: tuple[int, ...], dtype: str, device: str) -> Value:
    if not plain.is_floating_point():
        plain = plain.double()
    nan, inf = int(plain.isnan().sum()), int(plain.isinf().sum())
    finite = plain[plain.isfinite()] if nan or inf else plain
    if not finite.numel():
        return Value(shape, dtype, device, nan=nan, inf=inf)
    low, high, mean = float(finite.min()), float(finite.max()), float(finite.mean(dtype=torch.float64))
    return Value(shape, dtype, device, None, low, mean, high, nan, inf, low == high == 0 and not nan and not inf)
