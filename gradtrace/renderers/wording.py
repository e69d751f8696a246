"""How small facts read, the same in every output: shapes, sizes, places, counts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter

from gradtrace.escapes import one_line
from gradtrace.graphs import memory
from gradtrace.graphs.memory import size as size
from gradtrace.model.graph import Box, Edge, Gradient, Graph, Kind, Node, Saved, SavedState, TensorFact
from gradtrace.model.site import Site, Stack
from gradtrace.source import base_directory

#: outputs of different shapes that are all named
_FEW_OUTPUTS = 4
#: tags that say what the states of the saved tensors say as well
STATE_TAGS = {"freed": "already freed", "modified in place": "modified in place"}
STATES = {SavedState.FREED: "already freed", SavedState.MODIFIED: "modified in place"}


def count(number: int, noun: str) -> str:
    """`1 leaf`, `2 leaves`, `1,024 nodes`."""
    plural = noun[:-1] + "ves" if noun.endswith("f") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


def quantity(number: int) -> str:
    """`312`, `12.3k`, `1.5M`."""
    text = size(number).removesuffix("B").rstrip()
    return text.replace(" ", "")


@lru_cache(maxsize=4096)
def shape(fact: TensorFact, device: str = "cpu") -> str:
    """`[64, 10]`, `scalar int64`, `[3] on cuda:0`: what is float32 or on `device` goes without saying."""
    dims = "" if fact.shape is None else str(list(fact.shape)) if fact.shape else "scalar"
    dtype = "" if fact.dtype in (None, "float32") else fact.dtype
    place = "" if fact.device == device else f"on {fact.device}"
    return " ".join(word for word in (dims, dtype, place) if word)


def shapes(facts: Sequence[TensorFact], device: str = "cpu") -> str:
    """The shapes of several outputs, equal ones counted: `3 outputs [64, 10]`."""
    words = [shape(fact, device) for fact in facts]
    if len(words) < 2:
        return "".join(words)
    counts = {word: words.count(word) for word in words}
    if len(words) > _FEW_OUTPUTS and len(counts) > 1:
        words = [f"{count} × {word}" if count > 1 else word for word, count in counts.items()]
    return f"{len(facts)} outputs {words[0] if len(counts) == 1 else ', '.join(words)}".rstrip()


def file(path: str, root: str | None = None) -> str:
    """A path as the user would type it: relative when below `root`, or where the command began if not given."""
    try:
        below = os.path.join(root or base_directory.directory(), "")
    except OSError:  # the script removed the directory it ran in
        return path
    return path.removeprefix(below)


def place(site: Site, main: str | None = None) -> str:
    """`train.py:31`, or `line 31` where the file is the `main` one of the graph."""
    return f"line {site.line}" if site.path == main else f"{file(site.path)}:{site.line}"


def places(sites: Iterable[Site], main: str | None = None) -> str:
    """Several places in order, those of the main file together: `lines 14-17, 31, model.py:8`."""
    by_file: dict[str, set[int]] = {}
    for site in sites:
        by_file.setdefault("" if site.path == main else file(site.path), set()).add(site.line)
    return ", ".join(
        (f"{path}:" if path else "line " if len(lines) == 1 else "lines ") + ranges(sorted(lines))
        for path, lines in sorted(by_file.items())
    )


def ranges(lines: Sequence[int]) -> str:
    """`3, 14-17, 31`: three and more in a row by the first and last."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][-1] + 1:
            runs[-1].append(line)
        else:
            runs.append([line])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def origin(graph: Graph) -> Stack:
    """The place that the graph was drawn for, else where its root was made."""
    stacks = (graph.stack, *(graph.by_id[root].stack for root in graph.roots))
    return next((stack for stack in stacks if stack), ())


def main_file(graph: Graph) -> str | None:
    """The file that needs no naming, because the header names it."""
    return next((site.path for site in origin(graph)), None)


def device(graph: Graph) -> str:
    """The device that needs no naming: that of the root."""
    outputs = [fact for root in graph.roots for fact in graph.by_id[root].outputs]
    return outputs[0].device if outputs else "cpu"


def title(node: Node) -> str:
    """`loss = 0.6931`, or what made it where it has no name."""
    named = node.name or (f"output of {node.op}" if node.op else node.kind.value)
    return named + (f" = {node.value}" if node.value is not None else "")


def request(graph: Graph) -> str:
    """What the graph was drawn for, and where: `backward(retain_graph=True) at train.py:31`."""
    flags = [f"{name}=True" for name in ("retain_graph", "create_graph") if getattr(graph, name)]
    without = {"": "remained at the end", "now": "as it is now"}
    asked = without.get(graph.request) or f"{graph.request}({', '.join(flags)})"
    at = "".join(f"{' at' if graph.stack else ', made at'} {place(site)}" for site in origin(graph)[:1])
    return asked + at


def totals(graph: Graph) -> list[str]:
    """How big the graph is: `7 nodes`, `4 operations`, `2 leaves`, `depth 5`, `24 B saved for backward`."""
    graph = graph.whole or graph
    kinds = [node.kind for node in graph.nodes]
    words = [(Kind.OP, "operation"), (Kind.LEAF, "leaf"), (Kind.CONSTANT, "constant"), (Kind.CUT, "cut")]
    parts = [count(kinds.count(kind), noun) for kind, noun in words if kind in kinds]
    saved = f"{size(memory.total(graph.nodes))} saved for backward"
    return [count(len(kinds), "node"), *parts, f"depth {graph.depth:,}", saved]


def reached(graph: Graph) -> set[int]:
    """The nodes that a gradient from a root reaches: every path behind a cut is out."""
    seen: set[int] = set()
    waiting = list(graph.roots)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            if graph.by_id[node].kind is not Kind.CUT:
                waiting += [edge.source for edge in graph.inputs.get(node, ())]
    return seen


def outputs_used(source: Node, edges: Iterable[Edge]) -> str:
    """Which of several outputs are used (`output 1`); empty for the only one."""
    numbers = sorted({edge.output for edge in edges})
    if len(source.outputs) < 2 and not any(numbers):
        return ""
    return f"output{'s' * (len(numbers) > 1)} " + ranges(numbers) if numbers else ""


def assignment(node: Node) -> str:
    """`loss = 0.6931`: the name and the value, as far as they are known."""
    return " = ".join(word for word in (node.name, node.value) if word is not None)


def times(box: Box) -> str:
    """`   × 6` where a box is drawn for several equal ones."""
    return f"   × {box.times}" if box.times > 1 and not box.more else ""


def saves(saved: Iterable[Saved], device: str = "cpu") -> str:
    """`saves self [64, 10], weight [10, 5]`: the tensors that are still there and unharmed."""
    held = [item for item in saved if item.state is SavedState.HELD]
    words = ", ".join(f"{item.name} {shape(item.tensor, device)}".rstrip() for item in held)
    return f"saves {words}" if held else ""


def faults(node: Node) -> list[str]:
    """Why a backward through the node would fail: `saved self already freed`."""
    bad: dict[str, list[str]] = {}
    for saved in node.saved:
        if saved.state is not SavedState.HELD:
            bad.setdefault(STATES[saved.state], []).append(saved.name)
    if not bad and not node.tags:
        return []
    found = [f"saved {', '.join(names)} {words}" for words, names in bad.items()]
    for tag in node.tags:
        words = STATE_TAGS.get(tag)
        if words and words not in bad:
            found.append(words)
    return found


def box_title(box: Box, within: str = "") -> str:
    """Which modules are in a box: `encoder.layers.0-5`; with `more`: `5 more: encoder.layers.0-4`; of a function
    `step()`, of a line nothing. `within` the module `encoder` it is `layers.0-5`."""
    modules = _joined([path.removeprefix(f"{within}.") for path in box.paths])
    title = ", ".join([*modules, *(f"{name}()" for name in box.functions)])
    return f"{box.times:,} more: {title}".removesuffix(": ") if box.more else title


def _joined(paths: Sequence[str]) -> list[str]:
    """Paths that differ in their last number together: `layers.0-2, 4`; of many, the first and the last."""
    families: dict[str, list[str]] = {}
    for path in paths:
        stem, _, last = path.rpartition(".")
        families.setdefault(f"{stem}." if last.isdecimal() else path, []).append(last)
    words = [
        stem.lstrip(".") + ranges(sorted(map(int, lasts))) if stem.endswith(".") else stem
        for stem, lasts in families.items()
    ]
    return words if len(words) <= 4 else [words[0], "…", words[-1]]


def box_facts(box: Box) -> tuple[str, ...]:
    """What is in a box: `145 nodes, 33.5k parameters, 733.2 kB saved`, in forms from long to short."""
    nodes = count(len(box.members), "node")
    parameters = f", {quantity(box.parameters)} parameter{'s' * (box.parameters != 1)}" if box.parameters else ""
    saved = f", {size(box.saved_bytes)} saved" if box.saved_bytes else ""
    return nodes + parameters + saved, nodes + saved, nodes


def folding(graph: Graph) -> str:
    """How much of a folded graph is open, and how to see more; empty for one that is whole."""
    if graph.whole is None:
        return ""
    hints = [f"--depth {graph.opened + 1} opens more"] if graph.opened < graph.levels else []
    hints += ["--open NAME one module"] if any(call.path for call in graph.calls) else []
    return f"folded at depth {graph.opened} of {graph.levels}{': ' * bool(hints)}{', '.join(hints)}"


#: norms of gradients from vanishing to exploding: the level of a norm is the number of these that it reaches
LEVELS = (1e-8, 1e-6, 1e-4, 1e-2, 1e0, 1e2, 1e4)
_BARS = "▁▂▃▄▅▆▇█"


def level(found: Gradient) -> int:
    """0 for vanishing, 3 to 5 where all is well, 7 for exploding and for what is not finite."""
    return sum(found.norm >= limit for limit in LEVELS) if found.nonfinite == 0 else len(LEVELS)


def gradient(found: Gradient | None, bar: bool = False) -> tuple[str, ...]:
    """`∇ 0.0013, mean 2.1e-05, 40% zero`, in forms from long to short, with a `bar` for the norm before it (`▄`); empty
    for None."""
    if found is None:
        return ("",)
    norm = "∇ all zero" if found.zeros == 1 else f"{_BARS[level(found)]} ∇ {found.norm:.2g}"[0 if bar else 2 :]
    norm += " of the local shard" if found.local else ""
    marks = f", {_share(found.nonfinite)} NaN or infinite" if found.nonfinite else ""
    marks += f", {_share(found.zeros)} zero" if 0 < found.zeros < 1 else ""
    mean = "" if found.zeros == 1 else f", mean {found.mean:.2g}"
    return norm + mean + marks, norm + marks, norm


def _share(part: float) -> str:
    return "<1%" if part < 0.01 else f"{100 * part:.0f}%"


def flow(graph: Graph) -> str:
    """How the gradients are at the leaves, in one line; empty where none were looked at."""
    nodes = (graph.whole or graph).nodes
    if not any(node.gradient for node in nodes):
        return ""
    leaves = [node for node in nodes if node.kind is Kind.LEAF]
    counts: Counter[str] = Counter()
    sized = []
    for node in leaves:
        what = _oddity(node.gradient)
        counts[what] += 1
        if not what and node.gradient is not None:
            sized.append((node.gradient.norm, node.name or "a leaf"))
    words = [f"{counts[what]:,} {what}" for what in _ODDITIES if counts[what]]
    if sized:
        smallest_and_largest = dict.fromkeys((min(sized), max(sized)))
        words.append(" to ".join(f"{norm:.2g} ({name})" for norm, name in smallest_and_largest))
    return f"gradients of {count(len(leaves), 'leaf')}: {', '.join(words)}"


_ODDITIES = "without gradient", "all zero", "with NaN or infinity"


def _oddity(gradient: Gradient | None) -> str:
    """What is special about a leaf's gradient; empty where it is a number like any other."""
    if gradient is None:
        return "without gradient"
    if gradient.zeros == 1:
        return "all zero"
    return "with NaN or infinity" if gradient.nonfinite > 0 else ""


def tags(node: Node) -> list[str]:
    """What is special about a node and no fault."""
    return [tag for tag in node.tags if tag not in STATE_TAGS]


def warnings(graph: Graph) -> list[str]:
    """What matters most: that the graph was freed, broken by an in-place write, or is cut."""
    graph = graph.whole or graph
    main = main_file(graph)
    states = {
        "already freed": "this graph was already freed by an earlier backward: {} lost what was saved for backward",
        "modified in place": "this graph was broken by an in-place write: {} saved what was modified afterwards",
    }
    found = []
    ill = [(node, its) for node in graph.nodes if (its := faults(node))]
    for words, text in states.items():
        nodes = [node for node, its in ill if any(fault.endswith(words) for fault in its)]
        if nodes:
            found.append(text.format(count(len(nodes), "operation")) + _at(nodes, main))
    cuts = [node for node in graph.nodes if node.kind is Kind.CUT]
    if cuts:
        hints = ", ".join(dict.fromkeys(node.op for node in cuts))
        found.append(f"no gradient passes {count(len(cuts), 'cut')}: {hints}" + _at(cuts, main))
    return found


def _at(nodes: Iterable[Node], main: str | None, most: int = 5) -> str:
    """` (lines 3, 8)`; with more than `most` places, how many more there are."""
    sites = sorted(
        {node.stack[0].place: node.stack[0] for node in nodes if node.stack}.values(), key=attrgetter("place")
    )
    more = f" and {count(len(sites) - most, 'more place')}" if len(sites) > most else ""
    return f" ({places(sites[:most], main)}{more})" if sites else ""


def printable(text: str) -> str:
    """The text on one line, with everything spelled out that a terminal would obey."""
    return one_line(text)


def elide_head(path: str, most: int) -> str:
    """The path without its first parts where it is longer than `most`: `5 more: …layers.0-4`."""
    words, _, last = path.rpartition(" ")
    space = most - len(words) - 2 * bool(words) - 1
    if len(path) <= most or space <= 0:
        return elide(path, most)
    tail = last[-space:]
    return f"{words} …{tail.partition('.')[2] or tail}".lstrip()


def elide(text: str, most: int, gap: str = "…") -> str:
    """The text with its middle left out where it is longer than `most`."""
    if len(text) <= most:
        return text
    head = (most - len(gap)) // 2
    return text[:head] + gap + text[len(text) - (most - len(gap) - head) :]
