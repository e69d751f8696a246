"""A step uses gradients that are still multiplied by a GradScaler's scale.

Why it matters
    scaler.scale(loss).backward() multiplies all gradients by the scale, 65536 at first, so that small ones do not vanish
    in half precision. scaler.step() removes the scale, and skips the step where a gradient is infinite. A plain
    optimizer.step() applies the scaled gradients as they are.

Bad
    scaler = torch.amp.GradScaler("cpu")
    for x, y in data:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        optimizer.step()

Good
    scaler = torch.amp.GradScaler("cpu")
    for x, y in data:
        optimizer.zero_grad()
        scaler.scale(loss_fn(model(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()

The finding is at the step. Gradients from which scaler.unscale_() has removed the scale, or that your own code has read
and divided, are fine.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, Given, OptimizerStep
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import leaves_of, receiver, step_call


class ScaledGrad(Rule):
    id = "scaled-grad"
    level = Level.ERROR
    events = (OptimizerStep,)
    needs = Needs(calls=1, steps=1)

    def see(self, event: Event) -> Iterable[Finding]:
        assert isinstance(event, OptimizerStep)
        scaled = [one for one in event.given if one.scaled and not one.read]
        return self._found(event, scaled[-1]) if scaled and not event.error else []

    def _found(self, step: OptimizerStep, one: Given) -> list[Finding]:
        name = receiver(step.stack) or "optimizer"
        return self.finding(
            step.stack,
            f"`{step_call(step)}` applies gradients of {leaves_of(one)} that are still multiplied by the GradScaler's "
            "scale",
            f"call `scaler.step({name})`, which removes the scale first, and then `scaler.update()`",
            ((one.stack, "the scaled loss is backpropagated here"),),
        )
