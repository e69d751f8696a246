"""A call is refused because a tensor requires grad, requires none, or is not a leaf.

Why it matters
    What belongs to a graph cannot be converted to NumPy, copied deeply or frozen, since its gradients would be lost
    silently; and what requires no grad can have no hook. The error names the call alone. Often the cause lies before it,
    where the tensor was computed, or detached.

Bad
    history = []
    for x, y in data:
        pred = model(x)
        loss = loss_fn(pred, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(pred.numpy())

Good
    history = []
    for x, y in data:
        pred = model(x)
        loss = loss_fn(pred, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(pred.detach().numpy())

The finding is at the call; where a tensor was detached or frozen before, at that. Further calls that this rule explains: an
optimizer without parameters, with a parameter in two groups, or an L-BFGS step without a closure; backward() or grad() with
no inputs; requires_grad for integers; and a second derivative that an operation or a custom Function does not have. An
error that the code catches is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import CallRefused, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.cuts import fix, operation

#: by kind of refusal, what happened and what to write
_SAID = {
    "numpy": (
        "a tensor that requires grad is converted to NumPy, which has no gradients",
        "call `.detach()` first, to plot, print or save it; in a loss, use the function of torch in place of NumPy's",
    ),
    "deepcopy": (
        "a tensor that belongs to a graph is copied by `copy.deepcopy`, itself or within an object that keeps it",
        "keep `.detach()` of it in the object, or copy its state_dict(): only leaves can be copied deeply",
    ),
    "hook": (
        "this tensor does not require grad, so its hook never runs, and its .grad stays None",
        "call requires_grad_() on it before it is used, or register the hook on a tensor that was computed from parameters",
    ),
    "leaf hook": (
        "a hook that runs after accumulation is registered on the result of an operation, which accumulates nothing",
        "use register_hook() for results of operations, or register this hook on the parameters",
    ),
    "integer": (
        "a tensor of integers or booleans cannot require grad: only floating point and complex ones can",
        "convert it to floating point first: `.float()`, or dtype=torch.float32 where it is created",
    ),
    "flag": (
        "requires_grad is changed on the result of an operation, but only leaves can be frozen",
        "use `.detach()` of the result as a constant; to freeze a layer, call requires_grad_(False) on the layer",
    ),
    "dtype": (
        "a gradient of another dtype than its tensor's is assigned to .grad",
        "convert it first: `grad.to(p.dtype)` for the gradient of `p`",
    ),
    "empty": (
        "the optimizer gets an empty parameter list",
        "pass `model.parameters()` of a model that holds its layers as attributes or in an nn.ModuleList; a generator can be "
        "used only once",
    ),
    "two groups": (
        "a parameter is in two groups of the optimizer, so each step would move it twice",
        "pass each parameter in one group: `[p for p in model.parameters() if id(p) not in listed]` for the rest",
    ),
    "no inputs": (
        "`inputs` is empty, so there is no gradient to compute",
        "pass the tensors whose gradients are wanted; a generator can be used only once",
    ),
    "closure": (
        "L-BFGS evaluates the loss several times in each step, and gets no closure to do so",
        "pass `step()` a function that zeroes the gradients, computes the loss, calls backward() and returns the loss",
    ),
    "no backward": (
        "this backward call reaches a custom Function that has no `backward`",
        "add `@staticmethod def backward(ctx, grad)` to the Function, or compute with operations of torch alone",
    ),
    "once": (
        "a gradient is differentiated again, but the backward of a custom Function is marked with @once_differentiable",
        "write its backward with operations of torch alone, and remove @once_differentiable",
    ),
    "twice": (
        "a gradient is differentiated again, but an operation on its path has no second derivative",
        "use another implementation of the operation: for attention, `with torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`",
    ),
}


class RefusedCall(Rule):
    id = "refused-call"
    level = Level.ERROR
    events = (CallRefused,)

    def see(self, event: Event) -> Iterable[Finding]:
        assert isinstance(event, CallRefused)
        what, advice = _SAID[event.kind]
        cut = event.cut
        if cut is not None and cut.stack:
            what, advice = f"{what}: {operation(cut)} cuts the path to what requires grad", fix(cut)
        stack = cut.stack if cut is not None and cut.stack else event.stack
        return self.finding(
            stack,
            what,
            advice,
            (
                (event.stack, "this call raises the error"),
                (event.made, "the tensor is computed here"),
                (stack[1:], "called from here"),
            ),
        )
