"""The command line of scripts/mutants."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from mutants import runs
from mutants.judging import examine, judge
from mutants.mutant import Base, Mutant, generate, pairs, picked
from mutants.operators import OPERATORS, Operator
from mutants.report import as_json, report

PROGRAMS = Path(__file__).with_name("programs")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/mutants", description="What `gradtrace check` finds of known faults."
    )
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="correct programs (default: those of the tests)")
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at a time (default: one a core)")
    add("--timeout", type=float, default=60.0, metavar="SECONDS", help="for each run (default: 60)")
    add("--only", action="append", metavar="OPERATOR", help="operators with this in their name; may be repeated")
    add("--pick", action="append", metavar="TITLE", help="only this mutant, as a miss names it; may be repeated")
    add("--per", type=int, default=1, metavar="N", help="places for each operator and program (default: 1)")
    add("--pairs", type=int, metavar="N", help="mutants with two faults for each program (default: 3; of a sample 0)")
    add("--sample", type=int, metavar="N", help="only so many mutants, by chance")
    add("--seed", type=int, default=0, metavar="S", help="for what is chosen by chance (default: 0)")
    add("--keep", type=Path, metavar="DIR", help="leave the mutants in this folder")
    add("--json", type=Path, metavar="FILE", help="write all results to this file")
    add("--list", action="store_true", help="print the operators and end")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    operators = [o for o in OPERATORS.values() if not options.only or any(t in o.name for t in options.only)]
    if options.list:
        for operator in operators:
            print(f"{operator.name:32} {operator.summary}")
        return 0
    paths = [p.resolve() for p in options.files] or sorted(PROGRAMS.glob("*.py"))
    runs.load()
    bases = examine(paths, options.jobs, options.timeout)
    print_what_is_wrong(bases)
    usable = [b for b in bases if not b.trouble and not b.outcome.error]
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        mutants = score(options, operators, usable, folder)
    print(report(mutants, bases))
    if options.json:
        options.json.write_text(json.dumps(as_json(mutants, bases), indent=1))
    return 1 if any(b.alarms or b.trouble for b in bases) else 0


def print_what_is_wrong(bases: Sequence[Base]) -> None:
    for base in bases:
        for alarm in base.alarms:
            print(f"NOT SILENT {base.name}: {alarm.rule}:{alarm.line} {alarm.message}")
        if base.trouble or base.outcome.error:
            print(f"CANNOT RUN {base.name}: {base.trouble or base.outcome.error}")
        elif not base.deterministic:
            print(f"NOT DETERMINISTIC {base.name}: each of its mutants counts as one with an effect")


def score(
    options: argparse.Namespace, operators: Sequence[Operator], bases: Sequence[Base], folder: Path
) -> list[Mutant]:
    """Every mutant that the options want, judged."""
    planned: list[Mutant] = []
    for base in bases:
        if options.pick:
            planned += picked(base, operators, options.pick)
        else:
            planned += generate(base, operators, options.per, options.seed)
    if options.sample is not None:
        planned = random.Random(options.seed).sample(planned, min(options.sample, len(planned)))
    judged = list(shown(judge(planned, folder, options.jobs, options.timeout), len(planned)))
    most = 0 if options.pick or options.sample is not None else 3
    most = options.pairs if options.pairs is not None else most
    if most:
        two = list(pairs(planned, most, options.seed))
        judged += shown(judge(two, folder, options.jobs, options.timeout), len(two))
    return judged


def shown(mutants: Iterator[Mutant], total: int) -> Iterator[Mutant]:
    """Passes the mutants on, and prints each miss at once; on a terminal their number goes along."""
    progress = sys.stderr.isatty()
    for number, mutant in enumerate(mutants, 1):
        if not mutant.dropped and not mutant.line_is_right:
            print("\r" * progress + mutant.miss(), flush=True)
        if progress:
            print(f"\r{number}/{total}", end="" if number < total else "\n", file=sys.stderr, flush=True)
        yield mutant
