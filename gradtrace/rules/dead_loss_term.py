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

A penalty such as FedProx, EWC or L2-SP compares parameters with a reference. The reference must be a copy: `p.data`,
`p.detach()`, `model.state_dict()` and a list of the parameters share their memory, so that the penalty is always zero and
has no gradient. `p.detach().clone()` and `copy.deepcopy(model.state_dict())` are copies.

The finding is at the operation that cut the path, or at the comparison of a tensor with itself. A detach() within the
trained network itself (a stop-gradient, a baseline, a commitment loss, a straight-through sum) is a choice, and is not
reported; nor is a penalty that the code applies itself, by weight_decay or by writing to the parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import ComparedWithItself, DeadTerm, Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.cuts import fix, operation, sampled
from gradtrace.rules.judging.naming import expression, names_of
from gradtrace.source import questions, syntax

#: longer expressions are not named
_LONG = 60


class DeadLossTerm(Rule):
    id = "dead-loss-term"
    level = Level.WARNING
    events = (DeadTerm, ComparedWithItself)
    needs = Needs(calls=3, steps=3)

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, ComparedWithItself):
            return self._compared(event)
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

    def _compared(self, event: ComparedWithItself) -> list[Finding]:
        text = syntax.expression_at(event.stack[0], _LONG) if event.stack else ""
        names = names_of(event.names, event.count) if event.count else "a tensor"
        copy = "" if not event.copied else "a copy of " if event.count < 2 else "copies of "
        return self.finding(
            event.stack,
            f"{f'`{text}`' if text else 'this'} compares {copy}{names} with {_itself(event)}, in all {event.times} "
            "iterations that were checked: it is always zero, and trains nothing",
            "compare the parameter itself with the copy: one side must be what the optimizer holds"
            if event.copied
            else "compare with a copy that later steps do not change: `p.detach().clone()` of each parameter, or "
            "`copy.deepcopy(model.state_dict())`"
            if event.count
            else "compare with the other tensor: both sides are the same object",
            (
                (event.taken, "the reference is taken here, and shares the memory of the parameter"),
                (event.entered, "the term is added here" if event.backward else "it is added to the gradient here"),
                (event.backward, f"{expression(event.backward, event.root)} is backpropagated here"),
                (event.stack[1:], "called from here"),
            ),
        )


def _itself(event: ComparedWithItself) -> str:
    return "itself" if event.count < 2 else "themselves"


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
    if event.cut.behind == "leaf":
        return (
            f"compute it from the parameter itself, without `{event.cut.op if event.cut.op == '.data' else '.detach()'}`; if "
            "it is only printed, leave it out of the loss"
        )
    return "add the tensor itself, which has a graph; if it is only printed, leave it out of the loss"
