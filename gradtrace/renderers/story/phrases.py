"""What the facts of a story read like: one or a few sentences for each, the same in every output."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, TypeVar

from gradtrace.model.finding import Finding
from gradtrace.model.story import (
    Asked,
    Built,
    Fact,
    Graded,
    Left,
    Made,
    Mode,
    Number,
    Printed,
    Raised,
    Required,
    Series,
    Stepped,
    StoryStep,
    Value,
    Written,
)
from gradtrace.renderers.wording import count, elide, place, printable

F = TypeVar("F", bound=Fact)
#: names listed one by one, facts of one kind described one by one, characters of a formula, lines of what was printed
_NAMES, _FACTS, _FORMULA, _LINES = 4, 2, 64, 8
#: characters of an error's first line, and of a line that was printed
_ERROR, _WIDE = 110, 160
#: variables named from which something was printed
_READ = 6


def number(value: Number) -> str:
    """Four digits; what is exactly zero, NaN or infinite says so, and nothing else does."""
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, complex):
        return f"{value:.4g}" if cmath.isfinite(value) else str(value)
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.4g}"
    return text if "." in text or "e" in text else f"{text}.0"


def numbers(value: Value) -> str:
    """`[2.42]`, `0.0852`, `[64, 10] from -2.1 to 3.4, mean 0.2`."""
    extra = "".join(f" {word}" for word in (_dtype(value), f"on {value.device}" * (value.device != "cpu")) if word)
    if value.numbers is not None:
        return _nested(value.numbers, value.shape) + extra
    if value.zero:
        return f"{list(value.shape)}{extra} all exactly 0"
    wild = [f"{amount:,} {word}" for amount, word in ((value.nan, "NaN"), (value.inf, "inf")) if amount]
    extent = []
    if value.low is not None and value.low == value.high:
        extent = [f"all {number(value.low)}"]
    elif value.low is not None and value.high is not None and value.mean is not None:
        extent = [f"from {number(value.low)} to {number(value.high)}, mean {number(value.mean)}"]
    if value.dtype == "bool" and value.mean is not None:
        extent = [f"{value.mean:.0%} True"]
    return " ".join([f"{list(value.shape)}{extra}", ", ".join([*wild, *extent])]).rstrip()


def _brief(value: Value | None) -> str:
    """For a change from one value to another: of a large one only how large its numbers are."""
    if value is None:
        return "None"
    if value.numbers is not None or value.size is None or value.zero or value.nan or value.inf:
        return numbers(value)
    return f"up to {number(value.size)} {list(value.shape)}"


def _dtype(value: Value) -> str:
    plain = value.numbers is not None and value.dtype in ("int64", "bool")
    return "" if plain or value.dtype == "float32" else value.dtype


def _nested(given: Sequence[Number], shape: Sequence[int]) -> str:
    if not shape:
        return number(given[0])
    if len(shape) == 1 or not given:
        return f"[{', '.join(number(one) for one in given)}]"
    size = len(given) // shape[0]
    return f"[{', '.join(_nested(given[at * size : (at + 1) * size], shape[1:]) for at in range(shape[0]))}]"


def listed(names: Sequence[str], total: int = 0, noun: str = "leaf", last: str = "and", part: str = "parameter") -> str:
    """`w, b and c`; of many, how many there are in what: `4 parameters of generator, 2 of head and b`. `part` is what they
    are of it."""
    total = total or len(names)
    owners: dict[str, list[str]] = {}
    for name in names:
        owner, dot, _ = name.partition(".")
        owners.setdefault(owner if dot else name, []).append(name)
    if total > len(names) or (len(owners) > _NAMES and total > _NAMES):
        return f"{count(total, noun)} ({', '.join(list(owners)[:2])}, …)"
    groups = [[f"{len(many)} {part}s of {_owner(many)}"] if len(many) > 2 else many for many in owners.values()]
    return _joined([name for group in groups for name in group], last)


def _owner(names: Sequence[str]) -> str:
    """What all of these parameters are in: `trainer.disc`."""
    paths = [name.split(".")[:-1] for name in names]
    shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return ".".join(parts[0] for parts in shared)


def _joined(words: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def of_step(step: StoryStep, named: set[tuple[str, ...]]) -> list[str]:
    """What a statement changed, sentence by sentence. `named` are sets of leaves that were named before: it grows."""
    found: list[str] = []
    for kind, describe in _DESCRIBED.items():
        facts = [fact for fact in _worth_saying(step) if type(fact) is kind]
        whole = _WHOLE.get(kind)
        if whole is not None and len(facts) > _FACTS:
            found += whole(facts)
        else:
            for fact in facts:
                found += map(printable, describe(fact))
        if kind is Made:
            found += _flows((fact for fact in step.facts if isinstance(fact, Made)), named)
    return found


def _worth_saying(step: StoryStep) -> Iterator[Fact]:
    """The facts of a step without those that another one says as well."""
    cut = {fact.cut for fact in step.facts if isinstance(fact, Made)}
    printing = any(isinstance(fact, Printed) for fact in step.facts)
    request_failed = any(isinstance(fact, Asked) and fact.error for fact in step.facts)
    for fact in step.facts:
        if isinstance(fact, Left) and (printing or fact.op in cut):
            continue
        if isinstance(fact, Raised) and request_failed:
            fact = replace(fact, error="")  # the request has named it
        yield fact


def _flows(facts: Iterable[Made], named: set[tuple[str, ...]]) -> Iterator[str]:
    """Where gradients flow back to, of what is the first to lead to just these leaves."""
    for fact in facts:
        if fact.reached and fact.reaches not in named:
            named.add(fact.reaches)
            yield f"gradients flow back from {fact.name} to {listed(fact.reaches, fact.reached)}"


def of_finding(finding: Finding, main: str) -> list[str]:
    """A fault: its name and message, the other lines that matter, the fix."""
    related = [f"{place(one.site, main)}: {one.message}" for one in finding.related]
    fix = [f"help: {finding.help}"] if finding.help else []
    times = f" ({finding.occurrences} times)" if finding.occurrences > 1 else ""
    return [f"{finding.level}[{finding.rule}]: {finding.message}{times}", *related, *fix]


def of_series(series: Series) -> str:
    """`w.grad 4.0, 6.4, 8.0 … 31.2, grows`."""
    trend = ", grows" if series.rises else ", falls" if series.falls else ""
    first = ", ".join(number(one) for one in series.first)
    if series.count <= len(series.first):
        return f"{series.name} {first}"
    return f"{series.name} {first} … {number(series.last)}{trend}"


def _made(fact: Made) -> list[str]:
    head = f"{fact.name} = {numbers(fact.value)}"
    if fact.same:
        return [f"{fact.name} is the same tensor as {fact.same}"]
    sentences = [f"{head}   {_nature(fact)}".rstrip()]
    if fact.view or fact.shares:
        sentences.append(
            f"{fact.name} {f'is a view of {fact.view}' if fact.view else f'shares its memory with {fact.shares}'}"
        )
    return sentences


def _nature(fact: Made) -> str:
    if fact.cut == "constant gradient":
        return "returned, not stored in any .grad; it has no graph of its own"
    if fact.cut:
        return f"{_cut(fact)}: no gradient will flow back"
    if fact.freed_line:
        return f"its graph was freed at line {fact.freed_line}"
    if fact.op:
        return f"from {_formula(fact)}"
    if fact.requires_grad and not fact.leaf:
        return "from a graph that is too large to look at"
    if fact.requires_grad:
        return "a parameter: requires grad" if fact.parameter else "a leaf that requires grad"
    return "does not require grad"


def _cut(fact: Made) -> str:
    sources = f" from {_joined(fact.cut_from[:_NAMES])}" if fact.cut_from else ""
    match fact.cut:
        case "no_grad":
            return f"computed{sources} while gradients were off"
        case "not differentiable":
            return f"computed{sources} by an operation that has no gradient"
        case _:
            return f"cut off{sources} by {fact.cut}"


def _formula(fact: Made) -> str:
    if not fact.formula:
        return fact.op
    return fact.formula if len(fact.formula) <= _FORMULA else f"{fact.op}(…)"


def _built(fact: Built) -> list[str]:
    if fact.optimizer:
        return [
            f"{fact.name}, {_article(fact.class_name)}, will update {listed(fact.parameters, fact.count, 'parameter')}"
        ]
    if not fact.count:
        return [f"{fact.name} is {_article(fact.class_name)} without parameters"]
    names = f": {_joined(fact.parameters)}" if fact.count <= 2 else ""
    size = f"{count(fact.count, 'parameter')} ({count(fact.numbers, 'number')})"
    return [f"{fact.name} is {_article(fact.class_name)} with {size}{names}"]


def _article(kind: str) -> str:
    spelled = kind[1:2].isupper() and kind[:1] in "AEFHILMNORSX"
    return f"{'an' if spelled or kind[:1] in 'AEIO' else 'a'} {kind}"


def _left(fact: Left) -> list[str]:
    if fact.op == "detach()":
        return [f"{fact.source}.detach() cuts the graph off: no gradient will flow back to {fact.source}"]
    return [f"{fact.source}.{fact.op} gives plain numbers: no gradient will flow back through them"]


def _asked(fact: Asked) -> list[str]:
    names = [leaf for leaf, _ in fact.reached]
    root = fact.root or "the result"
    if fact.error:
        asked = f"computes {'gradients' if fact.request == 'grad' else 'the gradient'} of {root}"
        return [f"{asked}, and fails: {_short(fact.error)}"]
    if fact.request == "grad":
        sentences = [f"computes d {root} / d {listed(names)}" if names else f"computes gradients of {root}"]
    else:
        none = "no leaf at all" if fact.whole else "leaves beyond the part of its graph that was looked at"
        sentences = [f"computes the gradient of {root} with respect to {listed(names) if names else none}"]
    sentences += [*_paths(fact.paths), *_sums(fact.reached)]
    if fact.missed:
        sentences.append(f"not reached, and given no gradient: {listed(fact.missed)}")
    return [*sentences, *_graph(fact)]


def _paths(paths: Iterable[str]) -> Iterator[str]:
    """`loss → prediction → w and b`: those that differ in their ends alone in one, those without a stop left out."""
    ends: dict[str, list[str]] = {}
    for path in paths:
        before, _, leaf = path.rpartition(" → ")
        if "→" in before:
            ends.setdefault(before, []).append(leaf)
    for before, leaves in ends.items():
        yield f"path: {before} → {listed(leaves)}"


def _sums(reached: Iterable[tuple[str, int]]) -> Iterator[str]:
    by_uses: dict[int, list[str]] = {}
    for leaf, uses in reached:
        if uses > 1:
            by_uses.setdefault(uses, []).append(leaf)
    for uses, leaves in by_uses.items():
        one = len(leaves) == 1
        verb, its = ("is used", "its gradient is the sum") if one else ("are each used", "their gradients are sums")
        yield f"{listed(leaves)} {verb} by {uses} operations: {its} of {uses} parts"


def _short(error: str) -> str:
    first = error.split("\n")[0]
    return first if len(first) <= _ERROR else f"{first[:_ERROR].rsplit(' ', 1)[0]} …"


def _graph(fact: Asked) -> list[str]:
    if fact.retain_graph or fact.create_graph:
        option = "create_graph=True" if fact.create_graph else "retain_graph=True"
        spent = listed(fact.spent, noun="variable")
        return [f"graph kept ({option}): {spent} can go backward again" if spent else f"graph kept ({option})"]
    spent = listed(fact.spent, noun="variable", last="or")
    return [f"graph freed: no second backward through {spent}" if spent else "graph freed"]


def _graded(fact: Graded) -> list[str]:
    before, after = (_brief(fact.before), _brief(fact.after)) if fact.before else ("None", _whole_or_none(fact.after))
    words = {
        "new": "",
        "accumulated": f", accumulated, not replaced{_difference(fact.before, fact.after)}",
        "cleared": ", cleared",
        "zeroed": ", set to zero",
        "written": ", changed in place",
    }
    unused = ", which no step had used" * fact.unused
    zero = ", exactly zero" if fact.change == "new" and fact.after is not None and fact.after.zero else ""
    return [f"{fact.name}.grad: {before} → {after}{words.get(fact.change, '')}{unused}{zero}"]


def _whole_or_none(value: Value | None) -> str:
    return "None" if value is None else numbers(value)


def _difference(before: Value | None, after: Value | None) -> str:
    if before is None or after is None or before.numbers is None or after.numbers is None:
        return ""
    if len(before.numbers) != len(after.numbers) or not before.numbers:
        return ""
    parts = [new - old for new, old in zip(after.numbers, before.numbers, strict=True)]
    return f" (added {_nested(parts, after.shape)})"


def _written(fact: Written) -> list[str]:
    text = f"{fact.name}: {_brief(fact.before)} → {_brief(fact.after)}"
    if fact.step:
        return [text]
    old, new = fact.versions
    text += f", written in place (version {old} → {new})" if new > old else ", written where autograd does not see it"
    if fact.saved_by:
        return [
            text,
            f"{fact.saved_by} (line {fact.saved_line}) had saved the old numbers of {fact.name} for its backward",
        ]
    return [text]


def _required(fact: Required) -> list[str]:
    return [f"{fact.name} {'now requires grad' if fact.requires_grad else 'no longer requires grad'}"]


def _stepped(fact: Stepped) -> list[str]:
    return [f"{fact.optimizer} updates the parameters by their gradients"]


def _mode(fact: Mode) -> list[str]:
    return [
        "gradients are on again" if fact.enabled else "gradients are off: what is computed from here on has no graph"
    ]


def _printed(fact: Printed) -> list[str]:
    lines = [elide(line, _WIDE) for line in fact.text.rstrip("\n").split("\n")]
    more = [f"… {count(len(lines) - _LINES, 'more line')}"] if len(lines) > _LINES else []
    names = [name for name in fact.names if name != "self"][:_READ]
    source = f"   (from {_joined(names)})" if names else ""
    return [
        f"prints: {lines[0]}{source if len(lines) == 1 else ''}",
        *(f"        {line}" for line in lines[1:_LINES]),
        *more,
    ]


def _raised(fact: Raised) -> list[str]:
    raised = [f"raises {_short(fact.error)}"] if fact.error else []
    return raised + [f"state: {_made(state)[0]}" for state in fact.states]


def _many_graded(facts: Sequence[Graded]) -> list[str]:
    sentences = []
    words = {"new": "get their first gradient", "accumulated": "get more added to the gradient they already have"}
    words |= {
        "written": "have their gradient changed in place",
        "cleared": "have their gradient cleared (None)",
        "zeroed": "have their gradient set to zero",
    }
    for change, text in words.items():
        same = [fact for fact in facts if fact.change == change]
        if same:
            unused = ", which no step had used" * all(fact.unused for fact in same)
            values = [(fact.name, fact.after) for fact in same]
            sentences.append(f"{listed([fact.name for fact in same])} {text}{unused}{_extremes(values)}")
    return sentences


def _many_written(facts: Sequence[Written]) -> list[str]:
    how = "are updated" if facts[0].step else "are written in place"
    sentences = []
    for part in ("parameter", "buffer", "tensor"):
        same = [fact for fact in facts if fact.part == part]
        if same:
            names = listed([fact.name for fact in same], noun="tensor", part=part)
            verb = how if len(same) > 1 else how.replace("are", "is")
            sentences.append(f"{names} {verb}{_extremes([(fact.name, fact.after) for fact in same])}")
    return sentences


def _many_made(facts: Sequence[Made]) -> list[str]:
    named = [text for fact in facts[:_FACTS] for text in _made(fact)[:1]]
    return [
        *named,
        f"and {count(len(facts) - _FACTS, 'more tensor')}: {listed([fact.name for fact in facts[_FACTS:]], noun='variable')}",
    ]


def _extremes(values: Iterable[tuple[str, Value | None]]) -> str:
    """The largest of several, and those that are odd."""
    known = [(name, value) for name, value in values if value is not None]
    sizes = [(value.size, name) for name, value in known if value.size is not None]
    text = f"; the largest number is {number(max(map(abs, (s for s, _ in sizes))))}" if sizes else ""
    for word, mark in (("exactly zero", "zero"), ("NaN", "nan"), ("infinite", "inf")):
        names = [name for name, value in known if getattr(value, mark)]
        text += f"; {word} in {listed(names)}" if names else ""
    return text


#: in the order of the sentences
_DESCRIBED: dict[type, Callable[[Any], list[str]]] = {
    Asked: _asked,
    Stepped: _stepped,
    Graded: _graded,
    Written: _written,
    Required: _required,
    Mode: _mode,
    Built: _built,
    Left: _left,
    Made: _made,
    Printed: _printed,
    Raised: _raised,
}
_WHOLE: dict[type, Callable[[Any], list[str]]] = {Graded: _many_graded, Written: _many_written, Made: _many_made}
