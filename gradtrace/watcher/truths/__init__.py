"""Observers of what must hold of every training run: finite losses and gradients, steps that are made and have an effect,
modes, schedules and parameters that stay as they were meant."""

from __future__ import annotations

from gradtrace.watcher.core.observer import Observer
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.parameters.births import Births
from gradtrace.watcher.truths.attributes import Attributes
from gradtrace.watcher.truths.effects import Effects
from gradtrace.watcher.truths.finite import Finite
from gradtrace.watcher.truths.gradcheck import BackwardChecks
from gradtrace.watcher.truths.idle import IdleOptimizers
from gradtrace.watcher.truths.modes import Modes
from gradtrace.watcher.truths.schedules import Schedules
from gradtrace.watcher.truths.statistics import Statistics
from gradtrace.watcher.truths.ties import Ties


def observers(session: Session, births: Births, gradcheck: bool) -> list[Observer]:
    """One of each; `gradcheck` runs custom Functions again, to try their backward."""
    return [
        *([BackwardChecks(session)] if gradcheck else []),
        Finite(session),
        Effects(session, births),
        IdleOptimizers(session, births),
        Modes(session),
        Schedules(session),
        Statistics(session),
        Attributes(session),
        Ties(session, births),
    ]
