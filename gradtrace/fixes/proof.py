"""Whether an edit holds: the run with it, compared with the run without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gradtrace.fixes.candidates import Candidate
from gradtrace.fixes.trials import Outcome
from gradtrace.model.finding import Finding, Level
from gradtrace.model.lives import State

#: rules about parameters that do not train: a fix makes those train that the finding names
_ABOUT_TRAINING = frozenset({"unreached-parameter", "unoptimized-parameter", "zero-gradient", "no-graph"})


@dataclass(frozen=True, slots=True)
class Fix:
    """A finding with an edit that holds, and the numbers that show it."""

    finding: Finding
    candidate: Candidate
    proof: str


@dataclass(frozen=True, slots=True)
class Unfixed:
    """A finding without an edit that holds: how many were tried, and why the last ones failed."""

    finding: Finding
    tried: int
    reasons: tuple[str, ...]


def objection(before: Outcome, after: Outcome | None, finding: Finding) -> str:
    """Why the edit does not hold; empty where it does."""
    if after is None:
        return "the run took too long, or died"
    left, found = _counted(before), _counted(after)
    if found[finding.rule] >= left[finding.rule]:
        return f"{finding.rule} is still found"
    new = sorted(rule for rule in found if found[rule] > left[rule])
    if new:
        return f"{new[0]} is found then"
    if after.failed and (not before.failed or after.ended.exception != before.ended.exception):
        return f"the script ends with {(after.ended.exception or 'an error').splitlines()[0]}"
    if after.failed and finding.error:
        return "the script still fails"
    if after.steps < before.steps:
        return f"the script makes {after.steps} optimizer steps instead of {before.steps}"
    if not after.backward_calls:
        return "the script makes no backward call then"
    stopped = sorted(before.moving - after.moving)
    if stopped:
        return f"{stopped[0]} no longer trains"
    if finding.rule in _ABOUT_TRAINING:
        still = [name for name in finding.about if _is_stuck(after, name)]
        if still:
            return f"{still[0]} still does not train"
    return ""


def _counted(outcome: Outcome) -> Counter[str]:
    """Findings that count, by rule."""
    return Counter(finding.rule for finding in outcome.findings if finding.level > Level.NOTE)


def _is_stuck(outcome: Outcome, name: str) -> bool:
    life = outcome.lives.get(name)
    return life is not None and life.state not in (State.TRAINS, State.BY_HAND)


def proof(after: Outcome, finding: Finding) -> str:
    """One line of what the run with the edit showed."""
    calls = f"{after.backward_calls:,} backward call{'s' * (after.backward_calls != 1)}"
    steps = f"{after.steps:,} optimizer step{'s' * (after.steps != 1)}"
    moving = f"{len(after.moving)} of {len(after.lives)} parameters train" if after.lives else ""
    return ", ".join(filter(None, (calls, steps, f"{finding.rule} gone", "nothing new", moving)))


def size(before: str, after: str) -> int:
    """How many lines the edit removes and adds."""
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    return (old - new).total() + (new - old).total()


def best(holding: Sequence[tuple[Candidate, Outcome]], text_of: dict[str, str]) -> tuple[Candidate, Outcome]:
    """The edit that changes least, of equal ones the likeliest."""
    return min(holding, key=lambda one: size(text_of[one[0].path], one[0].text))
