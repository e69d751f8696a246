"""The score: a table of operators by programs, and the totals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mutants.mutant import PAIR, Base, Mutant, places
from mutants.operators import OPERATORS


def table(mutants: Sequence[Mutant], bases: Sequence[Base]) -> str:
    """Operators by programs: how many mutants were found at the right line, of how many."""
    cells: dict[str, dict[str, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for mutant in mutants:
        cells[mutant.operator][mutant.base.name].append(mutant)
    shown = [b.name for b in bases]
    lines = [f"{number:3} {name}" for number, name in enumerate(shown, 1)]
    lines += ["", f"{'':30}" + "".join(f"{number:>4}" for number in range(1, len(shown) + 1)) + "   rule    line"]
    for operator in [*OPERATORS, PAIR]:
        row = cells.get(operator)
        if not row:
            continue
        text = "".join(_cell(row.get(name, [])) for name in shown)
        every = [m for found in row.values() for m in found]
        rule, line = sum(m.rule_is_right for m in every), sum(m.line_is_right for m in every)
        lines.append(f"{operator:30}{text}  {rule:3}/{len(every):<3} {line:3}/{len(every)}")
    return "\n".join(lines)


def _cell(mutants: Sequence[Mutant]) -> str:
    if not mutants:
        return "   ."
    right = sum(m.line_is_right for m in mutants)
    return f"{right:>4}" if right == len(mutants) else f"{right}/{len(mutants)}".rjust(4)


def share(part: int, whole: int) -> str:
    return f"{part}/{whole}" + (f" ({100 * part / whole:.1f} %)" if whole else "")


def report(mutants: Sequence[Mutant], bases: Sequence[Base]) -> str:
    """The table and the totals."""
    kept = [m for m in mutants if not m.dropped]
    dropped: dict[str, int] = defaultdict(int)
    for mutant in mutants:
        if mutant.dropped:
            dropped[mutant.dropped.split(":")[0]] += 1
    rule, line = sum(m.rule_is_right for m in kept), sum(m.line_is_right for m in kept)
    silent = sum(not b.alarms and not b.trouble for b in bases)
    parts = [table(kept, bases), ""]
    for kind in ("", "late", "some", PAIR):
        group = [m for m in kept if m.onset == kind]
        found = [m for m in group if m.rule_is_right]
        exact = [m for m in group if m.line_is_right]
        name = kind or "from the start"
        parts.append(
            f"{name:15} right rule {share(len(found), len(group))}, right line {share(len(exact), len(group))}"
        )
    parts.append("dropped: " + (", ".join(f"{count} {why}" for why, count in sorted(dropped.items())) or "none"))
    parts.append(
        f"right rule {share(rule, len(kept))}, right line {share(line, len(kept))}, silent bases {share(silent, len(bases))}"
    )
    return "\n".join(parts)


def as_json(mutants: Sequence[Mutant], bases: Sequence[Base]) -> dict[str, Any]:
    """What is known of the programs, of the operators, and of the mutants that have an effect, for a file."""
    count, broken = places(bases, OPERATORS.values())
    programs = [{"program": b.name, "alarms": [asdict(a) for a in b.alarms], "trouble": b.trouble} for b in bases]
    judged = [as_plain(m) for m in mutants if not m.dropped]
    return {"programs": programs, "places": count, "broken": broken, "mutants": judged}


def as_plain(mutant: Mutant) -> dict[str, Any]:
    """A judged mutant for a file of JSON."""
    return {
        "operator": mutant.operator,
        "program": mutant.base.name,
        "title": mutant.title,
        "path": mutant.path,
        "wants": mutant.wants,
        "found": [asdict(f) for f in mutant.found],
        "error": mutant.outcome.error,
        "rule": mutant.rule_is_right,
        "line": mutant.line_is_right,
    }
