"""Whether an edit holds: the run with it, compared with the run without it."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher

from gradtrace.fixes.trials import Outcome
from gradtrace.model.finding import Finding, Level
from gradtrace.model.lives import Life, State

#: rules about parameters that do not train: a fix makes those train that the finding names
_ABOUT_TRAINING = frozenset({"unreached-parameter", "unoptimized-parameter", "zero-gradient", "no-graph"})
#: rules about what is updated although it should not be: a fix may stop the parameters that the finding names
_ABOUT_MOVING = frozenset({"misspelt-attribute", "frozen-moves", "leaked-grad", "attached-target"})
#: rules about gradients that reach what should get none: only parameters of optimizers are to be reached as before
_ABOUT_REACHING = frozenset(
    {"leaked-grad", "freed-graph", "attached-target", "unused-graph", "stale-grad", "unoptimized-parameter"}
)
#: what may be found after the edit: an option that the loop needs no more
_HARMLESS = frozenset({"unneeded-retain"})
#: rules that ask for fewer calls, or steps
_FEWER_CALLS = frozenset({"repeated-backward", "unused-graph", "stale-grad"})
_FEWER_STEPS = frozenset({"step-without-grad", "stale-grad"})


def objection(before: Outcome, after: Outcome | None, finding: Finding) -> str:
    """Why the edit does not hold; empty where it does."""
    if after is None:
        return "the run took too long, or died"
    against = _findings(before, after, finding) or _ending(before, after, finding)
    return against or _calls(before, after, finding) or _training(before, after, finding)


def _findings(before: Outcome, after: Outcome, finding: Finding) -> str:
    left, found = _counted(before), _counted(after)
    harmless = _HARMLESS if finding.level is Level.ERROR else frozenset[str]()
    if after.failed and not before.failed:
        return f"the script ends with {_error(after)}"
    if found[finding.rule] >= left[finding.rule]:
        return f"{finding.rule} is still found"
    new = sorted(rule for rule in found if found[rule] > left[rule] and rule not in harmless)
    if new:
        return f"{new[0]} is found then"
    return ""


def _ending(before: Outcome, after: Outcome, finding: Finding) -> str:
    if after.failed and after.ended.exception != before.ended.exception:
        return f"the script ends with {_error(after)}"
    if after.failed and finding.error:
        return "the script still fails"
    if finding.rule in after.unjudged - before.unjudged - _FEWER_CALLS:
        return f"{finding.rule} lacks data to judge then"
    return ""


def _calls(before: Outcome, after: Outcome, finding: Finding) -> str:
    if after.steps < before.steps and finding.rule not in _FEWER_STEPS:
        return f"the script makes {after.steps} optimizer steps instead of {before.steps}"
    if not after.backward_calls:
        return "the script makes no backward call then"
    if after.backward_calls < before.backward_calls and not before.failed and finding.rule not in _FEWER_CALLS:
        return f"the script makes {after.backward_calls} backward calls instead of {before.backward_calls}"
    return ""


def _training(before: Outcome, after: Outcome, finding: Finding) -> str:
    may_stop = frozenset(finding.about) if finding.rule in _ABOUT_MOVING else frozenset[str]()
    if finding.rule == "wrong-mode":
        may_stop |= after.reached  # a bias in front of batch norm has no effect in training
    stopped = sorted(before.moving - after.moving - may_stop)
    if stopped:
        return f"{stopped[0]} no longer trains"
    wanted = before.owned_reached if finding.rule in _ABOUT_REACHING else before.reached
    unreached = sorted(wanted - after.reached - may_stop)
    if unreached:
        return f"{unreached[0]} no longer gets a gradient"
    if finding.rule in _ABOUT_TRAINING:
        still = [name for name in finding.about if _is_stuck(after, name)]
        if still:
            return f"{still[0]} still does not train"
    return ""


def _error(outcome: Outcome) -> str:
    return (outcome.ended.exception or "an error").splitlines()[0]


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
    """How many lines the edit removes, adds or changes; a line that moves counts twice."""
    codes = SequenceMatcher(None, before.splitlines(), after.splitlines(), False).get_opcodes()
    return sum(max(end - start, new_end - new) for kind, start, end, new, new_end in codes if kind != "equal")


def unlikeness(before: Outcome, after: Outcome) -> int:
    """In how many parameters the backward calls of the first iteration leave other gradients than before."""
    changed = 0
    for name, life in before.lives.items():
        norms = _first_norms(life)
        changed += norms != _first_norms(after.lives.get(name))[: len(norms)]
    return changed


def _first_norms(life: Life | None) -> tuple[float, ...]:
    return tuple(one.norm for one in life.stretches[0].first.arrivals) if life is not None and life.stretches else ()
