"""Candidate edits for a finding, from its sites and the source around them. Which of them hold is for the trials to say."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from gradtrace.fixes.edits import SourceFile
from gradtrace.model.finding import Finding
from gradtrace.model.site import Site

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CLIPPING = ("clip_grad_norm_", "clip_grad_value_")
_SOFTMAX = ("softmax", "log_softmax", "sigmoid", "Softmax", "Sigmoid")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One edit of one file: what it does, in words, and the whole new text."""

    title: str
    path: str
    text: str


class Place:
    """Where a finding points to: its statement, and the training loop around it."""

    def __init__(self, finding: Finding, site: Site, file: SourceFile) -> None:
        self.finding = finding
        self.site = site
        self.file = file
        self.statement = file.statement_at(site.line)

    @property
    def scope(self) -> ast.AST:
        """The innermost loop or function around the statement; the file where there is none."""
        found = self.file.around(self.statement, (*_LOOPS, *_FUNCTIONS)) if self.statement is not None else None
        return found if found is not None else self.file.tree

    @property
    def function(self) -> ast.AST:
        found = self.file.around(self.statement, _FUNCTIONS) if self.statement is not None else None
        return found if found is not None else self.file.tree

    def statements(self, method: str) -> list[ast.stmt]:
        """The statements in the scope, else in the function, that call a method."""
        for within in (self.scope, self.function):
            found = []
            for call in self.file.calls(within, method):
                statement = self.file.statement_of(call)
                if statement is not None and statement not in found and not isinstance(statement, _FUNCTIONS):
                    found.append(statement)
            if found:
                return found
        return []

    def optimizers(self) -> list[str]:
        """The expressions whose `step()` is called in the file, as they are written near the finding first."""
        found: list[str] = []
        for within in (self.scope, self.function, self.file.tree):
            for call in self.file.calls(within, "step"):
                if isinstance(call.func, ast.Attribute):
                    name = self.file.source(call.func.value)
                    if call.args and not isinstance(call.args[0], ast.Call):
                        name = self.file.source(call.args[0])  # scaler.step(optimizer)
                    if name not in found and not re.search("sched|scaler|env", name, re.IGNORECASE):
                        found.append(name)
            if found:
                return found
        return found

    def edit(self, title: str, text: str | None) -> Iterator[Candidate]:
        if text is not None and text != self.file.text:
            yield Candidate(title, self.file.path, text)


Maker: TypeAlias = Callable[[Place], Iterator[Candidate]]


# zeroing and stepping


def zero_before_backward(place: Place) -> Iterator[Candidate]:
    for optimizer in place.optimizers():
        for statement in place.statements("backward"):
            title = f"call {optimizer}.zero_grad() before the backward call"
            yield from place.edit(title, place.file.insert_before(statement, f"{optimizer}.zero_grad()"))


def zero_after_step(place: Place) -> Iterator[Candidate]:
    for optimizer in place.optimizers():
        for statement in place.statements("step"):
            title = f"call {optimizer}.zero_grad() after its step"
            yield from place.edit(title, place.file.insert_after(statement, f"{optimizer}.zero_grad()"))


def step_after_backward(place: Place) -> Iterator[Candidate]:
    for step in place.statements("step"):
        for backward in place.statements("backward"):
            if step.lineno < backward.lineno:
                yield from place.edit("step after the backward call", place.file.move(step, backward))


def step_into_condition(place: Place) -> Iterator[Candidate]:
    """A step that stands below an `if` which zeroes the gradients belongs into it."""
    for step in place.statements("step"):
        block = place.file.block(step)
        for before in block[: block.index(step)]:
            if isinstance(before, ast.If) and before.body:
                yield from place.edit("step only where the `if` holds", place.file.move(step, before.body[-1]))


def zero_earlier(place: Place) -> Iterator[Candidate]:
    for zero in place.statements("zero_grad"):
        for backward in place.statements("backward"):
            if backward.lineno < zero.lineno:
                text = place.file.insert_before(backward, place.file.source_of(zero))
                yield from _without(place, "zero the gradients before the backward call", text, zero)


def zero_after(place: Place) -> Iterator[Candidate]:
    for zero in place.statements("zero_grad"):
        for step in place.statements("step"):
            if zero.lineno < step.lineno:
                yield from place.edit("zero the gradients after the step", place.file.move(zero, step))


def drop_statement(place: Place) -> Iterator[Candidate]:
    if isinstance(place.statement, ast.Expr):
        yield from place.edit(f"remove `{place.file.source_of(place.statement)}`", place.file.delete(place.statement))


def _without(place: Place, title: str, text: str, statement: ast.stmt) -> Iterator[Candidate]:
    """The text, without a statement of the old one that is now a line lower."""
    moved = SourceFile(place.file.path, text)
    again = moved.statement_at(statement.lineno + 1)
    if again is not None and moved.source_of(again) == place.file.source_of(statement):
        yield from place.edit(title, moved.delete(again))


# clipping


def clip_before_step(place: Place) -> Iterator[Candidate]:
    for name in _CLIPPING:
        for clip in place.statements(name):
            for step in place.statements("step"):
                for backward in place.statements("backward"):
                    if step.lineno < clip.lineno and backward.lineno < step.lineno:
                        yield from place.edit("clip before the step", place.file.move(clip, backward))
                    elif clip.lineno < backward.lineno:
                        yield from place.edit("clip after the backward call", place.file.move(clip, backward))


def unscale_before_clip(place: Place) -> Iterator[Candidate]:
    for name in _CLIPPING:
        for clip in place.statements(name):
            for optimizer in place.optimizers():
                for scaler in _scalers(place):
                    text = place.file.insert_before(clip, f"{scaler}.unscale_({optimizer})")
                    yield from place.edit("unscale the gradients before clipping them", text)


def _scalers(place: Place) -> list[str]:
    calls = place.file.calls(place.function, "scale")
    return [place.file.source(call.func.value) for call in calls if isinstance(call.func, ast.Attribute)]


# graphs


def retain_earlier(place: Place) -> Iterator[Candidate]:
    for site in (place.site, *(related.site for related in place.finding.related)):
        statement = place.file.statement_at(site.line) if site.path == place.file.path else None
        for call in place.file.calls(statement, "backward") if statement is not None else ():
            if not any(one.arg == "retain_graph" for one in call.keywords):
                yield from place.edit(
                    "keep the graph for the later call", _with_keyword(place, call, "retain_graph=True")
                )


def detach_carried(place: Place) -> Iterator[Candidate]:
    """Detaches what is carried from one iteration to the next: each name that the statement reads and writes."""
    for name in _named_in_help(place):
        for statement in filter(None, (place.statement, *_statements_of_related(place))):
            code = f"{name} = {name}.detach()"
            yield from place.edit(f"detach `{name}` before it is used again", place.file.insert_before(statement, code))


def _named_in_help(place: Place) -> list[str]:
    return list(dict.fromkeys(re.findall(r"`([A-Za-z_][\w.]*) = \1\.detach\(\)`", place.finding.help)))


def _statements_of_related(place: Place) -> list[ast.stmt]:
    lines = [related.site.line for related in place.finding.related if related.site.path == place.file.path]
    return [found for line in lines if (found := place.file.statement_at(line)) is not None]


def drop_option(place: Place) -> Iterator[Candidate]:
    """Leaves out retain_graph or create_graph."""
    for name in ("retain_graph", "create_graph"):
        for method in ("backward", "grad"):
            for call in place.file.calls(place.statement, method) if place.statement is not None else ():
                yield from place.edit(f"leave {name} out", _without_keyword(place, call, name))


def create_graph(place: Place) -> Iterator[Candidate]:
    for call in place.file.calls(place.statement, "grad") if place.statement is not None else ():
        if not any(one.arg == "create_graph" for one in call.keywords):
            yield from place.edit("keep the graph of the gradient", _with_keyword(place, call, "create_graph=True"))


def _with_keyword(place: Place, call: ast.Call, keyword: str) -> str:
    source = place.file.source(call).rstrip()
    inside = source[:-1].rstrip().rstrip(",")
    comma = "" if inside.endswith("(") else ", "
    return place.file.replace(call, f"{inside}{comma}{keyword})")


def _without_keyword(place: Place, call: ast.Call, name: str) -> str | None:
    kept = [one for one in call.keywords if one.arg != name]
    if len(kept) == len(call.keywords):
        return None
    given = [place.file.source(one) for one in call.args]
    for one in kept:
        value = place.file.source(one.value)
        given.append(f"{one.arg}={value}" if one.arg else f"**{value}")
    kept_text = ", ".join(given)
    return place.file.replace(call, f"{place.file.source(call.func)}({kept_text})")


# what is kept


def keep_number(place: Place) -> Iterator[Candidate]:
    """Keeps the number instead of the tensor with its graph."""
    for statement in filter(None, (place.statement, *_statements_of_related(place))):
        for value in _kept(statement):
            source = place.file.source(value)
            written = source if isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({source})"
            for method, title in (("item", "keep the number of"), ("detach", "detach")):
                text = place.file.replace(value, f"{written}.{method}()")
                yield from place.edit(f"{title} `{source}`", text)


def _kept(statement: ast.stmt) -> list[ast.expr]:
    """The values that a statement adds to a variable or a container."""
    if isinstance(statement, (ast.AugAssign, ast.Assign)):
        return [statement.value]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return [one for one in statement.value.args if not isinstance(one, ast.Starred)]
    return []


# cuts


def drop_cut(place: Place) -> Iterator[Candidate]:
    """Takes away what cuts the path on this line."""
    statement = place.statement
    if statement is None:
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            value = place.file.source(node.func.value)
            if node.func.attr in ("detach", "item", "cpu", "numpy") and not node.args:
                yield from place.edit(f"drop .{node.func.attr}()", place.file.replace(node, value))
            if node.func.attr == "sample":
                yield from place.edit("use rsample()", place.file.replace(node.func, f"{value}.rsample"))
            if node.func.attr in ("tensor", "as_tensor") and node.args:
                argument = place.file.source(node.args[0])
                yield from place.edit("use the tensor itself", place.file.replace(node, argument))
        if isinstance(node, ast.Attribute) and node.attr == "data":
            yield from place.edit("drop .data", place.file.replace(node, place.file.source(node.value)))
    yield from _drop_no_grad(place, statement)


def _drop_no_grad(place: Place, statement: ast.stmt) -> Iterator[Candidate]:
    at: ast.AST | None = statement
    while at is not None and not isinstance(at, ast.With):
        at = place.file.around(at, (ast.With,))
    if isinstance(at, ast.With) and len(at.items) == 1:
        context = place.file.source(at.items[0].context_expr)
        if "no_grad" in context:
            text = place.file.replace(at.items[0].context_expr, "torch.enable_grad()")
            yield from place.edit("do not switch gradients off", text)
        if "inference_mode" in context:
            text = place.file.replace(at.items[0].context_expr, "torch.no_grad()")
            yield from place.edit("use no_grad instead of inference_mode", text)


# parameters


def register(place: Place) -> Iterator[Candidate]:
    """Puts modules and parameters of a plain list or dict into a container that registers them."""
    for node in ast.walk(place.file.tree):
        if not isinstance(node, (ast.List, ast.ListComp, ast.Dict, ast.DictComp)):
            continue
        holder = place.file.statement_of(node)
        if not isinstance(holder, (ast.Assign, ast.AnnAssign)) or holder.value is not node:
            continue
        if not place.file.source_of(holder).startswith("self."):
            continue
        shape = "Dict" if isinstance(node, (ast.Dict, ast.DictComp)) else "List"
        kinds = f"Module{shape}", f"Parameter{shape}"
        for kind in kinds:
            text = place.file.replace(node, f"torch.nn.{kind}({place.file.source(node)})")
            yield from place.edit(f"register them in an nn.{kind}", text)


def optimizer_later(place: Place) -> Iterator[Candidate]:
    """Makes the optimizer after the layers that it is to hold."""
    for node in ast.walk(place.file.tree):
        if not isinstance(node, ast.Call) or not re.search(r"parameters\(\)", ast.unparse(node)):
            continue
        statement = place.file.statement_of(node)
        if not isinstance(statement, ast.Assign) or "optim" not in place.file.source_of(statement).lower():
            continue
        block = place.file.block(statement)
        for later in block[block.index(statement) + 1 :]:
            if isinstance(later, (ast.Assign, ast.Expr)):
                yield from place.edit("make the optimizer after the layers", place.file.move(statement, later))


def hold_more(place: Place) -> Iterator[Candidate]:
    """Gives the optimizer the parameters of the modules that the finding names."""
    names = {name.rpartition(".")[0] or name for name in place.finding.about}
    roots = dict.fromkeys(name.split(".")[0] for name in names if name)
    for node in ast.walk(place.file.tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if "optim" not in place.file.source(node.func).lower():
            continue
        given = place.file.source(node.args[0])
        for root in roots:
            text = place.file.replace(node.args[0], f"[*{given}, *{root}.parameters()]")
            yield from place.edit(f"give the optimizer the parameters of `{root}`", text)


# shapes and values


def drop_softmax(place: Place) -> Iterator[Candidate]:
    for node in ast.walk(place.file.tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in _SOFTMAX:
            continue
        if name[0].isupper():
            yield from place.edit(f"drop the {name}", place.file.replace(node, "torch.nn.Identity()"))
        elif isinstance(node.func, ast.Attribute) and not _is_module(node.func.value):
            yield from place.edit(f"drop {name}()", place.file.replace(node, place.file.source(node.func.value)))
        elif node.args:
            yield from place.edit(f"drop {name}()", place.file.replace(node, place.file.source(node.args[0])))


def _is_module(node: ast.expr) -> bool:
    return ast.unparse(node) in ("F", "torch", "functional", "nn.functional", "torch.nn.functional")


def match_shapes(place: Place) -> Iterator[Candidate]:
    """Drops or adds the last dimension of one side of a loss."""
    if place.statement is None:
        return
    sides: list[ast.expr] = []
    for node in ast.walk(place.statement):
        if isinstance(node, ast.Call):
            sides += [one for one in node.args if isinstance(one, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))]
        elif isinstance(node, ast.BinOp):
            sides += [node.left, node.right]
    for side in sides:
        source = place.file.source(side)
        written = f"({source})" if isinstance(side, ast.BinOp) else source
        for method in ("squeeze(-1)", "unsqueeze(-1)"):
            yield from place.edit(f"{written}.{method}", place.file.replace(side, f"{written}.{method}"))


def out_of_place(place: Place) -> Iterator[Candidate]:
    """Writes to a new tensor instead of in place."""
    for statement in filter(None, (place.statement, *_statements_of_related(place))):
        if isinstance(statement, ast.AugAssign):
            target, value = place.file.source(statement.target), place.file.source(statement.value)
            sign = _SIGNS.get(type(statement.op), "")
            if sign:
                text = place.file.replace_statement(statement, f"{target} = {target} {sign} ({value})")
                yield from place.edit(f"make a new `{target}`", text)
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and _is_in_place(node.func):
                target = place.file.source(node.func.value)
                arguments = ", ".join(place.file.source(one) for one in node.args)
                made = f"{target}.{node.func.attr.rstrip('_')}({arguments})"
                alone = isinstance(statement, ast.Expr) and statement.value is node
                text = place.file.replace(node, f"{target} = {made}" if alone else made)
                yield from place.edit(f"make a new `{target}`", text)
            if isinstance(node, ast.keyword) and node.arg == "inplace":
                yield from place.edit("not in place", place.file.replace(node.value, "False"))
    for node in ast.walk(place.file.tree):
        if isinstance(node, ast.keyword) and node.arg == "inplace" and ast.unparse(node.value) == "True":
            yield from place.edit("not in place", place.file.replace(node.value, "False"))


def _is_in_place(node: ast.expr) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and re.fullmatch(r"[a-z]\w*[a-z0-9]_", node.attr) is not None


_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def without_gradients(place: Place) -> Iterator[Candidate]:
    if place.statement is not None:
        text = place.file.put_under([place.statement], "with torch.no_grad():")
        yield from place.edit("with gradients off", text)


def loop_without_gradients(place: Place) -> Iterator[Candidate]:
    """Evaluates with gradients off: the whole loop around the call."""
    at: ast.AST | None = place.statement
    while at is not None:
        if isinstance(at, _LOOPS):
            yield from place.edit("evaluate with gradients off", place.file.put_under([at], "with torch.no_grad():"))
        at = place.file.around(at, _LOOPS)


def safe_slope(place: Place) -> Iterator[Candidate]:
    """Keeps the argument of a root or logarithm, or a divisor, away from 0."""
    for statement in filter(None, (place.statement, *_statements_of_related(place))):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name, value = node.func.attr, place.file.source(node.func.value)
                if name in ("sqrt", "log", "norm", "rsqrt") and not _is_module(node.func.value):
                    text = place.file.replace(node.func.value, f"({value} + 1e-8)")
                    yield from place.edit(f"add an epsilon before {name}()", text)
                elif name in ("sqrt", "log", "norm", "rsqrt") and node.args:
                    argument = place.file.source(node.args[0])
                    text = place.file.replace(node.args[0], f"{argument} + 1e-8")
                    yield from place.edit(f"add an epsilon before {name}()", text)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                divisor = place.file.source(node.right)
                text = place.file.replace(node.right, f"({divisor} + 1e-8)")
                yield from place.edit("add an epsilon to the divisor", text)


def reduce_loss(place: Place) -> Iterator[Candidate]:
    for call in place.file.calls(place.statement, "backward") if place.statement is not None else ():
        if isinstance(call.func, ast.Attribute) and not call.args:
            value = place.file.source(call.func.value)
            for name in ("mean", "sum"):
                yield from place.edit(
                    f"backward from the {name}", place.file.replace(call.func.value, f"{value}.{name}()")
                )


def train_again(place: Place) -> Iterator[Candidate]:
    """Back to training mode: after the evaluation, or at the head of the training loop."""
    models: dict[str, None] = {}
    for call in place.file.calls(place.file.tree, "eval"):
        if isinstance(call.func, ast.Attribute):
            models[place.file.source(call.func.value)] = None
    for model in models:
        for within in (place.scope, place.function):
            body = getattr(within, "body", [])
            if body:
                text = place.file.insert_before(body[0], f"{model}.train()")
                yield from place.edit(f"put `{model}` back into training mode", text)


#: in the order in which they are tried
MAKERS: Mapping[str, tuple[Maker, ...]] = {
    "stale-grad": (step_after_backward, step_into_condition, zero_before_backward, zero_after_step),
    "repeated-backward": (drop_statement, zero_before_backward),
    "cleared-grad": (step_after_backward, zero_earlier, zero_after, drop_statement),
    "leaked-grad": (zero_before_backward, zero_after_step),
    "step-without-grad": (step_after_backward, drop_statement),
    "late-clip": (clip_before_step, unscale_before_clip),
    "freed-graph": (detach_carried, retain_earlier, drop_statement),
    "unneeded-retain": (drop_option,),
    "missing-create-graph": (create_graph,),
    "graph-growth": (keep_number, detach_carried),
    "no-graph": (drop_cut,),
    "unreached-parameter": (drop_cut,),
    "dead-loss-term": (drop_cut,),
    "unoptimized-parameter": (register, optimizer_later, hold_more),
    "double-softmax": (drop_softmax,),
    "broadcast-loss": (match_shapes,),
    "inplace-saved": (out_of_place,),
    "hidden-write": (out_of_place,),
    "inplace-leaf": (without_gradients, out_of_place),
    "nonfinite-grad": (safe_slope,),
    "nonscalar-backward": (reduce_loss,),
    "unused-graph": (loop_without_gradients, without_gradients),
    "wrong-mode": (train_again,),
}


def candidates(finding: Finding, files: Mapping[str, SourceFile]) -> list[Candidate]:
    """All edits to try for a finding, each text once, the likeliest first."""
    sites = [finding.site, *(related.site for related in finding.related)]
    places = [Place(finding, site, files[site.path]) for site in sites if site.path in files]
    found: dict[tuple[str, str], Candidate] = {}
    for make in MAKERS.get(finding.rule, ()):
        for place in places:
            for candidate in make(place):
                if _parses(candidate.text):
                    found.setdefault((candidate.path, candidate.text), candidate)
    return list(found.values())


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
