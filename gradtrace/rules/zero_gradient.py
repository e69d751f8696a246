"""A parameter gets a gradient that is exactly zero, every time, because a flat operation lies on each path to it.

Why it matters
    sign, round, floor, ceil and // are flat: their derivative is zero wherever it exists. So is a sample of
    torch.normal(mean, std), torch.bernoulli(p) or torch.poisson(rate). A clamp or a ReLU is flat where it is saturated.
    Everything in front of it is computed with, has a .grad, and is never trained.

Bad
    for x, y in data:
        mask = (torch.sign(x - threshold) + 1) / 2
        optimizer.zero_grad()
        loss_fn(model(x * mask), y).backward()
        optimizer.step()

Good
    for x, y in data:
        mask = torch.sigmoid((x - threshold) / 0.1)
        optimizer.zero_grad()
        loss_fn(model(x * mask), y).backward()
        optimizer.step()

Where the hard value is needed in the forward pass, use a straight-through estimator: `soft + (hard - soft).detach()`.
Two parameters that are multiplied with each other and both start at zero stay there: start one at random. The finding
is at the flat operation. A zero gradient that has another reason (the key bias of attention, a bias before a
normalisation) is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, FlatGradient
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Site, Stack
from gradtrace.rules.base import Rule
from gradtrace.source import questions

_SMOOTH = "use a smooth function (sigmoid, tanh), or the straight-through form `soft + (hard - soft).detach()`"
#: a sample of a distribution
_SAMPLES = {
    "normal": "draw the noise alone, `mean + std * torch.randn_like(std)`, or use rsample() of a Normal",
    "bernoulli": "use a relaxed sample (RelaxedBernoulli, gumbel_softmax), or log_prob(sample) times the reward",
    "poisson": "use log_prob(sample) times the reward: a count has no gradient",
}


class ZeroGradient(Rule):
    id = "zero-gradient"
    level = Level.WARNING
    hears = (FlatGradient,)
    needs = Needs(calls=3)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, FlatGradient):
            return []
        shown = ", ".join(f"`{name}`" for name in event.names[:2])
        names = shown if event.count <= 2 else f"{shown} and {event.count - 2} more"
        if event.product:
            return self._product(event, names)
        if event.saturated:
            why = f"{event.op} is saturated for every element"
            mend = (
                "look at the range of what goes in: a wider clamp, a leaky ReLU, another initialisation or a lower rate"
            )
        else:
            why = f"{event.op} has the derivative zero"
            mend = _SAMPLES.get(event.op, _SMOOTH)
        return self.finding(
            event.stack,
            f"the gradient of {names} was exactly zero in all {event.turns} backward calls: {why} and lies on every path to "
            f"{'it' if event.count == 1 else 'them'}",
            mend,
            ((event.backward, "this call computes the gradient"), (event.stack[1:], "called from here")),
            # a margin that is kept, a constraint that is not violated
            Level.NOTE if event.saturated and event.term else None,
        )

    def _product(self, event: FlatGradient, names: str) -> list[Finding]:
        return self.finding(
            event.stack,
            f"the gradient of {names} was exactly zero in all {event.turns} backward calls: they are multiplied with each "
            "other here, and all of them are zeros",
            "give one of them random values at the start, and leave only the other at zero",
            (
                *((_made(event.stack, name), f"`{name}` is made here") for name in event.names),
                (event.backward, "this call computes the gradient"),
                (event.stack[1:], "called from here"),
            ),
        )


def _made(stack: Stack, name: str) -> Stack:
    """The statement of the class around `stack` that makes the attribute of this name."""
    if not stack:
        return ()
    path, kind = stack[0].path, stack[0].function.rpartition(".")[0].rpartition(".")[2]
    found = questions.attribute_set(path, kind, name.rpartition(".")[2])
    return (Site(path, found.lineno, f"{kind}.__init__"),) if found is not None else ()
