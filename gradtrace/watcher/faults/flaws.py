"""Where an operation has no finite slope or value: looks at what its node saved, and names what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from functools import cache
from typing import Any, NamedTuple

import torch

from gradtrace.watcher.compat import local_part, saved_argument
from gradtrace.watcher.graph import ops, saved

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
    kind = ops.SINGULAR.get(type(node).__name__)
    if kind is None:
        return None
    return _LOOKS[kind](node, dict(saved.tensors(node)) if values is None else values)


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
    own = name in ops.SINGULAR or name in ops.OVERFLOWING or name in ops.FRAGILE
    return Risk.OWN if own and name not in ops.NORMALIZATIONS else Risk.NONE


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


def _infinite_edge(low: float) -> Look:
    """erfinv and atanh at -1 and 1, logit at 0 and 1."""

    def look(node: Any, values: Values) -> Flaw | None:
        if _some(values, "self", lambda x: (x < low) | (x > 1)):
            return Flaw("outside", "nan")
        return Flaw("edge", "inf") if _some(values, "self", lambda x: (x == low) | (x == 1)) else None

    return look


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


#: the checks for each kind of operation in `ops.SINGULAR`
_LOOKS: dict[str, Look] = {
    "logarithm": _log(0.0),
    "logarithm of one more": _log(-1.0),
    "root": _root,
    "inverse": _inverse,
    "power": _power,
    "quotient": _quotient,
    "arc": _arc,
    "arc of cosh": _arc_of_cosh,
    "angle": _arc_tangent,
    "length": _both_zero,
    "between -1 and 1": _infinite_edge(-1.0),
    "between 0 and 1": _infinite_edge(0.0),
    "row": _row("result"),
    "row of a sum": _row("result", "result"),
    "row of an attention": _row("output"),
    "spread": _spread,
    "exponential": _overflow,
    "normalization": _normalised,
    "weight norm": _weight_norm,
    "product with a logarithm": _xlogy,
    "loss of sequences": _sequence_loss,
}
