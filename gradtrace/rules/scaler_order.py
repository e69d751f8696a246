"""The methods of a GradScaler are called in the wrong order, and it raises an error.

Why it matters
    In each iteration that steps, the order is scale(loss).backward(), then unscale_(optimizer) where gradients are clipped,
    then step(optimizer), and at last update(). unscale_ divides the gradients by the scale; to divide them twice would
    make them wrong, so a second call before update() is refused. With accumulation of gradients, unscale_, step and
    update belong to the last micro-batch alone.

Bad
    scaler = torch.amp.GradScaler("cpu")
    for i, (x, y) in enumerate(data):
        scaler.scale(loss_fn(model(x), y) / 2).backward()
        scaler.unscale_(optimizer)  # in each micro-batch
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if i % 2:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

Good
    scaler = torch.amp.GradScaler("cpu")
    for i, (x, y) in enumerate(data):
        scaler.scale(loss_fn(model(x), y) / 2).backward()
        if i % 2:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

The finding is at the call that comes too early, too late or once too often; where update() is missing, at the step that it
should follow. An error that the code catches is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, ScalerMisused
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import names_of, receiver


class ScalerOrder(Rule):
    id = "scaler-order"
    level = Level.ERROR
    events = (ScalerMisused,)
    needs = Needs(calls=1)

    def see(self, event: Event) -> Iterable[Finding]:
        assert isinstance(event, ScalerMisused)
        stack, message, fix = _SAID[event.kind](event)
        return self.finding(
            stack,
            message,
            fix,
            (
                (event.stack, "this call raises the error"),
                (event.earlier, _earlier(event)),
                (event.made, "they become float16 here"),
                (event.backward, "the last backward call"),
                (event.optimizer_stack, f"{event.optimizer} is created here"),
                (stack[1:], "called from here"),
            ),
        )


def _earlier(event: ScalerMisused) -> str:
    return "the gradients are unscaled here" if event.kind == "unscaled" else "the step is here"


def _unscaled(event: ScalerMisused) -> tuple[Stack, str, str]:
    if event.between:
        return (
            event.stack,
            "`scaler.unscale_()` divides gradients by the scale a second time: since the first time there was a backward "
            "call, but no `scaler.update()`",
            "call `scaler.unscale_()`, and clip, only in the iterations that step, right before `scaler.step()`; then call "
            "`scaler.update()`",
        )
    return (
        event.stack,
        "`scaler.unscale_()` is called twice after one backward call: the gradients are unscaled already",
        "remove one of the two calls: `scaler.unscale_()` once per iteration, before `scaler.step()`",
    )


def _after_step(event: ScalerMisused) -> tuple[Stack, str, str]:
    if event.between:
        return _no_update(event)
    return (
        event.stack,
        "`scaler.unscale_()` is called after `scaler.step()`, which has unscaled the gradients itself and used them",
        "call `scaler.unscale_()` before `scaler.step()`",
    )


def _stepped(event: ScalerMisused) -> tuple[Stack, str, str]:
    if event.between:
        return _no_update(event)
    return (
        event.stack,
        "`scaler.step()` is called twice after one backward call",
        "call `scaler.step()` once per iteration for each optimizer, and then `scaler.update()`",
    )


def _no_update(event: ScalerMisused) -> tuple[Stack, str, str]:
    return (
        event.earlier or event.stack,
        "no `scaler.update()` follows this step, so the next iteration fails: the GradScaler takes it for the same one",
        "call `scaler.update()` at the end of each iteration that steps, after `scaler.step()`",
    )


def _empty(event: ScalerMisused) -> tuple[Stack, str, str]:
    name = f"`{event.optimizer}`"
    if event.frozen:
        return (
            event.optimizer_stack or event.stack,
            f"no parameter that this {name} holds requires grad, so `scaler.step()` finds no gradient",
            "pass the parameters that should be trained, or set requires_grad=True on the ones it holds",
        )
    fed = f"; the last backward call gave gradients to {names_of(event.names, event.count)}" if event.count else ""
    return (
        event.stack,
        f"no parameter that this {name} holds has a gradient, so `scaler.step()` has nothing to check{fed}",
        "pass the parameters that the loss depends on to the optimizer; step only optimizers whose loss was backpropagated",
    )


def _unchecked(event: ScalerMisused) -> tuple[Stack, str, str]:
    return (
        event.stack,
        "`scaler.update()` is called although no `scaler.step()` or `scaler.unscale_()` has checked gradients before",
        "call `scaler.step(optimizer)` in place of `optimizer.step()`, and then `scaler.update()`",
    )


def _unscaled_loss(event: ScalerMisused) -> tuple[Stack, str, str]:
    return (
        event.backward or event.stack,
        "this loss is not scaled, and the GradScaler has no scale yet: `scaler.scale()` was never called",
        "call `scaler.scale(loss).backward()`",
    )


def _half(event: ScalerMisused) -> tuple[Stack, str, str]:
    return (
        event.made or event.stack,
        f"{names_of(event.names, event.count)} {'is' if event.count == 1 else 'are'} float16, and so are the gradients: a "
        "GradScaler does not unscale these",
        "keep the parameters in float32, without `half()`, and compute the loss under `torch.autocast`",
    )


def _closure(event: ScalerMisused) -> tuple[Stack, str, str]:
    name = receiver(event.stack) or "optimizer"
    return (
        event.stack,
        "a GradScaler does not support a closure: it cannot scale the losses of each evaluation",
        f"train with `{name}.step(closure)` in float32 or bfloat16, without a GradScaler",
    )


_SAID = {
    "unscaled": _unscaled,
    "after step": _after_step,
    "stepped": _stepped,
    "empty": _empty,
    "unchecked": _unchecked,
    "unscaled loss": _unscaled_loss,
    "half": _half,
    "closure": _closure,
}
