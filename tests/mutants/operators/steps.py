"""Faults in the order of zero_grad, backward and step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants.faults import HERE, Fault
from mutants.operators.base import (
    backwards,
    backwards_near,
    between,
    clippings,
    closes_over,
    marked,
    move,
    operator,
    optimizers,
    owner,
    reorder,
    same_function,
    siblings,
    simple,
    statement_lines,
    stepped,
    steps,
    want,
    zeroings,
)
from mutants.source import Program


@operator("late", "some")
def drop_zero_grad(program: Program) -> Iterator[Fault]:
    """The gradients are not cleared: the next step moves along old ones too."""
    for zeroing in zeroings(program):
        if _again(program, zeroing):
            continue
        wants = want("stale-grad", "leaked-grad", "repeated-backward", at=backwards_near(program, zeroing))
        yield Fault((program.delete(zeroing),), (wants,), needs="values", line=zeroing.lineno)


def _again(program: Program, zeroing: ast.stmt) -> bool:
    """Whether the same function clears the same gradients at another line too."""
    others = [z for z in zeroings(program) if z is not zeroing and program.function(z) is program.function(zeroing)]
    return any(program.source(z) == program.source(zeroing) for z in others)


@operator("late", "some")
def zero_grad_before_step(program: Program) -> Iterator[Fault]:
    """The gradients are cleared between backward and step."""
    for step in steps(program):
        for zeroing in same_function(program, simple(program, "zero_grad"), step):
            caller = owner(zeroing)
            assert caller is not None
            if program.function(zeroing) is not program.function(step):
                continue
            if program.kind(caller) == "optimizer" and program.source(caller) != stepped(program, step):
                continue
            wants = want("cleared-grad", "step-without-grad", "never-stepped", "no-effect-step")
            yield Fault(tuple(move(program, zeroing, step, behind=False)), (wants,), needs="values", line=step.lineno)


@operator("late", "some")
def zero_grad_in_window(program: Program) -> Iterator[Fault]:
    """The gradients are cleared for each micro-batch of an accumulated step."""
    for zeroing in simple(program, "zero_grad"):
        inside = program.parent(zeroing)
        if not isinstance(inside, ast.If) or "%" not in program.source(inside.test):
            continue
        for backward in backwards_near(program, zeroing):
            if program.loop(backward) is program.loop(zeroing):
                edits = move(program, zeroing, backward, behind=False)
                yield Fault(tuple(edits), (want("cleared-grad"),), needs="values", line=zeroing.lineno)


@operator()
def zero_grad_before_loop(program: Program) -> Iterator[Fault]:
    """The gradients are cleared once, before the loop."""
    for zeroing in simple(program, "zero_grad"):
        loop = program.loop(zeroing)
        if loop is None or not program.has_own_lines(loop) or _again(program, zeroing):
            continue
        edits = (program.delete(zeroing), program.before(loop, program.source(zeroing)))
        wants = want("stale-grad", "leaked-grad", "repeated-backward", at=backwards_near(program, zeroing))
        yield Fault(edits, (wants,), needs="values", line=zeroing.lineno)


@operator("late", "some")
def swap_step_and_backward(program: Program) -> Iterator[Fault]:
    """The step comes before the backward call whose gradients it is to use."""
    for backward in backwards(program):
        for step in steps(program):
            if not siblings(program, backward, step) or program.start(step) < program.start(backward):
                continue
            block = between(program, backward, step)
            if len(block) > 4 or any(s in backwards(program) or s in steps(program) for s in block[1:-1]):
                continue
            middle = "".join(statement_lines(program, s) for s in block[1:-1] if s not in clippings(program))
            clips = "".join(statement_lines(program, s) for s in block[1:-1] if s in clippings(program))
            first = marked(statement_lines(program, backward))
            text = marked(statement_lines(program, step)) + first + clips + middle
            rules = "step-without-grad", "cleared-grad", "never-stepped", "stale-grad", "late-clip", "leaked-grad"
            yield Fault((reorder(program, backward, step, text),), (want(*rules),), needs="values", line=step.lineno)


@operator()
def drop_step(program: Program) -> Iterator[Fault]:
    """An optimizer makes no step."""
    for step in steps(program):
        if closes_over(program, step):
            continue
        rules = "never-stepped", "cleared-grad", "stale-grad", "unneeded-retain", "unoptimized-parameter"
        made = [o for o in optimizers(program) if program.source(o.targets[0]).split(".")[-1] in stepped(program, step)]
        places = (
            *backwards_near(program, step),
            *(made or optimizers(program)),
            *same_function(program, zeroing_calls(program), step),
        )
        yield Fault((program.delete(step),), (want(*rules, at=places),), needs="values", line=step.lineno)


def zeroing_calls(program: Program) -> list[ast.Expr]:
    return [z for z in zeroings(program) if isinstance(z, ast.Expr)]


@operator("late", "some")
def step_twice(program: Program) -> Iterator[Fault]:
    """The step is made twice with the same gradients."""
    for step in steps(program):
        if closes_over(program, step):
            continue
        twice = program.after(step, HERE + program.source(step))
        wants = want("step-without-grad", "stale-grad", at=(step,))
        yield Fault((twice,), (wants,), needs="values", line=step.lineno)


@operator()
def drop_backward(program: Program) -> Iterator[Fault]:
    """A loss is computed and never backpropagated."""
    for backward in backwards(program):
        places: list[ast.AST] = [*same_function(program, steps(program), backward), *_made(program, backward)]
        rules = "unused-loss", "step-without-grad", "unreached-parameter", "never-stepped", "grad-before-backward"
        more = want("late-clip", at=tuple(same_function(program, clippings(program), backward)))
        yield Fault(
            (program.delete(backward),), (want(*rules, at=tuple(places)), more), needs="values", line=backward.lineno
        )


def _made(program: Program, backward: ast.Expr) -> list[ast.Assign]:
    """The assignments to the loss in the same function."""
    caller = owner(backward)
    names = {n.id for n in ast.walk(caller) if isinstance(n, ast.Name)} if caller is not None else set()
    found = []
    for node in program.walk():
        if isinstance(node, ast.Assign) and program.function(node) is program.function(backward):
            targets = {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            if targets & names:
                found.append(node)
    return found


@operator("late", "some")
def repeat_backward_retained(program: Program) -> Iterator[Fault]:
    """The same loss is backpropagated twice, with retain_graph=True."""
    for backward in backwards(program):
        call = backward.value
        assert isinstance(call, ast.Call)
        if call.args or call.keywords:
            continue
        first = program.source(backward).removesuffix("()") + "(retain_graph=True)"
        second = program.after(backward, HERE + program.source(backward))
        edits = (program.replace(backward, HERE + first), second)
        yield Fault(
            edits, (want("repeated-backward", "freed-graph", "stale-grad"),), needs="values", line=backward.lineno
        )


@operator("late", "some")
def repeat_backward_freed(program: Program) -> Iterator[Fault]:
    """The same loss is backpropagated twice, and its graph is gone."""
    for backward in backwards(program):
        second = program.after(backward, HERE + program.source(backward))
        wants = want("freed-graph", "repeated-backward", at=(backward,))
        yield Fault((second,), (wants,), needs="values", line=backward.lineno)


@operator("late", "some")
def clip_after_step(program: Program) -> Iterator[Fault]:
    """Gradients are clipped when they are used up."""
    for clip in clippings(program):
        for step in steps(program):
            if siblings(program, clip, step) and program.start(clip) < program.start(step):
                edits = tuple(move(program, clip, step, behind=True))
                yield Fault(edits, (want("late-clip"),), needs="values", line=clip.lineno)
                break


@operator("late", "some")
def clip_before_backward(program: Program) -> Iterator[Fault]:
    """Gradients are clipped before there are any."""
    for clip in clippings(program):
        for backward in reversed(backwards(program)):
            if siblings(program, clip, backward) and program.start(backward) < program.start(clip):
                edits = tuple(move(program, clip, backward, behind=False))
                yield Fault(edits, (want("late-clip"),), needs="values", line=clip.lineno)
                break


@operator("late", "some")
def drop_unscale(program: Program) -> Iterator[Fault]:
    """Gradients are clipped while the GradScaler's scale is on them."""
    for unscale in simple(program, "unscale_"):
        clips = tuple(same_function(program, clippings(program), unscale))
        if clips:
            yield Fault((program.delete(unscale),), (want("late-clip", at=clips),), needs="values", line=unscale.lineno)


@operator()
def zero_learning_rate(program: Program) -> Iterator[Fault]:
    """An optimizer's learning rate is 0: its steps change nothing."""
    for made in optimizers(program):
        call = made.value
        assert isinstance(call, ast.Call)
        step_lines = tuple(steps(program))
        for keyword in call.keywords:
            if keyword.arg == "lr":
                edit = program.replace(keyword.value, HERE + "0.0")
                wants = want("no-effect-step", at=(made, *step_lines))
                yield Fault((edit,), (wants,), needs="values", line=made.lineno)


@operator()
def drop_accumulation_division(program: Program) -> Iterator[Fault]:
    """The loss of a micro-batch is not divided by the number of them."""
    for node in program.walk():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
            continue
        fact = program.fact(node)
        name = program.source(node.right)
        if not fact or not fact.live or not fact.scalar or not isinstance(node.right, ast.Name):
            continue
        if any(
            isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) and program.source(n.right) == name
            for n in program.walk()
        ):
            edit = program.replace(node, HERE + program.source(node.left))
            wants = want("uneven-accumulation", at=tuple(backwards(program)))
            yield Fault((edit,), (wants,), needs="values", line=node.lineno)


@operator()
def scheduler_first(program: Program) -> Iterator[Fault]:
    """The scheduler's step comes before the optimizer's."""
    for step in steps(program):
        for schedule in _schedules(program):
            if siblings(program, step, schedule) and program.start(step) < program.start(schedule):
                edits = tuple(move(program, schedule, step, behind=False))
                yield Fault(edits, (want("scheduler-steps"),), needs="values", line=schedule.lineno)


@operator()
def scheduler_before_training(program: Program) -> Iterator[Fault]:
    """The scheduler's step of an epoch comes before its training."""
    for schedule in _schedules(program):
        body = program.body(schedule)
        assert isinstance(schedule.value, ast.Call)
        loop = program.loop(schedule)
        if loop is None or schedule.value.args or schedule not in loop.body or body.index(schedule) == 0:
            continue
        first = loop.body[0]
        edits = tuple(move(program, schedule, first, behind=False))
        yield Fault(edits, (want("scheduler-steps"),), needs="values", line=schedule.lineno)


@operator()
def scheduler_never(program: Program) -> Iterator[Fault]:
    """A scheduler is made and never makes a step."""
    made = tuple(
        s
        for s in program.statements()
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and program.kind(s.value) == "scheduler"
    )
    returned = tuple(
        s for s in program.statements() if isinstance(s, ast.Return) and "lr_scheduler" in program.source(s)
    )
    for schedule in _schedules(program):
        wants = want("scheduler-steps", at=(*made, *returned))
        yield Fault((program.delete(schedule),), (wants,), needs="values", line=schedule.lineno)


@operator()
def scheduler_per_batch(program: Program) -> Iterator[Fault]:
    """The scheduler makes a step for each micro-batch instead of each step."""
    for schedule in _schedules(program):
        inside = program.parent(schedule)
        if isinstance(inside, ast.If) and "%" in program.source(inside.test) and program.has_own_lines(inside):
            edits = tuple(move(program, schedule, inside, behind=True))
            yield Fault(edits, (want("scheduler-steps"),), needs="values", line=schedule.lineno)


def _schedules(program: Program) -> list[ast.Expr]:
    found = []
    for statement in simple(program, "step"):
        caller = owner(statement)
        if caller is not None and program.kind(caller) in ("scheduler", "ReduceLROnPlateau"):
            found.append(statement)
    return found


@operator("late", "some")
def gradient_read_before_backward(program: Program) -> Iterator[Fault]:
    """The gradients are read before the backward call that makes them."""
    for backward in backwards(program):
        for made in optimizers(program):
            name = stepped_by(program, backward, made)
            if name:
                line = f"grad_norm = sum({HERE}p.grad.norm().item() for g in {name}.param_groups for p in g['params'])"
                wants = want("grad-before-backward", "step-without-grad", at=(backward,))
                yield Fault((program.before(backward, HERE + line),), (wants,), line=backward.lineno)
                break


def stepped_by(program: Program, backward: ast.Expr, made: ast.Assign) -> str:
    """The name of an optimizer that makes a step in the same function, if it is the one that `made` makes."""
    for step in steps(program):
        name = stepped(program, step)
        if program.function(step) is program.function(backward) and name.split(".")[-1] in program.source(
            made.targets[0]
        ):
            return name
    return ""
