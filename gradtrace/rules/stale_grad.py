"""A step uses gradients that an earlier step already used, or that were computed outside of the training loop.

Why it matters
    backward() accumulates into .grad, it does not replace it. If nothing clears the gradients between two steps, the second
    step uses the sum of the old and the new gradient. The loss still falls for a while, which hides the bug.

Bad
    for x, y in data:
        loss_fn(model(x), y).backward()
        optimizer.step()  # nothing calls zero_grad()

Good
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

The finding is at the last backward call that added to the used gradient; where evaluation calls backward, at that call;
where gradients are accumulated on purpose and another step uses them too early, at that step. Micro-batches, several
losses before one step, and zero_grad() anywhere between two steps are fine.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeGuard, TypeVar

from gradtrace.model.events import Contribution, End, Event, Step, Use
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Site, Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import at_line, shared_depth, shared_frames, uncalled
from gradtrace.rules.judging.evidence import FOLLOWED, TWICE, oldest_beyond
from gradtrace.rules.judging.naming import expression, names_of, receiver
from gradtrace.source import questions, syntax

#: accumulation windows looked at before uneven ones are called a fault
_WINDOWS = 4

#: the step and the backward call that it uses again
_Pair: TypeAlias = tuple[Stack, Stack]
_K = TypeVar("_K")


@dataclass(slots=True)
class _OptimizerSteps:
    """Where one optimizer makes its steps."""

    #: the step before, and the first backward call that its gradients summed
    last: Stack = ()
    first: int = -1
    #: steps after which the gradients were cleared, and after which the same gradients were used again
    ends: Counter[Stack] = field(default_factory=Counter)
    goes_on: Counter[Stack] = field(default_factory=Counter)
    #: findings that hold unless another step makes them look different
    pending: dict[_Pair, Finding] = field(default_factory=dict)
    #: whether the last step summed calls made in evaluation and in training; whether two in a row did, as where the two
    #: are summed on purpose; and what holds if they are not
    mixed: bool = False
    in_a_row: bool = False
    leftovers: dict[Site, Finding] = field(default_factory=dict)

    def count(self, step: Step, use: Use) -> None:
        mixed = len({one.evaluating for one in use.contributions}) > 1
        self.in_a_row |= mixed and self.mixed
        self.mixed = mixed
        first = use.contributions[0].call
        if self.last:
            (self.goes_on if first == self.first else self.ends)[self.last] += 1
        self.last, self.first = step.stack, first

    def whole_sum(self, early: Stack) -> Stack:
        """Where another step uses the whole sum, after which it is cleared, while it never is after the `early` step."""
        if self.ends[early] or self.goes_on[early] < TWICE:
            return ()
        for place, times in self.ends.items():
            if times >= TWICE and not self.goes_on[place]:
                return place
        return ()


class StaleGrad(Rule):
    id = "stale-grad"
    level = Level.ERROR
    events = (Step, End)
    needs = Needs(calls=2, steps=2)

    def __init__(self) -> None:
        #: sizes of the first accumulation windows, by the step's and the backward's place
        self._windows: dict[_Pair, list[int]] = {}
        self._places: dict[int, _OptimizerSteps] = {}

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, End):
            return [finding for one in self._places.values() for finding in self._finish(one)]
        if not isinstance(event, Step):
            return []
        finished: list[Finding] = []
        if event.optimizer and event.uses:
            places = self._places.setdefault(event.key, _OptimizerSteps())
            places.count(event, max(event.uses, key=lambda use: use.count))
            for one in oldest_beyond(FOLLOWED, self._places):
                finished += self._finish(one)
        return finished + self._judge(event)

    def _judge(self, event: Step) -> list[Finding]:
        sums = [use for use in event.uses if len(use.contributions) > 1]
        for use in sorted(sums, key=lambda use: -use.count):
            found = _about(use, self._from_before_the_loop(event, use))
            left = _about(use, self._left_by_evaluation(event, use))
            if left and (found or not event.optimizer):
                return left
            if left:
                return self._keep(self._places[event.key].leftovers, left[0].site, left)
            found = found or _about(use, self._used_before(event, use))
            if found:
                return self._held_back(event, use, found)
        return self._uneven_windows(event)

    @staticmethod
    def _keep(pending: dict[_K, Finding], key: _K, found: list[Finding]) -> list[Finding]:
        """Puts a finding off until the end of the run."""
        known = pending.get(key)
        pending[key] = replace(known, occurrences=known.occurrences + 1) if known else found[0]
        return []

    def _held_back(self, step: Step, use: Use, found: list[Finding]) -> list[Finding]:
        """Calls of one place may be summed on purpose: the end of the run shows which step is one too many."""
        calls = {one.stack for one in use.contributions}
        if not step.optimizer or step.evaluations or not use.used or len(calls) > 1 or not _has_rival(step.stack):
            return found
        return self._keep(self._places[step.key].pending, (step.stack, use.contributions[-1].stack), found)

    def _finish(self, places: _OptimizerSteps) -> Iterable[Finding]:
        """What is found of an optimizer when no more of its steps come."""
        if not places.in_a_row:
            yield from places.leftovers.values()
        for (step, calls), finding in places.pending.items():
            whole = places.whole_sum(step)
            if whole:
                yield from self._one_too_many(step, calls, whole, finding.occurrences)
            elif not any(places.whole_sum(early) == step for early in places.goes_on):
                yield finding

    def _one_too_many(self, step: Stack, calls: Stack, whole: Stack, times: int) -> list[Finding]:
        name = receiver(step) or "optimizer"
        other = f"the step in line {whole[0].line}" if whole[0].path == step[0].path else "another step"
        found = self.finding(
            step,
            f"this `{name}.step()` uses gradients that are still accumulating: {other} uses the same gradients "
            "again, before anything clears them",
            f"remove this step: {other} uses the whole sum",
            (
                (calls, "each of these backward calls adds to the sum"),
                (whole, "this step uses the whole sum, and the gradients are cleared after it"),
            ),
        )
        return [replace(one, occurrences=times) for one in found]

    def _used_before(self, step: Step, use: Use) -> list[Finding]:
        stale, fresh = use.contributions[: use.used], use.contributions[use.used :]
        if not stale or not fresh:
            return []
        last = fresh[-1].stack
        named = uncalled(last, "zero_grad")
        name = receiver(step.stack) if step.optimizer else ""
        who = f"`{name or step.optimizer}.step()`" if step.optimizer else "the manual update"
        before = "evaluation of the closure" if step.evaluations > 1 else "step"
        each_time = use.used_stack == step.stack
        return self.finding(
            named or last,
            f"{who} applies the gradient of {_names(use)} from {len(use.contributions)} backward calls; the first "
            f"{'was' if use.used == 1 else f'{use.used} were'} already applied by an earlier {before}, and nothing "
            f"cleared {'it' if use.used == 1 else 'them'} in between",
            "add the parentheses: `zero_grad()`" if named else _clearing(step, use, name, fresh),
            (
                (
                    use.used_stack,
                    "this step applies the sum, each time"
                    if each_time
                    else "this step already applied the earlier part",
                ),
                *((one.stack, f"{_root(one)} was added before that") for one in stale[-2:]),
                *((one.stack, f"{_root(one)} was added since") for one in fresh[-3:]),
                (step.stack, "this step applies the sum"),
            ),
        )

    def _left_by_evaluation(self, step: Step, use: Use) -> list[Finding]:
        """A backward call was made in evaluation mode, and a step in training uses its gradients."""
        fresh = use.contributions[use.used :]
        left = [one for one in fresh if one.evaluating]
        if not left or fresh[-1].evaluating:
            return []
        call = left[-1]
        name = receiver(step.stack) if step.optimizer else ""
        return self.finding(
            call.stack,
            f"{_root(call)} is backpropagated while the model is in evaluation mode, which leaves gradients in "
            f"{_names(use)}: the next `{name or step.optimizer or 'update'}"
            f"{'.step()' if step.optimizer else ''}` adds them to the gradients of training",
            "do not call backward() in evaluation, and run evaluation under torch.no_grad()",
            (
                (shared_frames(call.stack, step.stack), "evaluation runs from here"),
                (fresh[-1].stack, "training adds its own gradients here"),
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
            f"the gradient of {_root(left[-1])} stays in {_names(use)} and is added to the gradient of the first step of the "
            "loop",
            "clear the gradients after this backward call (model.zero_grad()), or compute them with torch.autograd.grad",
            (
                (shared_frames(left[-1].stack, step.stack), "called from here"),
                (last.stack, "the loop adds its own gradient here"),
                (step.stack, "this step uses the sum"),
            ),
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
            fix = f"count so that each window has {most} calls"
        else:
            what = f"steps sum {first} backward calls, but some {most}: what"
            fix = "also make a step, or clear the gradients, after the last batch of an epoch"
        return self.finding(
            guard,
            f"{what} remains at the end of an epoch is added to the first window of the next one",
            fix,
            ((calls, "these backward calls are summed"), (step.stack, "this step uses the sum")),
            Level.WARNING,
        )


def _has_rival(step: Stack) -> bool:
    """Whether the file makes a step of what has this optimizer's name on another line as well."""
    name = receiver(step)
    return bool(name) and len(questions.lines_calling(step[0].path, name.rpartition(".")[2], "step")) > 1


def _names(use: Use) -> str:
    return names_of(use.leaves, use.count)


def _root(one: Contribution) -> str:
    return expression(one.stack, one.root)


def _clearing(step: Step, use: Use, name: str, fresh: Sequence[Contribution]) -> str:
    """Where to clear, in the user's words."""
    what = f"call `{name}.zero_grad()`" if name else f"set `{use.leaves[0]}.grad = None` or call zero_grad()"
    if step.evaluations:
        return f"{what} at the start of the closure"
    if len(fresh) > 1:
        return f"{what} after the step"
    root = fresh[0].root
    return f"{what} before {f'`{root}.backward()`' if root.isidentifier() else 'this backward call'}"


def _inside_loop_of(step: Stack, call: Stack) -> bool:
    """Whether the call ran within the innermost loop around the step, as far down as the two share their frames."""
    depth = shared_depth(step, call)
    if not depth:
        return False
    mine, theirs = step[-depth], call[-depth]
    inner = step[: len(step) - depth]
    deeper = any(syntax.loop(site.path, site.line) or syntax.in_comprehension(site) for site in inner)
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
            return (at_line(site, found.lineno), *stack[depth + 1 :])
    return ()


def _about(use: Use, found: list[Finding]) -> list[Finding]:
    """The findings, with the leaves that they are about."""
    return [replace(one, about=use.leaves) for one in found]
