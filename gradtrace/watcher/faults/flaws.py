"""Where an operation has no finite slope or value: looks at what its node saved, and names what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from functools import cache
from typing import Any, NamedTuple

import torch

from gradtrace.watcher.compat import local_part, saved_argument
from gradtrace.watcher.graph import saved

_HUGE = 1e15

Values = Mapping[str, torch.Tensor]


class Flaw(NamedTuple):
    """What is wrong with the values at a node."""

    #: `zero`, `negative`, `edge`, `row` ...: the rule has the words
    kind: str
    #: what the operation itself gave for it: "nan", "inf", or nothing where only its slope is infinite
    gives: str = ""


Look = Callable[[Any, Values], Flaw | None]


def find(node: Any, values: Values | None = None) -> Flaw | None:
    """The flaw at a node, if it is of a kind that is known and its values show one."""
    look = _LOOKS.get(type(node).__name__)
    if look is None:
        return None
    return look(node, dict(saved.tensors(node)) if values is None else values)


class Risk(Enum):
    """Whether finite gradients become NaN or infinite at nodes of a type, while the loss is finite."""

    NONE = auto()
    #: by itself
    OWN = auto()
    #: where what it multiplies with is infinite, the result of another
    FACTOR = auto()


@cache
def risk(kind: type) -> Risk:
    """The risk of nodes of this type."""
    name = kind.__name__
    if name == "MulBackward0":
        return Risk.FACTOR
    own = name in _LOOKS or name in _RISKY or name in FRAGILE
    return Risk.OWN if own and name not in _LOUD else Risk.NONE


def finite(tensor: torch.Tensor) -> bool:
    """Whether all values are finite, as far as the layout lets us look, and of a distributed tensor those on this rank.
    Makes no node and no random number."""
    tensor = local_part(tensor)
    if tensor.layout is torch.strided and tensor.dim() == 0 and tensor.dtype.is_floating_point:
        return math.isfinite(tensor.item())
    values = tensor.detach()
    if values.is_sparse:
        values = values._values()
    if values.layout is not torch.strided or not (values.is_floating_point() or values.is_complex()):
        return True
    # one pass; a sum may also overflow, which the second look shows
    total = values.sum().item()
    return math.isfinite(abs(total)) or bool(values.isfinite().all())


def all_finite(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether all values of all tensors are finite: in one read where they are dense and lie on one device."""
    tensors = [local_part(one) for one in tensors]
    plain = all(one.layout is torch.strided and one.is_floating_point() for one in tensors)
    if plain and len({one.device for one in tensors}) == 1:
        total = torch.stack([one.detach().sum().double().abs() for one in tensors]).sum().item()
        if math.isfinite(total):
            return True
    return all(map(finite, tensors))


def is_huge(tensor: torch.Tensor) -> bool:
    """So large that sums and products of such values overflow."""
    tensor = local_part(tensor)
    dense = tensor.layout is torch.strided and tensor.is_floating_point() and tensor.numel() > 0
    return dense and bool((tensor.detach().abs() > _HUGE).any())


def has_nan(tensor: torch.Tensor) -> bool:
    return bool(local_part(tensor).detach().isnan().any())


def _some(values: Values, name: str, test: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    tensor = values.get(name)
    if tensor is None:
        return False
    tensor = local_part(tensor)
    return tensor.numel() > 0 and bool(test(tensor).any())


def _log(at: float) -> Look:
    def look(node: Any, values: Values) -> Flaw | None:
        if _some(values, "self", lambda x: x < at):
            return Flaw("negative", "nan")
        return Flaw("zero", "inf") if _some(values, "self", lambda x: x == at) else None

    return look


def _root(node: Any, values: Values) -> Flaw | None:
    if _some(values, "result", lambda x: x == 0):
        return Flaw("zero")
    return Flaw("negative", "nan") if _some(values, "result", torch.isnan) else None


def _inverse(node: Any, values: Values) -> Flaw | None:
    if _some(values, "result", torch.isinf):
        return Flaw("zero", "inf")
    return Flaw("negative", "nan") if _some(values, "result", torch.isnan) else None


def _power(node: Any, values: Values) -> Flaw | None:
    exponent = values.get("exponent", saved_argument(node, "exponent") if "exponent" not in values else None)
    base = values.get("self")
    if exponent is None or base is None or base.is_complex():
        return None
    exponent = torch.as_tensor(exponent, device=base.device)
    if exponent.is_complex():
        return None
    if bool(((base < 0) & (exponent != exponent.round())).any()):
        return Flaw("negative", "nan")
    if not bool(((base == 0) & (exponent < 1) & (exponent != 0)).any()):
        return None
    return Flaw("zero", "inf" if bool(((base == 0) & (exponent < 0)).any()) else "")


def _quotient(node: Any, values: Values) -> Flaw | None:
    divisor, dividend = values.get("other", values.get("tensor2")), values.get("self", values.get("tensor1"))
    if divisor is None or not bool((divisor == 0).any()):
        return None
    if dividend is None:
        return Flaw("zero", "inf")
    return Flaw("zero", "nan" if bool(((divisor == 0) & (dividend == 0)).any()) else "inf")


def _arc(node: Any, values: Values) -> Flaw | None:
    if _some(values, "self", lambda x: x.abs() > 1):
        return Flaw("outside", "nan")
    return Flaw("edge") if _some(values, "self", lambda x: x.abs() == 1) else None


def _arc_of_cosh(node: Any, values: Values) -> Flaw | None:
    if _some(values, "self", lambda x: x < 1):
        return Flaw("outside", "nan")
    return Flaw("edge") if _some(values, "self", lambda x: x == 1) else None


def _arc_tangent(node: Any, values: Values) -> Flaw | None:
    one, other = values.get("self"), values.get("other")
    if one is None or other is None:
        return None
    return Flaw("zero") if bool(((one == 0) & (other == 0)).any()) else None


def _both_zero(node: Any, values: Values) -> Flaw | None:
    return Flaw("zero") if _some(values, "result", lambda x: x == 0) else None


def _infinite_edge(node: Any, values: Values) -> Flaw | None:
    """erfinv at -1 and 1, logit at 0 and 1, atanh at -1 and 1."""
    low = 0.0 if type(node).__name__.startswith("Logit") else -1.0
    if _some(values, "self", lambda x: (x < low) | (x > 1)):
        return Flaw("outside", "nan")
    return Flaw("edge", "inf") if _some(values, "self", lambda x: (x == low) | (x == 1)) else None


def _row(name: str, *infinite: str) -> Look:
    """NaN out of a row of nothing but -inf; where such a row gives -inf, `infinite` names the result."""

    def look(node: Any, values: Values) -> Flaw | None:
        if _some(values, name, torch.isnan) and not _some(values, "self", torch.isnan):
            return Flaw("row", "nan")
        return Flaw("row", "inf") if any(_some(values, one, torch.isneginf) for one in infinite) else None

    return look


def _spread(node: Any, values: Values) -> Flaw | None:
    """std or var of fewer values than it takes."""
    tensor, correction = values.get("self"), saved_argument(node, "correction")
    if tensor is None:
        return None
    dims = saved_argument(node, "dim")
    # torch hands out negative dimensions as unsigned numbers
    dims = [dim if dim < tensor.dim() else dim - 2**64 for dim in dims] if dims else range(tensor.dim())
    size = math.prod(tensor.shape[dim] for dim in dims)
    return Flaw("single", "nan") if size <= (1 if correction is None else correction) else None


def _overflow(node: Any, values: Values) -> Flaw | None:
    return Flaw("overflow", "inf") if _some(values, "result", torch.isinf) else None


def _normalised(node: Any, values: Values) -> Flaw | None:
    return Flaw("zero", "nan") if _some(values, "result2", torch.isinf) else None


def _weight_norm(node: Any, values: Values) -> Flaw | None:
    return Flaw("zero", "nan") if _some(values, "result1", lambda x: x == 0) else None


def _xlogy(node: Any, values: Values) -> Flaw | None:
    return Flaw("zero") if _some(values, "other", lambda x: x == 0) else None


def _sequence_loss(node: Any, values: Values) -> Flaw | None:
    return Flaw("short", "inf") if _some(values, "result0", torch.isinf) else None


_LOOKS: dict[str, Look] = {
    **dict.fromkeys(("LogBackward0", "Log2Backward0", "Log10Backward0"), _log(0.0)),
    "Log1PBackward0": _log(-1.0),
    "SqrtBackward0": _root,
    **dict.fromkeys(("RsqrtBackward0", "ReciprocalBackward0"), _inverse),
    **dict.fromkeys(("PowBackward0", "PowBackward1"), _power),
    **dict.fromkeys(("DivBackward0", "DivBackward1", "AddcdivBackward0"), _quotient),
    **dict.fromkeys(("AcosBackward0", "AsinBackward0"), _arc),
    "AcoshBackward0": _arc_of_cosh,
    "Atan2Backward0": _arc_tangent,
    "HypotBackward0": _both_zero,
    **dict.fromkeys(("ErfinvBackward0", "LogitBackward0", "AtanhBackward0"), _infinite_edge),
    **dict.fromkeys(("SoftmaxBackward0", "LogSoftmaxBackward0"), _row("result")),
    "LogsumexpBackward0": _row("result", "result"),
    **dict.fromkeys(
        (
            "ScaledDotProductFlashAttentionForCpuBackward0",
            "ScaledDotProductFlashAttentionBackward0",
            "ScaledDotProductEfficientAttentionBackward0",
        ),
        _row("output"),
    ),
    **dict.fromkeys(("StdBackward0", "VarBackward0", "StdMeanBackward0", "VarMeanBackward0"), _spread),
    **dict.fromkeys(("ExpBackward0", "Expm1Backward0", "Exp2Backward0", "PowBackward2"), _overflow),
    **dict.fromkeys(("NativeLayerNormBackward0", "NativeBatchNormBackward0", "NativeGroupNormBackward0"), _normalised),
    "WeightNormInterfaceBackward0": _weight_norm,
    "XlogyBackward0": _xlogy,
    "CtcLossBackward0": _sequence_loss,
}

#: what a gradient that became NaN or infinite here was due to, where the values do not show it
FRAGILE = {
    **dict.fromkeys(("LinalgEighBackward0", "LinalgEigBackward0", "LinalgSvdBackward0"), "repeated"),
    **dict.fromkeys(
        (
            *("LinalgInvExBackward0", "LinalgSolveExBackward0", "LinalgDetBackward0", "LinalgSlogdetBackward0"),
            *("LinalgCholeskyExBackward0", "LinalgQrBackward0", "LinalgPinvBackward0"),
        ),
        "singular",
    ),
}

#: what fails here makes the loss NaN as well
_LOUD = frozenset({"NativeLayerNormBackward0", "NativeBatchNormBackward0", "NativeGroupNormBackward0"})

#: zero times infinity comes about here, too
_RISKY = {
    *("LogaddexpBackward0", "LogcumsumexpBackward0", "LgammaBackward0"),
    *("NormBackward0", "NormBackward1", "LinalgVectorNormBackward0", "CdistBackward0", "DistBackward0"),
    *("SinhBackward0", "CoshBackward0", "CumprodBackward0", "SoftplusBackward0", "BinaryCrossEntropyBackward0"),
}
