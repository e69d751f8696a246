"""The gradient of a parameter is always exactly zero, because an operation with zero derivative is on every path to it.

Why it matters
    The derivative of sign, round, floor, ceil and // is zero wherever it exists, and so is that of a sample of
    torch.normal(mean, std), torch.bernoulli(p) or torch.poisson(rate), of a saturated clamp or ReLU, and of softmax over
    a single element, which is always 1. At the last time step, the reverse direction of a bidirectional network has read
    only one input, so its recurrent weights have no effect. Every parameter before such an operation has a .grad, but is
    never trained.

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

The second derivative of a network of ReLU, leaky ReLU, hardtanh or abs is zero everywhere: where a loss contains one, as
that of a differential equation does, use tanh, SiLU or softplus.

Where the forward pass needs the hard value, use a straight-through estimator: `soft + (hard - soft).detach()`. Two parameters
that are multiplied with each other and are both initialized to zero stay zero: initialize one randomly. The finding is at the
operation with zero derivative. A weight whose gradient is zero for another reason is a note; the key bias of attention and a
bias before a normalization layer are not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, FlatDerivative, FlatGradient
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import names_of, them

_SMOOTH = "use a smooth function (sigmoid, tanh), or the straight-through form `soft + (hard - soft).detach()`"
#: operations over a dimension of size one
_SINGLE = {"softmax": "softmax", "logsoftmax": "log_softmax"}
#: a sample of a distribution
_SAMPLES = {
    "normal": "draw the noise alone, `mean + std * torch.randn_like(std)`, or use rsample() of a Normal",
    "bernoulli": "use a relaxed sample (RelaxedBernoulli, gumbel_softmax), or log_prob(sample) times the reward",
    "poisson": "use log_prob(sample) times the reward: a count has no gradient",
}


class ZeroGradient(Rule):
    id = "zero-gradient"
    level = Level.WARNING
    events = (FlatGradient, FlatDerivative)
    needs = Needs(calls=3)

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, FlatDerivative):
            return self._second(event)
        if not isinstance(event, FlatGradient):
            return []
        names = names_of(event.names, event.count)
        if event.product:
            return self._product(event, names)
        if event.op in _SINGLE:
            return self._single(event, names)
        if event.op == "reverse":
            return self._reverse(event, names)
        if not event.op:
            return self._alone(event, names)
        if event.cancels:
            why = f"{event.op} compares two equal tensors that both depend on {them(event.count)}, so their gradients cancel"
            fix = "detach one of the two: what is compared with, such as the log-probability of the old policy, is a constant"
        elif event.saturated:
            why = f"{event.op} is saturated for every element"
            fix = (
                f"check the range of the input of {event.op}: try a wider clamp, a leaky ReLU, another initialization or a "
                "lower learning rate"
            )
        else:
            why = f"the derivative of {event.op} is zero"
            fix = _SAMPLES.get(event.op, _SMOOTH)
        # of two that cancel rounding may leave something
        zero = "zero" if event.cancels else "exactly zero"
        return self.finding(
            event.stack,
            f"the gradient of {names} was {zero} in {_calls(event)}: {why}"
            + ("" if event.cancels else f", and {event.op} is on every path to {them(event.count)}"),
            fix,
            ((event.backward, "this call computes the gradient"), (event.stack[1:], "called from here")),
            # a margin that is kept, a constraint that is not violated
            Level.NOTE if event.saturated and event.term else None,
        )

    def _second(self, event: FlatDerivative) -> list[Finding]:
        what = f"the derivative of `{event.root}`, which is a gradient itself," if event.root else "a second derivative"
        return self.finding(
            event.made or event.stack,
            f"{what} was exactly zero in the first {event.times} calls: the slope of {event.op} is piecewise constant, and "
            f"{event.op} is on every path",
            f"use a smooth activation in place of {event.op}: tanh, SiLU (swish), softplus or sin",
            (
                (event.stack, "this call computes the second derivative"),
                (event.stack[1:], "called from here"),
            ),
        )

    def _single(self, event: FlatGradient, names: str) -> list[Finding]:
        return self.finding(
            event.stack,
            f"the gradient of {names} was exactly zero in {_calls(event)}: {_SINGLE[event.op]} over a "
            f"dimension of size 1 is always {'1' if event.op == 'softmax' else '0'}, whatever its input",
            "apply softmax over all candidates, and select afterwards"
            if event.op == "softmax"
            else "give the network one output per class, or use binary_cross_entropy_with_logits for a single output",
            ((event.backward, "this call computes the gradient"), (event.stack[1:], "called from here")),
            # attention with a single key, as a conditioning token is
            Level.NOTE if event.term and event.op == "softmax" else None,
        )

    def _reverse(self, event: FlatGradient, names: str) -> list[Finding]:
        return self.finding(
            event.stack,
            f"the gradient of {names} was exactly zero in {_calls(event)}: at the last time step the "
            "reverse direction has read only one input, and its state is still zero",
            "read the reverse direction at time step 0, or take the final states: torch.cat([h_n[-2], h_n[-1]], dim=1)",
            ((event.backward, "this call computes the gradient"), (event.stack[1:], "called from here")),
        )

    def _alone(self, event: FlatGradient, names: str) -> list[Finding]:
        return self.finding(
            event.stack,
            f"the gradient of {names} was exactly zero in {_calls(event)} that were checked: no step trains {them(event.count)}",
            f"check what is computed from {them(event.count)}: a factor of zero, a mask that removes everything, two terms that cancel",
            ((event.stack[1:], "called from here"),),
            Level.NOTE,
        )

    def _product(self, event: FlatGradient, names: str) -> list[Finding]:
        return self.finding(
            event.zeroed[0] if event.zeroed else event.stack,
            f"the gradient of {names} was exactly zero in {_calls(event)}: they are multiplied with each "
            "other, and both are zero",
            "initialize one of the two randomly, and only the other to zero",
            (
                *((other, "the other one gets its zeros here") for other in event.zeroed[1:2]),
                (event.stack if event.zeroed else (), "they are multiplied here"),
                (event.backward, "this call computes the gradient"),
            ),
        )


def _calls(event: FlatGradient) -> str:
    return f"{'the last' if event.late else 'all'} {event.iterations} backward calls"
