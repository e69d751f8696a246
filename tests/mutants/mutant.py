"""Base programs, their mutants, and which mutants are made."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mutants.faults import Fault, Mutated, mutate
from mutants.onset import delayed
from mutants.operators import Operator
from mutants.runs import Found, Outcome
from mutants.source import Program

#: name of the operator that puts in two faults
PAIR = "two-at-once"
#: for each want its rules, and the lines at which one of them is right
Wants = list[tuple[tuple[str, ...], tuple[int, ...]]]


@dataclass
class Base:
    """A correct program: its outcome, whether it is the same each time, and what gradtrace says of it."""

    path: Path
    program: Program
    outcome: Outcome
    deterministic: bool
    alarms: list[Found]
    trouble: str = ""

    @property
    def name(self) -> str:
        return self.path.stem


@dataclass
class Mutant:
    """A program with one fault or two, and how it was judged."""

    operator: str
    base: Base
    faults: tuple[Fault, ...]
    text: str
    #: for each fault its wants; any one of them is enough
    wants: list[Wants]
    parts: tuple[Mutant, ...] = ()
    #: filled in by judging
    dropped: str = ""
    outcome: Outcome = field(default_factory=Outcome)
    by_memory: bool = False
    found: list[Found] = field(default_factory=list)
    trouble: str = ""
    path: str = ""

    @property
    def title(self) -> str:
        notes = " ".join(f.note for f in self.faults if f.note)
        line = "+".join(str(f.line) for f in self.faults)
        return f"{self.operator} {self.base.name}:{line}" + (f" ({notes})" if notes else "")

    @property
    def onset(self) -> str:
        return PAIR if self.parts else self.faults[0].note

    @property
    def stem(self) -> str:
        parts = [p.operator for p in self.parts] or [self.operator]
        notes = [f.note for f in self.faults if f.note]
        lines = [str(f.line) for f in self.faults]
        return "-".join([self.base.name, *parts, *lines, *notes]).replace(" ", "-")

    @property
    def rule_is_right(self) -> bool:
        return all(any(f.rule in rules for f in self.found for rules, _ in wants) for wants in self.wants)

    @property
    def line_is_right(self) -> bool:
        return all(
            any(f.rule in rules and f.line in lines for f in self.found for rules, lines in wants)
            for wants in self.wants
        )

    def miss(self) -> str:
        """One line on what was wanted and what was found."""
        wanted = " and ".join(
            " or ".join(f"{'|'.join(rules)} at {_ranges(lines)}" for rules, lines in wants) for wants in self.wants
        )
        got = ", ".join(f"{f.rule}:{f.line}" + ("" if f.is_alarm else " (note)") for f in self.found)
        kind = "line" if self.rule_is_right else "rule"
        return f"MISS {kind} {self.title}\n     want {wanted}\n     got  {got or self.trouble or 'nothing'}\n     {self.path}"


def _ranges(lines: Iterable[int]) -> str:
    ordered = sorted(lines)
    return ",".join(map(str, ordered[:12])) + (",…" if len(ordered) > 12 else "")


def generate(base: Base, operators: Iterable[Operator], most: int, seed: int) -> Iterator[Mutant]:
    """At most `most` places for each operator, and at one place the fault that begins late, or that comes and goes."""
    for operator in operators:
        chance = random.Random(f"{seed} {base.name} {operator.name}")
        mutants = [m for f in operator.make(base.program) if (m := _mutant(operator.name, base, (f,)))]
        chosen = chance.sample(mutants, min(most, len(mutants)))
        yield from chosen
        if not operator.onsets:
            continue
        onset = chance.choice(operator.onsets)
        for mutant in chance.sample(mutants, len(mutants)):
            fault = delayed(base.program, mutant.faults[0], onset)
            late = _mutant(operator.name, base, (fault,)) if fault else None
            if late:
                yield late
                break


def picked(base: Base, operators: Iterable[Operator], titles: Iterable[str]) -> Iterator[Mutant]:
    """Those mutants, of every place and onset, that have one of these titles."""
    for operator in operators:
        for fault in operator.make(base.program):
            others = [delayed(base.program, fault, onset) for onset in operator.onsets]
            for each in (fault, *others):
                mutant = _mutant(operator.name, base, (each,)) if each else None
                if mutant and mutant.title in titles:
                    yield mutant


def places(bases: Iterable[Base], operators: Iterable[Operator]) -> tuple[dict[str, int], list[str]]:
    """For each operator the number of its places in all programs, and the places where its edit is no Python."""
    count, broken = {}, []
    for operator in operators:
        count[operator.name] = 0
        for base in bases:
            for fault in operator.make(base.program):
                count[operator.name] += 1
                try:
                    mutate(base.program, [fault])
                except (SyntaxError, ValueError) as error:
                    broken.append(f"{operator.name} {base.name}:{fault.line} {error}")
    return count, broken


def _mutant(name: str, base: Base, faults: tuple[Fault, ...], parts: tuple[Mutant, ...] = ()) -> Mutant | None:
    """The mutant; None where the result is no Python, or where two faults do not fit together."""
    try:
        mutated: list[Mutated] = mutate(base.program, faults)
    except (SyntaxError, ValueError):
        return None
    wants = [[(rules, lines) for rules, lines in m.wants if lines] for m in mutated]
    if not all(wants):
        return None
    return Mutant(name, base, faults, mutated[0].text, wants, parts)


def pairs(mutants: Sequence[Mutant], most: int, seed: int) -> Iterator[Mutant]:
    """For each program, faults of two operators at once; each alone has an effect and raises nothing."""
    by_base = defaultdict(list)
    for mutant in mutants:
        if not mutant.dropped and not mutant.outcome.error:
            by_base[mutant.base.name].append(mutant)
    for name, candidates in by_base.items():
        chance = random.Random(f"{seed} {name} {PAIR}")
        made = 0
        every = list(itertools.combinations(candidates, 2))
        for one, two in chance.sample(every, len(every)):
            if made == most:
                break
            if _hides(one.faults[0], two.faults[0]) or one.operator == two.operator:
                continue
            pair = _mutant(PAIR, one.base, (*one.faults, *two.faults), (one, two))
            if pair:
                made += 1
                yield pair


def _hides(one: Fault, two: Fault) -> bool:
    """Whether one fault may hide the other: at one line, or where both cut a path to the loss."""
    return one.line == two.line or one.needs == two.needs == "starved"
