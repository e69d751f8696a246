"""What differs between two runs, as a tree: a graph, its modules, what is new, gone and changed in each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console
from rich.text import Text

from gradtrace.graphs.diff import Change, Compared, Version
from gradtrace.model.graph import Graph
from gradtrace.renderers import wording

_STYLES = {"+": "green", "-": "red", "~": "yellow"}


def render(before: Version, after: Version, found: Sequence[Compared], console: Console) -> None:
    """Prints all differences; where there is none, one line that says so."""
    if all(one.equal for one in found):
        nodes = sum(len(graph.nodes) for graph in after.graphs)
        what = f"{wording.count(len(found), 'graph')}, {wording.count(nodes, 'node')}"
        console.print(Text(f"no difference between {before.name} and {after.name}: {what}"), soft_wrap=True)
        return
    for number, one in enumerate(found):
        if number:
            console.print()
        for line in _pair(one):
            console.print(line, soft_wrap=True)


def _pair(one: Compared) -> Iterator[Text]:
    if one.before is None or one.after is None:
        if one.after is not None:
            yield _lone(one.after, "+", "is new")
        elif one.before is not None:
            yield _lone(one.before, "-", "is gone")
        return
    yield Text.assemble((_title(one.after), "bold"), ("  was ", "dim"), _title(one.before))
    if one.equal:
        yield Text("  no difference", "dim")
        return
    counts = Counter(change.sign for change in one.changes)
    words = {"+": "new", "-": "gone", "~": "changed"}
    summary = ", ".join(f"{counts[sign]:,} {word}" for sign, word in words.items() if counts[sign])
    yield Text(f"  {summary}; {len(one.before.nodes):,} → {len(one.after.nodes):,} nodes", "dim")
    groups = list(_groups(one.changes))
    for place, (module, times, changes) in enumerate(groups):
        last = place == len(groups) - 1
        count = f"  × {times}" if times > 1 else ""
        yield Text.assemble(("└─ " if last else "├─ ", "dim"), (module or "outside of modules", "cyan"), count)
        yield from _changes(changes, "   " if last else "│  ", one)


def _lone(graph: Graph, sign: str, what: str) -> Text:
    return Text.assemble((f"{sign} {_title(graph)}", f"bold {_STYLES[sign]}"), f"  {what}")


def _changes(changes: Sequence[Change], trail: str, one: Compared) -> Iterator[Text]:
    main = wording.main_file(one.after) if one.after is not None else None
    alike = Counter((change.sign, change.text, change.site, change.source) for change in changes)
    first = {(change.sign, change.text, change.site, change.source): change for change in reversed(changes)}
    for number, (key, times) in enumerate(alike.items()):
        change = first[key]
        joint = "└─ " if number == len(alike) - 1 else "├─ "
        at = wording.place(change.site, main) if change.site else ""
        rest = "  ".join(filter(None, (at, wording.elide(change.source, 60))))
        yield Text.assemble(
            (trail + joint, "dim"),
            (f"{change.sign} {wording.printable(change.text)}", _STYLES[change.sign]),
            f"  × {times}" if times > 1 else "",
            (f"  {wording.printable(rest)}" if rest else "", "dim"),
        )


def _title(graph: Graph) -> str:
    names = [graph.by_id[root].name or graph.by_id[root].op for root in dict.fromkeys(graph.roots)]
    return wording.printable(f"{', '.join(filter(None, names))}  {wording.request(graph)}")


def _groups(changes: Iterable[Change]) -> Iterator[tuple[str, int, Sequence[Change]]]:
    """The changes by module; modules of a list that changed alike together, as `layers.*`."""
    by_module: dict[str, list[Change]] = {}
    for change in changes:
        by_module.setdefault(change.module, []).append(change)
    alike: dict[object, list[str]] = {}
    for module, some in by_module.items():
        summary = tuple((one.sign, one.text.replace(module, "*")) for one in some)
        alike.setdefault((_family(module), summary), []).append(module)
    for modules in alike.values():
        name = modules[0] if len(modules) == 1 else _family(modules[0])
        yield name, len(modules), by_module[modules[0]]


def _family(module: str) -> str:
    return re.sub(r"\d+", "*", module)
