"""backward() or autograd.grad() on a tensor that has no graph.

Why it bites
    Something between the parameters and the loss cut the path: detach(), .data, .item(), NumPy, torch.no_grad(), argmax, a
    comparison, torch.tensor(t), or parameters that are all frozen. torch names the loss, not the cut.

Bad
    pred = model(x).argmax(1)
    loss_fn(pred.float(), y).backward()

Good
    loss_fn(model(x), y).backward()

The finding is at the operation that cut the path.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Backward, Cut, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule
from gradtrace.rules.places import expression

_ERROR = "does not require grad and does not have a grad_fn"

_MENDS = {
    "detached": "keep the tensor itself here: numbers, .data and detached tensors carry no graph",
    "copied": "use torch.stack or torch.cat on the tensors: {op} copies their values alone",
    "no_grad": "run this with gradients on: torch.no_grad() (or inference_mode, set_grad_enabled(False)) is active here",
    "not differentiable": "use something differentiable here: {op} has no gradient",
    "frozen": "leave requires_grad on for the parameters that are to be trained",
}


class NoGraph(Rule):
    id = "no-graph"
    level = Level.ERROR

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Backward) or event.error is None or _ERROR not in event.error:
            return []
        request = expression(event.stack, event.root)
        cut = next(iter(event.cuts), None)
        if cut is None:
            return self.finding(
                event.stack,
                f"{request} has no graph: nothing that went into it requires grad",
                "make it from parameters with requires_grad=True, in torch operations",
            )
        return self.finding(
            cut.stack,
            f"{request} has no graph: {_what(cut)}",
            _MENDS[cut.why].format(op=cut.op),
            (
                *((other.stack, _what(other)) for other in event.cuts[1:]),
                (event.stack, "this call finds no graph"),
                (cut.stack[1:], "called from here"),
            ),
        )


def _what(cut: Cut) -> str:
    if cut.why == "frozen":
        return "the parameters it depends on are frozen here"
    if cut.why == "no_grad":
        return f"{cut.op} ran with gradients off here"
    return f"{cut.op} cut the path to the parameters here"
