"""Edits about training and evaluation: the mode of modules, and graphs that no backward call needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradtrace.fixes.place import FUNCTIONS, LOOPS, Candidate, Place, name_of, with_keyword


def train_again(place: Place) -> Iterator[Candidate]:
    """Back to training mode: after the evaluation, or at the head of the training loop."""
    models: dict[str, None] = {}
    for name in ("eval", "train"):
        for call in place.file.calls(place.file.tree, name):
            if isinstance(call.func, ast.Attribute):
                models[place.file.source(call.func.value)] = None
    for model in models:
        code = f"{model}.train()"
        title = f"put `{model}` back into training mode"
        for statement in place.around:
            if not isinstance(statement, FUNCTIONS):
                yield from place.edit(title, place.file.insert_after(statement, code))
        for statement in place.around:
            loop = place.file.around(statement, LOOPS)
            if loop is not None:
                yield from place.edit(title, place.file.insert_in_body(loop, code))
            function = place.file.around(statement, FUNCTIONS)
            if function is not None:
                yield from place.edit(title, place.file.insert_in_body(function, code))
                yield from place.edit(title, place.file.insert_after(function.body[-1], code))  # type: ignore[attr-defined]


def follow_mode(place: Place) -> Iterator[Candidate]:
    """F.dropout that follows eval()."""
    for statement in place.around:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and name_of(node).startswith("dropout"):
                if not any(one.arg == "training" for one in node.keywords):
                    text = place.file.replace(node, with_keyword(place.file, node, "training=self.training"))
                    yield from place.edit("pass training=self.training", text)
                for keyword in node.keywords:
                    if keyword.arg == "training":
                        text = place.file.replace(keyword.value, "self.training")
                        yield from place.edit("pass training=self.training", text)


def loop_without_gradients(place: Place) -> Iterator[Candidate]:
    """Evaluates with gradients off: the whole loop around the call, or the function."""
    at: ast.AST | None = place.statement
    while at is not None:
        if isinstance(at, LOOPS):
            yield from place.edit("evaluate with gradients off", place.file.put_under([at], "with torch.no_grad():"))
        if isinstance(at, FUNCTIONS):
            yield from place.edit("evaluate with gradients off", place.file.insert_before(at, "@torch.no_grad()"))
        at = place.file.around(at, (*LOOPS, *FUNCTIONS))
