"""Compares the backward of custom Functions with finite differences, on inputs that they really got.

`check --gradcheck` runs each Function some more times, in float64 and with the random numbers of the script put back. For
random weights v of the outputs and random directions u of the inputs, the slope of v·f(x + t u) at t = 0 must be the
gradient times u: a handful of evaluations, however large the inputs are.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd import Function

from gradtrace.model.truths import WrongBackward
from gradtrace.watcher.code import function_source
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session

Tensor = torch.Tensor

#: calls of one Function that are tried, directions for each input, and elements beyond which an input is too large
_CALLS, _DIRECTIONS, _SIZE = 3, 3, 1 << 20
#: step widths whose slopes must agree before they are believed, how well, and from which difference on a gradient is wrong
_WIDTHS, _AGREE, _WRONG = (1e-5, 1e-6), 1e-3, 1e-2


class BackwardChecks(Observer):
    """Runs code of the user's more often than the script does: only where that is wanted."""

    in_every_check = False

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._tried: Counter[type] = Counter()
        self._reported: set[type] = set()
        self._running = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        found = vars(Function)["apply"]

        def apply(kind: Any, *args: Any, **kwargs: Any) -> Any:
            # bound by hand: since torch 2.14 it is a method in C, without a __func__
            return found.__get__(None, kind)(*args, **kwargs)

        replacing = classmethod(self._applying(apply))
        Function.apply = replacing  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            if vars(Function).get("apply") is replacing:
                Function.apply = found  # type: ignore[method-assign]

    def _applying(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        @compiled.around
        @functools.wraps(apply)
        def applied(kind: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._running and self._is_wanted(kind, args, kwargs):
                self._running = True
                try:
                    self.session.guarded(self._try, kind, apply, args)
                finally:
                    self._running = False
            return apply(kind, *args, **kwargs)

        return applied

    def _is_wanted(self, kind: Any, args: Sequence[Any], kwargs: Any) -> bool:
        if kwargs or kind in self._reported or self._tried[kind] >= _CALLS or not torch.is_grad_enabled():
            return False
        if torch.compiler.is_compiling() or not self.session.in_watched_thread():
            return False
        made_by_user = function_source.defined(kind.backward)
        if not made_by_user or not self.session.frames.is_user(made_by_user[0].path):
            return False
        return any(_is_differentiable(one) for one in args)

    def _try(self, kind: Any, apply: Callable[..., Any], args: Sequence[Any]) -> None:
        self._tried[kind] += 1
        with self.session.unwatched(), torch.random.fork_rng(devices=[]), torch.enable_grad():
            trial = _BackwardTrial(kind, apply, args)
            try:
                wrong = trial.wrong_input()
            except Exception:  # noqa: BLE001 - a Function that does not work in float64 cannot be tried
                return
        if wrong is not None:
            self._reported.add(kind)
            index, slope, given = wrong
            self.session.emit(
                WrongBackward(
                    kind.__name__,
                    function_source.defined(kind.backward),
                    function_source.defined(kind.forward),
                    index,
                    f"{given:.4g}",
                    f"{slope:.4g}",
                )
            )


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad and value.is_floating_point() and value.numel() <= _SIZE


class _BackwardTrial:
    """One call of a Function, to be repeated in float64."""

    def __init__(self, kind: Any, apply: Callable[..., Any], args: Sequence[Any]) -> None:
        self._kind, self._apply = kind, apply
        self._args = [_precise(one) for one in args]
        self._tested = [index for index, one in enumerate(args) if _is_differentiable(one)]
        self._seed = 0
        self._generator = torch.Generator().manual_seed(0)

    def wrong_input(self) -> tuple[int, float, float] | None:
        """The first input whose gradient is wrong, with the slope and what the backward gives; None where none is known
        to be."""
        first, second = self._outputs({}), self._outputs({})
        if not first or not all(torch.equal(one, other) for one, other in zip(first, second, strict=True)):
            return None  # it is random in a way of its own, or keeps a state
        if self._is_identity(first):
            return None  # it changes gradients on purpose: reverses, scales or clips them
        weights = [self._random(one) for one in first]
        gradients = self._gradients(weights)
        for index in self._tested:
            wrong = self._compare(index, weights, gradients.get(index))
            if wrong is not None:
                return index, *wrong
        return None

    def _compare(self, index: int, weights: list[Tensor], gradient: Tensor | None) -> tuple[float, float] | None:
        """The first slope that does not agree; None where some do, or where the slopes cannot be trusted."""
        given_any = slope_any = False
        wrong: tuple[float, float] | None = None
        for _ in range(_DIRECTIONS):
            direction = self._random(self._args[index])
            slopes = [self._slope(index, direction, weights, width) for width in _WIDTHS]
            slope = slopes[-1]
            scale = max(abs(slope), 1e-6 * float(direction.norm()))
            if abs(slopes[0] - slope) > _AGREE * scale:
                return None  # a kink or a jump lies near
            given = 0.0 if gradient is None else float((gradient * direction).sum())
            given_any, slope_any = given_any or given != 0.0, slope_any or abs(slope) > 1e-9
            if abs(given - slope) <= _WRONG * max(abs(given), abs(slope), 1e-6):
                return None
            wrong = wrong or (slope, given)
        # flat, and yet a gradient: a straight-through estimator
        return wrong if slope_any else None

    def _slope(self, index: int, direction: Tensor, weights: list[Tensor], width: float) -> float:
        values = []
        for sign in (1, -1):
            moved = self._outputs({index: self._args[index] + sign * width * direction})
            values.append(float(sum((one * weight).sum() for one, weight in zip(moved, weights, strict=True))))
        return (values[0] - values[1]) / (2 * width)

    def _outputs(self, instead: dict[int, Tensor]) -> list[Tensor]:
        """The outputs that have gradients, for these inputs."""
        with torch.no_grad():
            return [one.detach().clone() for one in self._call(instead)]

    def _call(self, instead: dict[int, Tensor]) -> list[Tensor]:
        torch.manual_seed(self._seed)
        args = [instead.get(index, one) for index, one in enumerate(self._args)]
        args = [one.clone() if isinstance(one, Tensor) else one for one in args]
        found = self._apply(self._kind, *args)
        outputs = found if isinstance(found, (tuple, list)) else [found]
        return [one for one in outputs if isinstance(one, Tensor) and one.dtype is torch.float64]

    def _gradients(self, weights: list[Tensor]) -> dict[int, Tensor]:
        leaves = {index: self._args[index].detach().clone().requires_grad_() for index in self._tested}
        outputs = self._call(dict(leaves))
        total = torch.zeros((), dtype=torch.float64)
        for one, weight in zip(outputs, weights, strict=True):
            total = total + (one * weight).sum().cpu()
        found: dict[int, Tensor] = {}
        if total.requires_grad:
            for index, leaf in leaves.items():
                (gradient,) = torch.autograd.grad(total, leaf, retain_graph=True, allow_unused=True)
                if gradient is not None:
                    found[index] = gradient
        return found

    def _is_identity(self, outputs: list[Tensor]) -> bool:
        given = [self._args[index] for index in self._tested]
        return any(one.shape == other.shape and torch.equal(one, other) for one in outputs for other in given)

    def _random(self, like: Tensor) -> Tensor:
        return torch.randn(like.shape, dtype=torch.float64, generator=self._generator).to(like.device)


def _precise(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.detach().to(torch.float64) if value.is_floating_point() else value.detach()
