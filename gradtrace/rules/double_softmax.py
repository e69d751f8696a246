"""Softmax or sigmoid goes into a loss that applies it again.

Why it matters
    cross_entropy takes raw scores and applies log_softmax itself; binary_cross_entropy_with_logits applies the sigmoid.
    Fed with probabilities, they see scores between 0 and 1: gradients are flat, the loss stays far from zero, and
    training is slow or stops early without any error.

Bad
    probabilities = F.softmax(classifier(x), dim=1)
    loss = F.cross_entropy(probabilities, labels)
    loss.backward()

Good
    scores = classifier(x)
    loss = F.cross_entropy(scores, labels)
    loss.backward()

The finding is at the first softmax or sigmoid, in an nn.Sequential at the module that applies it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import DoubleSoftmax, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule
from gradtrace.source.construction import construction


class DoubleSoftmaxRule(Rule):
    id = "double-softmax"
    level = Level.WARNING
    hears = (DoubleSoftmax,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, DoubleSoftmax):
            return []
        message, mend = _words(event)
        site = construction(event.module) if event.module else None
        return self.finding(
            (site,) if site else event.made or event.stack,
            message,
            mend,
            (
                (event.made, f"{event.first} is applied here"),
                (event.stack, f"{_taker(event)} takes it in here"),
                (event.made[1:], "called from here"),
            ),
            # applied twice it is what it is applied once
            Level.NOTE if event.first == "log_softmax" and event.second != "logarithm" else None,
        )


def _taker(event: DoubleSoftmax) -> str:
    return "a distribution" if event.loss == "logsumexp" else event.loss


def _words(event: DoubleSoftmax) -> tuple[str, str]:
    if event.second == "logarithm":
        return (
            f"the output of {event.first} goes into {event.loss}, which takes the logarithms of probabilities",
            "use log_softmax here",
        )
    if event.first == "log_softmax":
        return (
            f"the output of log_softmax goes into {event.loss}, which applies it again, to no effect",
            "pass the raw scores, or use nll_loss",
        )
    if event.loss == "logsumexp":
        return (
            "the output of this softmax is taken for scores: softmax is applied to it again",
            "pass probs=, or the raw scores as logits=, to a distribution",
        )
    return (
        f"the output of this {event.first} goes into {event.loss}, which applies {event.second} itself",
        f"pass the raw scores to the loss, and apply {event.first} only where probabilities are read",
    )
