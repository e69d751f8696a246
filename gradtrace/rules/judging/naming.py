"""How a finding names things: losses, steps, parameters, writes, in the words of the user's source as far as it is known."""

from __future__ import annotations

import ast

from gradtrace.model.events import Given, OptimizerStep, Overwritten
from gradtrace.model.site import Site, Stack
from gradtrace.source import questions, syntax, texts

#: longest piece of source in a message
_LONGEST = 60


def describe(site: Site) -> str:
    """The statement that stands there, for a message."""
    return syntax.line_text(site.path, site.line)


def expression(stack: Stack, root: str) -> str:
    """`` `loss` ``, the root of a backward call in the user's words, as far as they are known."""
    single = root.startswith("[") and root.endswith("]") and "," not in root
    return f"`{root[1:-1] if single else root}`" if root else "this tensor"


def receiver(step: Stack) -> str:
    """What the user calls the optimizer: `opt` in `opt.step()`, also in `scaler.step(opt)` and `opt.step(closure)`."""
    found = syntax.call(step[0], ("step",)) if step else None
    if found is None or not isinstance(found.func, ast.Attribute):
        return ""
    given = found.args[0] if found.args else None
    scaled = isinstance(given, (ast.Name, ast.Attribute)) and "scaler" in ast.unparse(found.func.value).lower()
    return ast.unparse(given if scaled and given is not None else found.func.value)


def step_call(step: OptimizerStep) -> str:
    """`opt.step()`, the step as the user writes it."""
    return f"{receiver(step.stack) or step.optimizer}.step()"


def grad_read(site: Site) -> str:
    """The expression whose .grad the statement at `site` reads, if it is one alone."""
    return attribute_read(site, "grad")


def attribute_read(site: Site, name: str) -> str:
    """The expression of which the statement at `site` reads this attribute, if it is one alone."""
    found = syntax.statement(site.path, site.line, site.column)
    nodes = ast.walk(found) if found is not None else ()
    reads = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == name]
    exact = [node for node in reads if (node.lineno, node.col_offset) == (site.line, site.column)]
    texts = {ast.unparse(node.value) for node in exact or reads}
    return texts.pop() if len(texts) == 1 else ""


def names_of(names: tuple[str, ...], count: int) -> str:
    """A few names of many, in words: `` `a` ``, `` `a` and `b` `` or `` `a`, `b` and 2 more ``."""
    shown = [f"`{name}`" for name in names[:2] if name]
    if not shown:
        return "a parameter" if count == 1 else f"{count} parameters"
    if count > len(shown):
        return f"{', '.join(shown)} and {count - len(shown)} more"
    return " and ".join(shown)


def them(count: int) -> str:
    """The pronoun for so many named before."""
    return "it" if count == 1 else "them"


def these(names: tuple[str, ...], count: int) -> str:
    """What a sentence calls them that comes after their names."""
    return names_of(names, count) if count == 1 else "these parameters"


def leaves_of(one: Given) -> str:
    """The leaves that a call gave gradients to."""
    return names_of(one.leaves, one.count)


def spoken_count(names: tuple[str, ...], count: int) -> int:
    """How many things a message speaks of: where one or two names are all there are, each may be a whole module."""
    return count if len(names) > 2 or not names else len(names)


def loss_of(one: Given, otherwise: str = "this call") -> str:
    """What a backward call was made on: `` `loss` ``."""
    return f"`{one.root}`" if one.root else otherwise


def assigned_name(stack: Stack) -> str:
    """The variable that the statement assigns, if it is a single one; else empty."""
    names = questions.assigned(stack[0]) if stack else ()
    return names[0] if len(names) == 1 else ""


def writing(stack: Stack) -> str:
    """The statement that writes, quoted."""
    return _quoted(stack[0], whole=True) if stack else "a write"


def evaluated(stack: Stack) -> str:
    """The operation that ran there, quoted."""
    return _quoted(stack[0], whole=False) if stack else "an operation"


def what_was_saved(event: Overwritten) -> str:
    """The tensor and who saved it, as the object of a sentence."""
    by = evaluated(event.built)
    if event.name:
        return f"`{event.name}` after {by} saved it for backward"
    shape = f" of shape {list(event.shape)}" if event.shape else ""
    return f"a tensor{shape} that {by} saved for backward"


def request(event: Overwritten) -> str:
    """The backward call."""
    return f"the backward of `{event.root}`" if event.root else "the backward call"


def _quoted(site: Site, whole: bool) -> str:
    """What is evaluated at a place, quoted; only the statement's beginning where it is long."""
    found = syntax.statement(site.path, site.line, site.column)
    if whole and isinstance(found, (ast.Assign, ast.AugAssign, ast.Expr)):
        text = ast.unparse(found)
    else:
        text = _segment(site) or syntax.line_text(site.path, site.line)
    if not text:
        return f"line {site.line}"
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[: _LONGEST - 4].rstrip()} ...`"


def _segment(site: Site) -> str:
    """The expression that was being evaluated, where it is on one line."""
    if site.column is None or site.end_column is None or site.end_line != site.line:
        return ""
    return texts.line(site.path, site.line)[site.column : site.end_column].strip()
