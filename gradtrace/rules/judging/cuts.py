"""What cut a path, in the user's words, and what to write instead."""

from __future__ import annotations

import ast

from gradtrace.model.events import Cut
from gradtrace.source import questions, syntax

#: longer expressions are named by what they call
_LONG = 40

_FIXES = {
    "detached": "use the tensor itself: numbers, .data and detached tensors have no graph",
    "copied": "use the tensor itself, or torch.stack or torch.cat for several: {op} copies only the values",
    "no_grad": "compute what should be trained outside of torch.no_grad() (inference_mode, set_grad_enabled(False))",
    "not differentiable": "use a differentiable operation instead: {op} has no gradient",
    "frozen": "leave requires_grad=True on the parameters that should be trained",
    "unasked": "create it with requires_grad=True, or call requires_grad_() on it, before you pass it to the optimizer",
    "written": "compute with the value itself, as in F.linear(x, weight): a value written into a parameter has no graph",
    "constant gradient": "pass create_graph=True: without it the gradient is a constant",
}
#: what to use instead of an operation without a gradient
_INSTEAD = {
    **dict.fromkeys(
        ("all_gather()", "all_gather_into_tensor()"),
        "use torch.distributed.nn.functional.all_gather, which passes gradients back: {op} gives constants",
    ),
    **dict.fromkeys(
        ("argmax()", "argmin()"), "use the scores themselves: logits with cross_entropy, or softmax for a soft choice"
    ),
    **dict.fromkeys((">", "<", ">=", "<=", "=="), "use a smooth step: torch.sigmoid((x - threshold) / temperature)"),
    **dict.fromkeys(
        ("multinomial()", "bernoulli()", "poisson()"),
        "a sample has no gradient: use log_prob(sample) times the reward, or rsample() or gumbel_softmax",
    ),
    **dict.fromkeys(("long()", "int()", "bool()"), "stay in floating point: integers have no gradient"),
    **dict.fromkeys(
        ("max()", "min()", "topk()", "sort()"), "use the values that {op} returns: its indices have no gradient"
    ),
}
#: methods whose result has no graph, where the tensor itself does
_METHODS = {
    "detach": "remove `.detach()`: a detached tensor has no graph",
    "item": "use the tensor itself, without `.item()`: a Python number has no graph",
    "tolist": "use the tensor itself, without `.tolist()`: Python numbers have no graph",
    "numpy": "use the tensor itself, without `.numpy()`: a NumPy array has no graph",
}


def operation(cut: Cut) -> str:
    """The operation that cut a path, in the user's words: `h.detach()`, `dist.sample()`; torch's name for it where the
    source does not say."""
    call = syntax.call_at(cut.stack[0]) if cut.stack and cut.why not in ("frozen", "unasked") else None
    if call is None:
        return f"`{cut.op}`"
    text = ast.unparse(call)
    if len(text) > _LONG:
        text = f"{ast.unparse(call.func)}()"
    return f"`{text if len(text) <= _LONG else _end_of(text)}`"


def _end_of(text: str) -> str:
    """The end of a long expression, where the operation is that cuts."""
    return f"... {text[-_LONG:].lstrip()}"


def fix(cut: Cut) -> str:
    """What to write instead."""
    dist = sampled(cut)
    if dist:
        return (
            f"use `{dist}.rsample()`; a distribution without it, such as Categorical, needs F.gumbel_softmax or a loss "
            f"with `{dist}.log_prob(...)`"
        )
    instead = _INSTEAD.get(cut.op) if cut.why == "not differentiable" else None
    instead = instead or _without(cut) or _FIXES.get(cut.why, _FIXES["detached"])
    return instead.format(op=cut.op)


def _without(cut: Cut) -> str:
    """That the method which cuts the path is to go: `.item()` of `loss.item()`; empty for another cut."""
    call = syntax.call_at(cut.stack[0]) if cut.stack and cut.why == "detached" else None
    if call is None or not isinstance(call.func, ast.Attribute) or f"{call.func.attr}()" != cut.op:
        return ""
    return _METHODS.get(call.func.attr, "")


def sampled(cut: Cut) -> str:
    """The distribution of which a sample was drawn without a gradient, `dist` of `dist.sample()`; empty for another
    cut."""
    call = questions.sample_call(cut.stack[0]) if cut.stack and cut.why == "no_grad" else None
    return ast.unparse(call.func.value) if call is not None and isinstance(call.func, ast.Attribute) else ""


def difference(cut: Cut) -> tuple[str, str] | None:
    """The two sides of a detached difference: `q` and `z` of `(q - z).detach()`."""
    call = syntax.call_at(cut.stack[0]) if cut.stack else None
    if call is None or not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.BinOp):
        return None
    return ast.unparse(call.func.value.left), ast.unparse(call.func.value.right)
