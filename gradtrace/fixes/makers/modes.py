"""Edits about training and evaluation: the mode of modules, and graphs that no backward call needs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gradtrace.fixes.place import FUNCTIONS, LOOPS, Candidate, Place, name_of, with_keyword


def train_again(place: Place) -> Iterator[Candidate]:
    """Back to training mode: after the evaluation, or at the head of the training loop."""
    if "train()" not in place.finding.help:
        return
    models: dict[str, None] = {}
    for name in ("eval", "train"):
        for call in place.file.calls(place.file.tree, name):
            if isinstance(call.func, ast.Attribute):
                models[place.file.source(call.func.value)] = None
    codes = [f"{model}.train()" for model in models]
    if len(codes) == 2:
        codes.append("\n".join(codes))
    for code in codes:
        title = f"call {' and '.join(code.split())} again"
        for statement in place.around:
            if not isinstance(statement, FUNCTIONS):
                yield from place.edit(title, place.file.insert_after(statement, code))
        for statement in place.around:
            for around in (place.file.around(statement, LOOPS), place.file.around(statement, FUNCTIONS)):
                if around is not None and any(place.file.calls(around, "backward")):
                    yield from place.edit(title, place.file.insert_in_body(around, code))
            yield from place.edit(title, _at_end(place, statement, code))


def _at_end(place: Place, statement: ast.stmt, code: str) -> str | None:
    """Where the function of the statement ends, after all that it computes."""
    function = place.file.around(statement, FUNCTIONS)
    if not isinstance(function, FUNCTIONS):
        return None
    last = function.body[-1]
    if not isinstance(last, ast.Return):
        return place.file.insert_after(last, code)
    computes = any(isinstance(node, ast.Call) for node in ast.walk(last))
    return None if computes else place.file.insert_before(last, code)


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
