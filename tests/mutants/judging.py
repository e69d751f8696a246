"""Runs base programs and mutants: which mutants have an effect at all, and what gradtrace finds of those.

Whether there is an effect is decided without gradtrace: by exceptions, by the parameters bit for bit, by the tensors
that are saved for backward calls and the hooks that are registered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mutants import probe, runs
from mutants.mutant import Base, Mutant
from mutants.runs import Found, Outcome, Script
from mutants.source import Program

#: what an exception that a gradient fault raises speaks of; after another one the mutant is only broken
_ABOUT_GRADIENTS = re.compile(
    "grad|graph|leaf|in-?place|backward|scalar output|NoneType|unscale_|inf checks|optimizer got an empty|inference",
    re.IGNORECASE,
)
#: a parameter is starved when it has a gradient at less than this share of the steps that it had
_STARVED = 0.75


def examine(paths: Sequence[Path], jobs: int, timeout: float) -> list[Base]:
    """Runs each program plainly (twice, once to count its saved tensors), with a probe, and under gradtrace."""

    def work(path: Path) -> Callable[[], Any]:
        script = Script(path, path.parent)

        def examined() -> Any:
            once, again = runs.plain(script, False, timeout), runs.plain(script, True, timeout)
            same = (once.error, once.digest) == (again.error, again.digest)
            found, error = runs.check(script, timeout)
            facts, trouble = runs.facts(script, timeout)
            alarms = [asdict(f) for f in found if f.is_alarm]
            return [asdict(once), same, again.saved, alarms, error or trouble, probe.as_plain(facts)]

        return examined

    bases = {}
    tasks = ((path, work(path)) for path in paths)
    for path, value, error in runs.parallel(tasks, jobs, 5 * timeout):
        text = path.read_text()
        if value is None:
            bases[path] = Base(path, Program(path.name, text), Outcome(), False, [], error)
            continue
        outcome, same, saved, alarms, trouble, facts = value
        program = Program(path.name, text, probe.from_plain(facts))
        bases[path] = Base(
            path, program, Outcome(**{**outcome, "saved": saved}), same, [Found(**a) for a in alarms], trouble
        )
    return [bases[path] for path in paths]


def effect(mutant: Mutant, run: Callable[[bool], Outcome]) -> tuple[Outcome, str, bool]:
    """What the mutant does, why it is dropped ("" where it is not), and whether only its memory differs.

    `run(memory)` runs it plainly.
    """
    base, outcome = mutant.base.outcome, run(False)
    if outcome.error and outcome.error != base.error:
        if outcome.error == "timeout" or not all(f.raises for f in mutant.faults) or mutant.parts:
            return outcome, f"breaks the program: {outcome.error}", False
        return outcome, "" if _ABOUT_GRADIENTS.search(outcome.error) else f"breaks the program: {outcome.error}", False
    same = outcome.digest == base.digest and mutant.base.deterministic
    if mutant.parts:
        alone = any(p.outcome.digest == outcome.digest and not q.by_memory for p, q in _each_with_other(mutant.parts))
        return outcome, "one of the faults has no effect" if alone else "", False
    needs = mutant.faults[0].needs
    if needs == "raises":
        return outcome, "raises nothing", False
    if needs == "starved" and not same and not is_starved(base, outcome):
        return outcome, "every parameter still gets its gradients", False
    if needs == "nonfinite" and not same and outcome.nonfinite <= base.nonfinite:
        return outcome, "every gradient is still finite", False
    if not same:
        return outcome, "", False
    if needs != "any":
        return outcome, "no effect", False
    remembered = run(True).saved != base.saved
    return outcome, "" if remembered else "no effect", remembered


def _each_with_other(parts: tuple[Mutant, ...]) -> list[tuple[Mutant, Mutant]]:
    return [(parts[0], parts[1]), (parts[1], parts[0])]


def is_starved(base: Outcome, outcome: Outcome) -> bool:
    """Whether some parameter had a gradient at fewer steps than in the base program."""
    if len(base.fed) != len(outcome.fed):
        return True
    return any(after < _STARVED * before for before, after in zip(base.fed, outcome.fed, strict=True))


def judge(mutants: Sequence[Mutant], folder: Path, jobs: int, timeout: float) -> Iterator[Mutant]:
    """Runs each mutant plainly, and those with an effect under gradtrace; as they are done."""
    taken: set[str] = set()

    for mutant in mutants:
        mutant.path = str(folder / f"{mutant.stem}.py")
        while mutant.path in taken:
            mutant.path = mutant.path.removesuffix(".py") + "-.py"
        taken.add(mutant.path)

    def work(mutant: Mutant) -> Callable[[], Any]:
        path = Path(mutant.path)
        script = Script(path, mutant.base.path.parent)

        def judged() -> Any:
            path.write_text(mutant.text)
            outcome, dropped, by_memory = effect(mutant, lambda memory: runs.plain(script, memory, timeout))
            found: list[Found] = []
            error = ""
            if dropped:
                path.unlink()
            else:
                found, error = runs.check(script, timeout)
            return [asdict(outcome), dropped, by_memory, [asdict(f) for f in found], error]

        return judged

    tasks = ((number, work(mutant)) for number, mutant in enumerate(mutants))
    for number, value, error in runs.parallel(tasks, jobs, 4 * timeout):
        mutant = mutants[number]
        if value is None:
            mutant.trouble = error
        else:
            outcome, mutant.dropped, mutant.by_memory, found, mutant.trouble = value
            mutant.outcome, mutant.found = Outcome(**outcome), [Found(**f) for f in found]
        yield mutant
