"""One rule a file: every module here that defines a `Rule` is one, and is found by being here.

The package `judging` is none: it answers what several rules ask.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

from gradtrace.errors import first_line
from gradtrace.model.events import Backward, Event, Step, Unseen
from gradtrace.model.finding import Finding, Level, Unjudged
from gradtrace.model.manual import Manual, read
from gradtrace.model.site import Stack
from gradtrace.model.truths import Truth
from gradtrace.rules.base import Rule

#: stretches of ranks that a text names
_PIECES = 8


def all_rules() -> tuple[type[Rule], ...]:
    """Every rule, by name."""
    names = [found.name for found in pkgutil.iter_modules(__path__) if not found.ispkg]
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    kinds = {kind for module in modules for kind in vars(module).values() if type(kind) is type(Rule)}
    return tuple(
        sorted((kind for kind in kinds if issubclass(kind, Rule) and kind is not Rule), key=lambda kind: kind.id)
    )


def manuals() -> tuple[Manual, ...]:
    """What there is to say about every rule, by name."""
    docstrings = ((kind, sys.modules[kind.__module__].__doc__ or "") for kind in all_rules())
    return tuple(read(kind.id, kind.level, docstring, kind.needs) for kind, docstring in docstrings)


#: parameters that a finding is remembered to be about
_ABOUT = 64


def _about(event: Event) -> tuple[str, ...]:
    """The user's names of the parameters that an event is about."""
    names = getattr(event, "names", ()) or getattr(event, "leaves", ())
    for use in getattr(event, "uses", ()) if not names else ():
        if len(use.contributions) > 1:
            names += use.leaves
    return tuple(names)


def in_words(ranks: Iterable[int]) -> str:
    """ "rank 3" or "ranks 0 to 3, 7"; of many some."""
    found = sorted(set(ranks))
    pieces: list[list[int]] = []
    for rank in found:
        if pieces and rank == pieces[-1][1] + 1:
            pieces[-1][1] = rank
        else:
            pieces.append([rank, rank])
    words = [str(first) if first == last else f"{first} to {last}" for first, last in pieces[:_PIECES]]
    for at, (first, last) in enumerate(pieces[:_PIECES]):
        if last == first + 1:
            words[at] = f"{first}, {last}"
    more = len(found) - sum(last - first + 1 for first, last in pieces[:_PIECES])
    return f"rank{'s' * (len(found) > 1)} {', '.join(words)}" + (f" and {more:,} more" if more else "")


class Judge:
    """Feeds events to rules and gathers what they find; the same fault at the same line is one finding."""

    def __init__(self, rules: Iterable[Rule] | None = None, levels: Mapping[str, Level] | None = None) -> None:
        self._rules = [kind() for kind in all_rules()] if rules is None else list(rules)
        self._levels = levels or {}
        self._listeners: defaultdict[type[Any], list[Rule]] = defaultdict(list)
        for rule in self._rules:
            for kind in rule.events:
                self._listeners[kind].append(rule)
        self._findings: dict[tuple[str, str, int], Finding] = {}
        self._calls = self._steps = 0
        #: what holds of the run as a whole, known at its end
        self.truths: tuple[Truth, ...] = ()
        #: what could not be seen for rules, and why
        self._unseen: dict[str, str] = {}
        #: what rules themselves failed by
        self._errors: dict[str, str] = {}
        #: an internal error kept rules from judging
        self.failed = False
        #: the ordinary backward calls and steps since the last other one, by place
        self._ordinary: set[tuple[type[Any], Stack]] = set()

    def copy(self) -> Judge:
        """Another judge that has seen the same, and goes its own way from here."""
        return copy.deepcopy(self)

    def see(self, event: Event) -> None:
        if isinstance(event, Unseen):
            self._miss(event)
            return
        if isinstance(event, (Backward, Step)) and self._is_known(event):
            return
        if isinstance(event, Truth):
            self.truths += (event,)
        for rule in self._listeners[type(event)]:
            try:
                found = list(rule.see(event))
            except Exception as error:  # noqa: BLE001 - a rule that fails must not keep the others from judging
                self._fail(rule, error)
                continue
            for finding in found:
                explained = getattr(event, "error", None)
                about = finding.about or _about(event)
                self._add(replace(finding, level=self._level(rule, finding), error=explained, about=about))

    def _miss(self, event: Unseen) -> None:
        """Rules that need what is not seen any more keep what they found, and judge no further."""
        self.failed = self.failed or event.failed
        for rule in self._rules:
            kinds = {kind.__name__ for kind in (*rule.events, *rule.reads)}
            if not event.what or not kinds.union(rule.needs.abilities).isdisjoint(event.what):
                self._silence(rule, event.why)

    def _fail(self, rule: Rule, error: Exception) -> None:
        self.failed = True
        self._silence(rule, "an internal error stopped the rule")
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = first_line(error)
        self._errors[rule.id] = f"internal error in the rule {rule.id} ({text}, at {where.name}:{where.lineno})"

    def _silence(self, rule: Rule, why: str) -> None:
        self._unseen.setdefault(rule.id, why)
        for kind, rules in self._listeners.items():
            self._listeners[kind] = [one for one in rules if one is not rule]

    def _is_known(self, event: Backward | Step) -> bool:
        """Counts it; whether rules have just seen one with the same content."""
        kind = type(event)
        self._calls += kind is Backward
        self._steps += kind is Step
        if not event.ordinary:
            self._ordinary.clear()
            return False
        known = (kind, event.stack) in self._ordinary
        self._ordinary.add((kind, event.stack))
        return known

    def explains(self, exception: str | None, among: Iterable[Finding] | None = None) -> bool:
        """Whether a finding, of all or `among` these, is about this exception ("RuntimeError: message")."""
        findings = self._findings.values() if among is None else among
        return exception is not None and exception.splitlines()[0] in {finding.error for finding in findings}

    def _level(self, rule: Rule, finding: Finding) -> Level:
        """The level that the user wants; what the rule itself takes less seriously is not raised."""
        wanted = self._levels.get(rule.id)
        if wanted is None:
            return finding.level
        return wanted if finding.level >= rule.level else min(finding.level, wanted)

    def _add(self, finding: Finding) -> None:
        key = finding.rule, *finding.site.place
        known = self._findings.get(key)
        if known is None:
            self._findings[key] = finding
        else:
            worse = finding if finding.level > known.level else known
            times = known.occurrences + finding.occurrences
            about = tuple(dict.fromkeys(known.about + finding.about))[:_ABOUT]
            error = finding.error or known.error
            self._findings[key] = replace(worse, occurrences=times, error=error, about=about)

    def join(self, own: int, others: Mapping[int, Iterable[Finding]]) -> None:
        """Adds what `others` found, by rank, to the findings of rank `own` (-1: of a process that is none of them); those
        of some ranks alone say so."""
        known = [own] if own >= 0 else []
        ranks: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
        for key in self._findings:
            ranks[key] += known
        for rank, findings in others.items():
            for finding in findings:
                ranks[finding.place].append(rank)
                self._add(finding)
        for key, found in ranks.items():
            finding = self._findings[key]
            where = "" if len(found) >= len(others) + len(known) or not found else f" (on {in_words(found)})"
            self._findings[key] = replace(finding, message=f"{finding.message}{where}", ranks=tuple(sorted(found)))

    def counts(self, calls: int, steps: int) -> None:
        """Another rank made so many backward calls and steps: rules lack data only where all ranks made too few."""
        self._calls, self._steps = max(self._calls, calls), max(self._steps, steps)

    @property
    def found(self) -> int:
        """How many findings there are so far."""
        return len(self._findings)

    @property
    def places(self) -> Set[tuple[str, str, int]]:
        """Rule, file and line of each finding so far."""
        return self._findings.keys()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What rules failed by."""
        return tuple(self._errors.values())

    @property
    def judged(self) -> frozenset[str]:
        """The rules that have their say."""
        return frozenset(rule.id for rule in self._rules)

    @property
    def unjudged(self) -> tuple[Unjudged, ...]:
        """The rules that saw too little and found nothing, and those from which something was kept."""
        whys = {rule.id: rule.needs.unmet(self._calls, self._steps) for rule in self._rules} | self._unseen
        found = {name for name, *_ in self._findings}
        return tuple(
            Unjudged(rule, why) for rule, why in whys.items() if why and (rule not in found or rule in self._unseen)
        )

    @property
    def count(self) -> int:
        """How many findings there are so far, those that others cover included."""
        return len(self._findings)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The worst first, then in the order of their first occurrence."""
        covered = {
            (other, *at): (name, *at)
            for rule in self._rules
            for name, *at in self._findings
            if name == rule.id
            for other in rule.covers
        }
        errors = {by: self._findings[key].error for key, by in covered.items() if key in self._findings}
        found = (
            replace(finding, error=finding.error or errors.get(key))
            for key, finding in self._findings.items()
            if key not in covered
        )
        return tuple(sorted(found, key=lambda finding: -finding.level))
