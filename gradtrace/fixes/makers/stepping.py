"""Edits of the training loop: when gradients are cleared, clipped and used, and when a schedule goes on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.place import FUNCTIONS, LOOPS, Candidate, Place, in_parentheses, name_of

_CLIPPING = ("clip_grad_norm_", "clip_grad_value_")


def call_it(place: Place) -> Iterator[Candidate]:
    """`optimizer.zero_grad` and `optimizer.step` without parentheses."""
    for node in ast.walk(place.file.tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr in ("zero_grad", "step")
        ):
            source = place.file.source(node.value)
            yield from place.edit(f"call {source}()", place.file.replace(node.value, f"{source}()"))


def _is_superfluous(place: Place) -> bool:
    """Whether the step itself is what should go."""
    return "remove this step" in place.finding.help


def zero_before_backward(place: Place) -> Iterator[Candidate]:
    if _is_superfluous(place):
        return
    for optimizer in place.optimizers():
        for statement in place.statements("backward"):
            title = f"call {optimizer}.zero_grad() before the backward call"
            yield from place.edit(title, place.file.insert_before(statement, f"{optimizer}.zero_grad()"))


def zero_after_step(place: Place) -> Iterator[Candidate]:
    if _is_superfluous(place):
        return
    for optimizer in place.optimizers():
        for statement in place.statements("step"):
            title = f"call {optimizer}.zero_grad() after its step"
            yield from place.edit(title, place.file.insert_after(statement, f"{optimizer}.zero_grad()"))


def zero_elsewhere(place: Place) -> Iterator[Candidate]:
    """What is cleared somewhere in the file is also cleared before the related backward calls, and where the loop or
    function begins."""
    if _is_superfluous(place):
        return
    calls = [call for name in ("zero_grad",) for call in place.file.calls(place.file.tree, name)]
    clearing = dict.fromkeys(
        place.file.source(call) for call in calls if not place.file.source(call).startswith("self.")
    )
    clearing.update(dict.fromkeys(f"{optimizer}.zero_grad()" for optimizer in place.optimizers()))
    for code in clearing:
        for statement in place.around:
            yield from place.edit(f"call {code} before this", place.file.insert_before(statement, code))
        yield from place.edit(f"call {code} first", place.file.insert_in_body(place.function, code))
        for statement in place.around:
            yield from place.edit(f"call {code} after this", place.file.insert_after(statement, code))


def clear_by_hand(place: Place) -> Iterator[Candidate]:
    """Where no optimizer makes the steps: `.grad = None` for what is updated by hand."""
    for node in ast.walk(place.scope):
        if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
            statement = place.file.statement_of(node)
            if statement is not None:
                owner = place.file.source(node.value)
                yield from place.edit(f"clear {owner}.grad", place.file.insert_after(statement, f"{owner}.grad = None"))


def step_after_backward(place: Place) -> Iterator[Candidate]:
    for step in place.statements("step"):
        for backward in place.statements("backward"):
            if step.lineno < backward.lineno:
                yield from place.edit("step after the backward call", place.file.move(step, backward))


def step_into_condition(place: Place) -> Iterator[Candidate]:
    """A step that stands below an `if` which zeroes the gradients belongs into it; one above it as well, in front of
    the zeroing."""
    for step in place.statements("step"):
        for other in place.file.block(step):
            if isinstance(other, ast.If) and other.body and any(place.file.calls(other, "zero_grad")):
                title = f"step only where `{place.file.source(other.test)}`"
                yield from place.edit(title, place.file.move(step, other.body[-1]))
                yield from place.edit(title, _moved_in(place.file, step, other.body[0]))


def zero_into_condition(place: Place) -> Iterator[Candidate]:
    """Gradients that are cleared for each micro-batch are cleared where the step is made."""
    for zero in place.statements("zero_grad"):
        for step in place.statements("step"):
            if not isinstance(step, LOOPS) and step.lineno != zero.lineno:
                yield from place.edit("clear the gradients after the step", place.file.move(zero, step))


def _moved_in(file: SourceFile, statement: ast.stmt, before: ast.stmt) -> str | None:
    """The statement in front of one that stands below it, and deeper."""
    code = file.source_of(statement)
    text = file.insert_before(before, code)
    return _without(SourceFile(file.path, text), file, statement, 0)


def zero_earlier(place: Place) -> Iterator[Candidate]:
    for zero in place.statements("zero_grad"):
        for backward in place.statements("backward"):
            if backward.lineno < zero.lineno:
                text = place.file.insert_before(backward, place.file.source_of(zero))
                moved = _without(SourceFile(place.file.path, text), place.file, zero, 1)
                yield from place.edit("zero the gradients before the backward call", moved)
            for loop in (place.file.around(backward, LOOPS),):
                if isinstance(loop, LOOPS) and loop.lineno < zero.lineno:
                    moved = place.file.move_before(zero, loop)
                    yield from place.edit("zero the gradients once, before the loop", moved)


def _without(edited: SourceFile, file: SourceFile, statement: ast.stmt, lower: int) -> str | None:
    """The edited text without a statement of the old one that is now so many lines lower."""
    again = edited.statement_at(statement.lineno + lower)
    if again is not None and edited.source_of(again) == file.source_of(statement):
        return edited.delete(again)
    return None


def drop_zero(place: Place) -> Iterator[Candidate]:
    """A clearing that is one too many."""
    for statement in place.around:
        if isinstance(statement, ast.Expr) and any(place.file.calls(statement, "zero_grad")):
            yield from place.edit(f"remove `{place.file.source_of(statement)}`", place.file.delete(statement))


def drop_step(place: Place) -> Iterator[Candidate]:
    """A step that is one too many."""
    if not _is_superfluous(place) and "one step per backward call" not in place.finding.help:
        return
    statement = place.statement
    if isinstance(statement, ast.Expr) and any(place.file.calls(statement, "step")):
        yield from place.edit(f"remove `{place.file.source_of(statement)}`", place.file.delete(statement))


def drop_repeated(place: Place) -> Iterator[Candidate]:
    """A backward call from the same root as another one."""
    statement = place.statement
    if isinstance(statement, ast.Expr) and any(place.file.calls(statement, "backward")):
        yield from place.edit(f"remove `{place.file.source_of(statement)}`", place.file.delete(statement))


def add_step(place: Place) -> Iterator[Candidate]:
    """A step after the backward call for an optimizer that makes none, and that has none waiting for a condition."""
    if "step()" not in place.finding.help:
        return
    for node in ast.walk(place.file.tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        if isinstance(node.value, ast.Call) and "optim" in place.file.source(node.value.func).lower():
            name = place.file.source(node.targets[0])
            for backward in place.statements("backward"):
                code = f"{name}.step()"
                text = place.file.insert_after(backward, code)
                yield from place.edit(f"call {code} after the backward call", text)
                lines = SourceFile(place.file.path, text or "")
                again = lines.statement_at(backward.lineno)
                if again is not None:
                    both = lines.insert_before(again, f"{name}.zero_grad()")
                    yield from place.edit(f"call {name}.zero_grad() and {code}", both)


def scaler_step(place: Place) -> Iterator[Candidate]:
    """Through the GradScaler whose `scale()` the loss went through."""
    scalers = [call for call in place.file.calls(place.file.tree, "scale") if isinstance(call.func, ast.Attribute)]
    names = dict.fromkeys(
        place.file.source(call.func.value) for call in scalers if isinstance(call.func, ast.Attribute)
    )
    for statement in place.around:
        for call in place.file.calls(statement, "step"):
            if isinstance(call.func, ast.Attribute) and isinstance(statement, ast.Expr):
                optimizer = place.file.source(call.func.value)
                for scaler in names:
                    plain = place.file.replace_statement(statement, f"{scaler}.step({optimizer})")
                    yield from place.edit(f"step through {scaler}", plain)
                    both = f"{scaler}.step({optimizer})\n{scaler}.update()"
                    yield from place.edit(f"step through {scaler}", place.file.replace_statement(statement, both))
                    before = place.file.insert_before(statement, f"{scaler}.unscale_({optimizer})")
                    yield from place.edit("unscale the gradients before the step", before)


def step_at_end(place: Place) -> Iterator[Candidate]:
    """A step that waits for a full window is also made at the end of the loop: `or i + 1 == len(batches)`."""
    guard = place.statement
    loop = place.file.around(guard, (ast.For,)) if isinstance(guard, ast.If) else None
    if not isinstance(guard, ast.If) or not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return
    if name_of(loop.iter) == "enumerate" and isinstance(loop.target, ast.Tuple) and loop.iter.args:
        index, all_of = place.file.source(loop.target.elts[0]), f"len({place.file.source(loop.iter.args[0])})"
    elif name_of(loop.iter) == "range" and len(loop.iter.args) == 1:
        index, all_of = place.file.source(loop.target), place.file.source(loop.iter.args[0])
    else:
        return
    test = place.file.source(guard.test)
    code = f"{test} or {index} + 1 == {all_of}"
    yield from place.edit("also step at the end of the epoch", place.file.replace(guard.test, code))


def count_from_one(place: Place) -> Iterator[Candidate]:
    """The first window is as long as the others: `(i + 1) % n` for `i % n`, or the other way round."""
    for statement in place.around:
        for node in ast.walk(statement.test) if isinstance(statement, ast.If) else ():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
                left = node.left
                if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add) and ast.unparse(left.right) == "1":
                    name = place.file.source(left.left)
                    whole = place.file.source(node).replace(f"({place.file.source(left)})", name)
                    yield from place.edit(f"count {name} without + 1", place.file.replace(node, whole))
                else:
                    name = in_parentheses(place.file, left)
                    yield from place.edit(f"count {name} from 1", place.file.replace(left, f"({name} + 1)"))


# clipping


def clip_before_step(place: Place) -> Iterator[Candidate]:
    for clip in _clips(place):
        for step in place.statements("step"):
            for backward in place.statements("backward"):
                if step.lineno < clip.lineno and backward.lineno < step.lineno:
                    yield from place.edit("clip before the step", place.file.move(clip, backward))
                    yield from place.edit("clip before the step", place.file.move_before(clip, step))
                elif clip.lineno < backward.lineno:
                    yield from place.edit("clip after the backward call", place.file.move(clip, backward))


def _clips(place: Place) -> Iterator[ast.stmt]:
    if place.statement is not None:
        pair = place.file.around(place.statement, LOOPS)
        # a loop over parameters that clamps each
        if isinstance(pair, ast.For) and not any(place.file.calls(pair, "backward")):
            yield pair
        yield place.statement
    for name in _CLIPPING:
        yield from place.statements(name)


def unscale_before_clip(place: Place) -> Iterator[Candidate]:
    for name in _CLIPPING:
        for clip in place.statements(name):
            for optimizer in place.optimizers():
                for call in place.file.calls(place.file.tree, "scale"):
                    if isinstance(call.func, ast.Attribute):
                        scaler = place.file.source(call.func.value)
                        text = place.file.insert_before(clip, f"{scaler}.unscale_({optimizer})")
                        yield from place.edit("unscale the gradients before clipping them", text)


def clip_optimized(place: Place) -> Iterator[Candidate]:
    """Clips the parameters that an optimizer holds, instead of others."""
    for name in _CLIPPING:
        for clip in place.statements(name):
            for call in place.file.calls(clip, name):
                for given in dict.fromkeys(_held(place)):
                    if call.args:
                        text = place.file.replace(call.args[0], given)
                        yield from place.edit(f"clip {given}", text)


def _held(place: Place) -> Iterator[str]:
    for call in ast.walk(place.file.tree):
        if isinstance(call, ast.Call) and call.args and "optim" in place.file.source(call.func):
            yield place.file.source(call.args[0])


# schedules


def schedule_after_step(place: Place) -> Iterator[Candidate]:
    """The schedule goes on right after the optimizer's step, under the same condition."""
    statement = place.statement
    if statement is None or isinstance(statement, (*LOOPS, *FUNCTIONS)):
        return
    for step in place.statements("step"):
        if step is not statement:
            yield from place.edit("step the scheduler after the optimizer", place.file.move(statement, step))


def schedule_steps(place: Place) -> Iterator[Candidate]:
    """A schedule that is never stepped."""
    statement = place.statement
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        name = place.file.source(statement.targets[0])
        for step in place.statements("step"):
            yield from place.edit(f"call {name}.step() after the step", place.file.insert_after(step, f"{name}.step()"))


def divide_exactly(place: Place) -> Iterator[Candidate]:
    """A learning rate that an integer division has made 0."""
    for node in ast.walk(place.file.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            left, right = place.file.source(node.left), place.file.source(node.right)
            yield from place.edit(f"{left} / {right}", place.file.replace(node, f"{left} / {right}"))


def warm_up_above_zero(place: Place) -> Iterator[Candidate]:
    """A warm-up that starts at 0: `step / warmup` becomes `(step + 1) / warmup`."""
    for node in ast.walk(place.file.tree):
        function = place.file.around(node, (*FUNCTIONS, ast.Lambda))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.left, ast.Name):
            arguments = function.args.args if isinstance(function, (*FUNCTIONS, ast.Lambda)) else []
            if any(one.arg == node.left.id for one in arguments):
                text = place.file.replace(node.left, f"({node.left.id} + 1)")
                yield from place.edit("start the warm-up above 0", text)
