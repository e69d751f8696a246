"""A term of the loss reaches none of the parameters that it should train.

Why it matters
    The loss is a sum, and falls; but one of its terms is a constant for the optimizer that steps: its path to the
    parameters was cut by detach(), no_grad() or a conversion to a number. In a GAN's generator step, `D(fake.detach())`
    gives gradients only to the discriminator, and no step uses them.

Bad
    for x, y in data:
        pred = model(x)
        with torch.no_grad():
            smoothness = pred.diff(dim=0).square().mean()
        loss = loss_fn(pred, y) + 0.1 * smoothness
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Good
    for x, y in data:
        pred = model(x)
        smoothness = pred.diff(dim=0).square().mean()
        loss = loss_fn(pred, y) + 0.1 * smoothness
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

The finding is at the operation that cut the path. A detach() within the trained network itself (a stop-gradient, a
baseline, a commitment loss, a straight-through sum) is a choice, and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import DeadTerm, Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.cuts import fix, operation, sampled
from gradtrace.rules.judging.naming import expression, names_of
from gradtrace.source import questions


class DeadLossTerm(Rule):
    id = "dead-loss-term"
    level = Level.WARNING
    events = (DeadTerm,)
    needs = Needs(calls=3, steps=3)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, DeadTerm):
            return []
        loss = expression(event.backward, event.root)
        term = _term(event, loss)
        op = operation(event.cut)
        names = names_of(event.names, event.count)
        optimizer = " and ".join(dict.fromkeys(event.optimizers))
        off = event.cut.why == "no_grad" and not sampled(event.cut)
        ran_off = f"{'it' if term == op else op} is computed with gradients off"
        cut = ran_off if off else f"{op} cuts its path to {names}"
        if event.alive:
            what = f"{term}, a term of {loss}, does not train {names}: {ran_off if off else f'{op} cuts the path'}"
        elif event.kind == "term":
            what = f"{term}, a term of {loss}, trains no parameter of {optimizer}: {cut}"
        else:
            because = "" if term == op and not off else f": {cut}"
            what = f"{term}, a term of {loss}, is a constant and trains nothing{because}"
        return self.finding(
            event.cut.stack,
            what,
            _fix(event, term),
            (
                (event.stack, "the term is computed here" if event.kind == "term" else "the term is added here"),
                (event.backward, f"{loss} is backpropagated here"),
                (event.cut.stack[1:], "called from here"),
            ),
        )


def _term(event: DeadTerm, loss: str) -> str:
    """The term in the user's words, which are not to be those for the whole loss."""
    if event.kind == "term":
        names = questions.assigned(event.stack[0])
        return f"`{names[0]}`" if len(names) == 1 and f"`{names[0]}`" != loss else "the result of this line"
    cut = event.cut.stack
    names = questions.assigned(cut[0]) if cut and cut[0].place != event.stack[0].place else ()
    return f"`{names[0]}`" if len(names) == 1 else operation(event.cut)


def _fix(event: DeadTerm, term: str) -> str:
    if sampled(event.cut):
        return fix(event.cut)
    if event.cut.why == "no_grad":
        return f"compute {term} with gradients on; if it is only printed, leave it out of the loss"
    if event.kind == "term":
        return fix(event.cut)
    return "add the tensor itself, which has a graph; if it is only printed, leave it out of the loss"
