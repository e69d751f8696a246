"""A step uses gradients that an earlier step has used already, or that come from before the training loop.

Why it bites
    backward() adds to .grad, it does not replace it. Where nothing clears the gradients between two steps, the second step
    moves along the sum of the old and the new gradient. The loss still falls for a while, which hides the fault.

Bad
    for x, y in data:
        loss_fn(model(x), y).backward()
        optimizer.step()                   # nobody calls zero_grad()

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
from collections import deque
from collections.abc import Iterable

from gradtrace.model import source
from gradtrace.model.events import Event, Step, Use
from gradtrace.model.finding import Finding, Level
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.places import shared_depth

#: accumulation windows looked at before a first one that is too short is called a fault
_WINDOWS = 3


class StaleGrad(Rule):
    id = "stale-grad"
    level = Level.ERROR

    def __init__(self) -> None:
        #: sizes of the first accumulation windows, by the step's and the backward's place
        self._windows: dict[tuple[Stack, Stack], deque[int]] = {}

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Step):
            return []
        for use in sorted(event.uses, key=lambda use: -use.count):
            found = self._used_before(event, use) or self._from_before_the_loop(event, use)
            if found:
                return found
        return self._short_first_window(event)

    def _used_before(self, step: Step, use: Use) -> list[Finding]:
        fresh = use.contributions[use.used :]
        if not use.used or not fresh:
            return []
        last = fresh[-1]
        within_step = use.used_stack == step.stack or step.evaluations > 1
        where = "before this backward call" if not step.evaluations else "at the start of the closure"
        who = f"`{step.optimizer}.step`" if step.optimizer else "the update by hand"
        message = (
            f"{who} uses a sum of {len(use.contributions)} backward calls in the gradient of {_names(use)}, "
            f"of which {use.used} had been used already: nothing cleared the gradients in between"
        )
        return self.finding(
            last.stack,
            message,
            f"clear the gradients {where}: {_clearing(step, use)}",
            (
                (use.used_stack, "an earlier step used the gradient here" if not within_step else "used here, each time"),
                *((one.stack, f"`{one.root}` had been added to it here") for one in use.contributions[: use.used][-2:]),
                *((one.stack, f"`{one.root}` added to it as well") for one in fresh[:-1][-2:]),
                (step.stack, "this step uses the sum"),
            ),
        )

    def _from_before_the_loop(self, step: Step, use: Use) -> list[Finding]:
        """The first step of a loop finds a gradient that a backward call outside of the loop has left behind."""
        last = use.contributions[-1]
        if use.used or not _inside_loop_of(step.stack, last.stack):
            return []
        left = [one for one in use.contributions[:-1] if not _inside_loop_of(step.stack, one.stack)]
        if not left:
            return []
        return self.finding(
            left[0].stack,
            f"the gradient that `{left[0].root or 'this call'}` leaves behind in {_names(use)} is added to that of the first "
            "training step",
            "clear the gradients after this backward call (model.zero_grad()), or take them with torch.autograd.grad",
            ((last.stack, "the first training step adds its own gradient here"), (step.stack, "and uses the sum here")),
        )

    def _short_first_window(self, step: Step) -> list[Finding]:
        """Of all accumulation windows the first has one backward call less: the counter is off by one."""
        use = max(step.uses, key=lambda use: use.count, default=None)
        if use is None or use.used or not step.optimizer or len({one.stack for one in use.contributions}) != 1:
            return []
        sizes = self._windows.setdefault((step.stack, use.contributions[0].stack), deque(maxlen=_WINDOWS + 1))
        if len(sizes) == _WINDOWS + 1:
            return []
        sizes.append(len(use.contributions))
        first, *others = sizes
        guard = _counter(step.stack)
        if len(sizes) <= _WINDOWS or set(others) != {first + 1} or first + 1 < 3 or not guard:
            return []
        return self.finding(
            guard,
            f"the first step sums {first} backward calls, each later one {first + 1}: the counter of the accumulation "
            "window is off by one, and gradients left at the end of an epoch get into the next",
            f"count from the other end in `{source.line_text(*guard[0].place)}`, so that each window has {first + 1} calls",
            ((use.contributions[0].stack, "the calls that are summed"), (step.stack, "the step that uses the sum")),
            Level.WARNING,
        )


def _names(use: Use) -> str:
    shown = ", ".join(f"`{name}`" for name in use.leaves[:2])
    return shown if use.count <= 2 else f"{shown} and {use.count - 2} more"


def _clearing(step: Step, use: Use) -> str:
    leaf = use.leaves[0]
    if not step.optimizer:
        return f"`{leaf}.grad = None` or model.zero_grad()"
    return f"zero_grad() of the optimizer or module that holds `{leaf}`"


def _inside_loop_of(step: Stack, call: Stack) -> bool:
    """Whether the call ran within the innermost loop around the step, as far down as the two share their frames."""
    depth = shared_depth(step, call)
    if not depth:
        return False
    mine, theirs = step[-depth], call[-depth]
    deeper = any(source.loop(site.path, site.line) for site in step[: len(step) - depth])
    loop = source.loop(mine.path, mine.line)
    return not deeper and (loop is None or source.in_loop(loop, theirs.line))


def _counter(stack: Stack) -> Stack:
    """The `if` with a remainder in its test that decides whether the step is made."""
    for depth, site in enumerate(stack):
        found = source.guard(site.path, site.line)
        if found is not None and any(isinstance(node, ast.Mod) for node in ast.walk(found.test)):
            header = type(site)(site.path, found.lineno, site.function)
            return (header, *stack[depth + 1 :])
    return ()


