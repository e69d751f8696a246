"""A step uses gradients that an earlier step has used already, or that come from before the training loop.

Why it matters
    backward() adds to .grad, it does not replace it. Where nothing clears the gradients between two steps, the second step
    moves along the sum of the old and the new gradient. The loss still falls for a while, which hides the fault.

Bad
    for x, y in data:
        loss_fn(model(x), y).backward()
        optimizer.step()  # nobody calls zero_grad()

Good
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

The finding is at the last backward call that added to the used gradient. Micro-batches, several losses before one step,
and zero_grad() anywhere between two steps are fine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TypeGuard

from gradtrace.model.events import Contribution, Event, FrozenMoved, Step, Use
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.places import expression, names_of, shared_depth
from gradtrace.source import questions, syntax

#: accumulation windows looked at before uneven ones are called a fault
_WINDOWS = 4


class StaleGrad(Rule):
    id = "stale-grad"
    level = Level.ERROR
    hears = (Step, FrozenMoved)
    needs = Needs(calls=2, steps=2)

    def __init__(self) -> None:
        #: sizes of the first accumulation windows, by the step's and the backward's place
        self._windows: dict[tuple[Stack, Stack], list[int]] = {}

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, FrozenMoved):
            return self._still_moved(event)
        if not isinstance(event, Step):
            return []
        sums = [use for use in event.uses if len(use.contributions) > 1]
        for use in sorted(sums, key=lambda use: -use.count):
            found = self._from_before_the_loop(event, use) or self._used_before(event, use)
            if found:
                return found
        return self._uneven_windows(event)

    def _still_moved(self, event: FrozenMoved) -> list[Finding]:
        return self.finding(
            event.stack,
            f"{names_of(event.names, event.count)} are frozen here, but {event.optimizer} still moves them: they keep a "
            "gradient, if only one of zeros, and the optimizer goes on with its momentum and weight decay",
            "set their .grad to None as well (zero_grad(set_to_none=True) does), or make a new optimizer without them",
            ((event.step, "this step moves them"), (event.stack[1:], "called from here")),
        )

    def _used_before(self, step: Step, use: Use) -> list[Finding]:
        stale, fresh = use.contributions[: use.used], use.contributions[use.used :]
        if not stale or not fresh:
            return []
        last = fresh[-1].stack
        uncalled = questions.uncalled(last[0].path, "zero_grad") if last else None
        name = _optimizer(step)
        who = f"`{name or step.optimizer}.step()`" if step.optimizer else "the update by hand"
        before = "evaluation of the closure" if step.evaluations > 1 else "step"
        each_time = use.used_stack == step.stack
        return self.finding(
            (last[0]._replace(line=uncalled),) if uncalled else last,
            f"{who} uses a sum of {len(use.contributions)} backward calls in the gradient of {_names(use)}, of which "
            f"{use.used} had been used by an earlier {before}: nothing cleared it in between",
            "call it: zero_grad() with parentheses" if uncalled else _clearing(step, use, name, len(fresh)),
            (
                (use.used_stack, "used here, each time" if each_time else "the step that used it already"),
                *((one.stack, f"{_root(one)} was added before that") for one in stale[-2:]),
                *((one.stack, f"{_root(one)} was added since") for one in fresh[-3:]),
                (step.stack, "this step uses the sum"),
            ),
        )

    def _from_before_the_loop(self, step: Step, use: Use) -> list[Finding]:
        """The first step of a loop finds a gradient that a backward call outside of the loop has left behind."""
        last = use.contributions[-1]
        if (use.used and use.used_stack[:1] == step.stack[:1]) or not _inside_loop_of(step.stack, last.stack):
            return []
        left = [one for one in use.contributions[:-1] if not _inside_loop_of(step.stack, one.stack)]
        if not left or len(left) < use.used:
            return []
        return self.finding(
            left[-1].stack,
            f"the gradient that {_root(left[-1])} leaves behind in {_names(use)} is added to that of the first step of a "
            "loop",
            "clear the gradients after this backward call (model.zero_grad()), or take them with torch.autograd.grad",
            ((last.stack, "the loop adds its own gradient here"), (step.stack, "and this step uses the sum")),
        )

    def _uneven_windows(self, step: Step) -> list[Finding]:
        """Some accumulation windows have more backward calls than the first: they begin with what an epoch left over."""
        use = max(step.uses, key=lambda use: use.count, default=None)
        if use is None or use.used or not step.optimizer or len({one.stack for one in use.contributions}) != 1:
            return []
        calls = use.contributions[0].stack
        sizes = self._windows.setdefault((step.stack, calls), [])
        if len(sizes) == _WINDOWS:
            return []
        sizes.append(len(use.contributions))
        first, most = sizes[0], max(sizes)
        guard = _counter(step.stack) if len(sizes) == _WINDOWS else ()
        if not guard or set(sizes) != {first, most} or not 1 < first < most < 2 * first:
            return []
        off_by_one = sizes[1:] == [first + 1] * (_WINDOWS - 1)
        if off_by_one:
            what = f"the first step sums {first} backward calls, each later one {most}: the counter is off by one, and what"
            mend = f"count so that each window has {most} calls"
        else:
            what = f"steps sum {first} backward calls, but some {most}: what"
            mend = "make a step, or clear the gradients, after the last batch of an epoch as well"
        return self.finding(
            guard,
            f"{what} an epoch leaves over is added to the first window of the next one",
            f"{mend}; the test is `{syntax.line_text(*guard[0].place)}`",
            ((calls, "the calls that are summed"), (step.stack, "the step that uses the sum")),
            Level.WARNING,
        )


def _names(use: Use) -> str:
    shown = ", ".join(f"`{name}`" for name in use.leaves[:2])
    return shown if use.count <= 2 else f"{shown} and {use.count - 2} more"


def _root(one: Contribution) -> str:
    return expression(one.stack, one.root)


def _clearing(step: Step, use: Use, name: str, fresh: int) -> str:
    where = "before this backward call" if fresh == 1 else "after the step"
    if step.evaluations:
        where = "at the start of the closure"
    return f"put {f'`{name}.zero_grad()`' if name else f'`{use.leaves[0]}.grad = None` or zero_grad()'} {where}"


def _optimizer(step: Step) -> str:
    """What the user calls the optimizer: `opt` in `opt.step()`, also in `scaler.step(opt)`."""
    found = syntax.call(step.stack[0], ("step",)) if step.stack and step.optimizer else None
    if found is None or not isinstance(found.func, ast.Attribute):
        return ""
    return ast.unparse(found.args[0] if found.args and not step.evaluations else found.func.value)


def _inside_loop_of(step: Stack, call: Stack) -> bool:
    """Whether the call ran within the innermost loop around the step, as far down as the two share their frames."""
    depth = shared_depth(step, call)
    if not depth:
        return False
    mine, theirs = step[-depth], call[-depth]
    deeper = any(syntax.loop(site.path, site.line) for site in step[: len(step) - depth])
    loop = syntax.loop(mine.path, mine.line)
    return not deeper and (loop is None or syntax.in_loop(loop, theirs.line))


def _is_remainder(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)


def _counter(stack: Stack) -> Stack:
    """The `if` with a remainder in its test that decides whether the step is made; the divisor must stay the same."""
    for depth, site in enumerate(stack):
        found = syntax.guard(site.path, site.line)
        divisors = [node.right for node in ast.walk(found.test) if _is_remainder(node)] if found is not None else []
        if found is not None and divisors and not any(questions.changes(site.path, one) for one in divisors):
            header = type(site)(site.path, found.lineno, site.function)
            return (header, *stack[depth + 1 :])
    return ()
