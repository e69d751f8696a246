"""The command line of scripts/fixes: `gradtrace fix` over many scripts, and what became of their findings."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from casefiles import RANKS, case, cases
from mutants import runs


@dataclass(frozen=True)
class Tried:
    """What became of one finding."""

    script: str
    rule: str
    level: str
    line: int
    message: str
    fixed: bool
    title: str
    #: the line of proof, or what is against the edits that were tried
    proof: str
    tried: int
    #: the edit, or the whole script where there is none
    diff: str


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/fixes", description="For how many findings `gradtrace fix` has a fix."
    )
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="scripts, or folders of them (default: tests/cases/*/bad)")
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="scripts at a time (default: one a core)")
    add("--timeout", type=float, default=300.0, metavar="SECONDS", help="for each script (default: 300)")
    add("--only", action="append", metavar="TEXT", help="scripts with this in their name; may be repeated")
    add("--rule", action="append", metavar="RULE", help="scripts named after this rule; may be repeated")
    add("--every", type=int, default=1, metavar="N", help="only each Nth script")
    add("--steps", type=int, metavar="N", help="end each run after so many steps")
    add("--keep", type=Path, metavar="DIR", help="leave the fixed scripts in this folder")
    add("--json", type=Path, metavar="FILE", help="write all results to this file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    with tempfile.TemporaryDirectory() as folder:
        scripts = [path.resolve() for path in named(options.files)] or list(bad_cases(Path(folder)))
        if options.only:
            scripts = [path for path in scripts if any(text in path.stem for text in options.only)]
        if options.rule:
            scripts = [path for path in scripts if any(path.stem.startswith(rule) for rule in options.rule)]
        runs.load()
        for name in ("watcher.watch", "commands.fix", "renderers.edits"):
            importlib.import_module(f"gradtrace.{name}")
        results = list(tried(options, scripts[:: options.every]))
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in results], indent=1))
    return 0


def named(files: Sequence[Path]) -> Iterator[Path]:
    for file in files:
        yield from sorted(file.glob("*.py")) if file.is_dir() else [file]


def bad_cases(folder: Path) -> Iterator[Path]:
    """The bad scripts of tests/cases, each in a file that is named after its rule too."""
    for name in cases("bad"):
        topic, _, title = name.partition("/")
        if topic != RANKS:
            path = folder / f"{topic}.{title}.py"
            path.write_bytes(case(f"{topic}/bad/{title}").read_bytes())
            yield path


def tried(options: argparse.Namespace, scripts: Sequence[Path]) -> Iterator[Tried]:
    """Each finding of each script, as they end."""
    tasks = [
        (path.stem, partial(fixed, path, options.keep and options.keep.resolve(), options.steps)) for path in scripts
    ]
    for number, (name, found, error) in enumerate(runs.parallel(tasks, options.jobs, options.timeout), 1):
        if error or "error" in found:
            print(f"{name}: {error or found['error']}", flush=True)
        elif not found["findings"]:
            print(f"{name}: no findings", flush=True)
        else:
            yield from (Tried(name, **one) for one in found["findings"])
        print(f"\r{number}/{len(scripts)}", end="", file=sys.stderr, flush=True)


def fixed(path: Path, keep: Path | None, steps: int | None) -> dict[str, Any]:
    """What fix made of one script. It runs in a fork."""
    from gradtrace.commands.fix import begin
    from gradtrace.commands.run import Options
    from gradtrace.errors import GradtraceError
    from gradtrace.fixes.search import Effort
    from gradtrace.renderers.edits import between
    from gradtrace.report.config import Settings
    from gradtrace.report.verdict import Verdict

    os.chdir(path.parent)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        search = begin(Options([path.name], None, steps=steps), Effort(jobs=1), Verdict(Settings()))
        search.run()
    except GradtraceError as error:
        return {"error": str(error)}
    report = search.report()
    rows = []
    for one in report.fixes:
        diff = between(one.before, one.after, Path(one.path).name)
        rows.append(
            {**plain(one.finding), "fixed": True, "title": one.title, "proof": one.proof, "tried": 0, "diff": diff}
        )
    for left in report.unfixed:
        why = "\n".join(left.reasons)
        rows.append(
            {
                **plain(left.finding),
                "fixed": False,
                "title": "",
                "proof": why,
                "tried": left.tried,
                "diff": path.read_text(),
            }
        )
    if keep is not None and report.patch.changed:
        keep.mkdir(parents=True, exist_ok=True)
        for name in report.patch.changed:
            (keep / Path(name).name).write_text(report.patch.after[name], encoding="utf-8")
    return {"findings": rows}


def plain(finding: Any) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": str(finding.level),
        "line": finding.site.line,
        "message": f"{finding.message}\n  {finding.help}",
    }


def table(results: Sequence[Tried]) -> str:
    by_rule: defaultdict[str, list[Tried]] = defaultdict(list)
    for one in results:
        by_rule[one.rule].append(one)
    rows = [f"{'rule':24} {'errors':>12} {'findings':>12}  why not"]
    for rule, found in sorted(by_rule.items()):
        whys = Counter(why_not(one) for one in found if not one.fixed)
        reasons = "; ".join(f"{number} {why}" for why, number in whys.most_common(4))
        rows.append(f"{rule:24} {share(found, 'error'):>12} {share(found):>12}  {reasons}")
    rows.append(f"{'all':24} {share(results, 'error'):>12} {share(results):>12}")
    return "\n".join(rows)


def share(found: Sequence[Tried], level: str = "") -> str:
    counted = [one for one in found if level in ("", one.level)]
    proven = sum(one.fixed for one in counted)
    return f"{proven}/{len(counted)} {proven / len(counted):4.0%}" if counted else ""


def why_not(one: Tried) -> str:
    """The kind of the first objection, without names."""
    if not one.tried:
        return "no edit known"
    _, _, objection = (one.proof.splitlines() or [""])[0].partition(": ")
    return re.sub(r"^\S+ (no longer|still does not) train\w*", r"a parameter \1 trains", objection)[:60]
