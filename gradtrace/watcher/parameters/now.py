"""The gradients of the parameters in sight, as they are at this moment."""

from __future__ import annotations

from types import FrameType

import torch

from gradtrace.model.lives import GradientNow
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import local_part
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.parameters.lives import norms_of


def gradients_now(frame: FrameType, session: Session) -> tuple[GradientNow, ...]:
    """One row for each parameter, and each other tensor of an optimizer, that the code running in `frame` can name."""
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in names.everything(frame, session.frames):
        if isinstance(tensor, torch.nn.Parameter) or (isinstance(tensor, torch.Tensor) and _is_leaf(tensor, session)):
            found.setdefault(id(tensor), (name, tensor))
    held = [tensor for _, tensor in found.values()]
    sizes = norms_of(held)
    gradients = [tensor.grad for tensor in held if tensor.grad is not None]
    sized = iter(norms_of(gradients))
    rows = []
    for (name, tensor), size in zip(found.values(), sizes, strict=True):
        norm = None if tensor.grad is None else next(sized)
        lost = 0 if norm is None or norm - norm == 0 else _lost(tensor.grad)
        rows.append(
            GradientNow(name, tuple(tensor.shape), tensor.requires_grad, _holder(tensor, session), norm, size, lost)
        )
    return tuple(rows)


def _is_leaf(tensor: torch.Tensor, session: Session) -> bool:
    return session.owned(tensor) or (tensor.requires_grad and tensor.is_leaf)


def _holder(tensor: torch.Tensor, session: Session) -> str:
    owners = sorted(session.owned_by(tensor))
    return session.optimizer_name(owners[0]) if owners else ""


def _lost(gradient: torch.Tensor | None) -> int:
    """How many elements are not finite."""
    assert gradient is not None
    values = local_part(gradient).detach()
    values = values.coalesce().values() if values.is_sparse else values
    return int((~torch.isfinite(values)).sum())
