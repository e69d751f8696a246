"""The output of softmax or sigmoid is passed to a loss that applies it again.

Why it matters
    cross_entropy expects logits and applies log_softmax itself; binary_cross_entropy_with_logits applies the sigmoid.
    Probabilities are treated as logits between 0 and 1: gradients are small, the loss stays far from zero, and
    training is slow or stalls without any error.

Bad
    probabilities = F.softmax(classifier(x), dim=1)
    loss = F.cross_entropy(probabilities, labels)
    loss.backward()

Good
    scores = classifier(x)
    loss = F.cross_entropy(scores, labels)
    loss.backward()

The finding is at the first softmax or sigmoid; in an nn.Sequential, at the module that applies it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import DoubleSoftmax, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import constructed


class DoubleSoftmaxRule(Rule):
    id = "double-softmax"
    level = Level.WARNING
    events = (DoubleSoftmax,)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, DoubleSoftmax):
            return []
        message, fix = _words(event)
        return self.finding(
            constructed(event.module) or event.made or event.stack,
            message,
            fix,
            (
                (event.made, f"{event.first} is applied here"),
                (event.stack, f"the output of {event.first} is passed to {_taker(event)} here"),
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
            f"the output of {event.first} is passed to {event.loss}, which expects log-probabilities",
            f"use log_softmax instead of {event.first}",
        )
    if event.first == "log_softmax":
        return (
            f"the output of log_softmax is passed to {event.loss}, which applies log_softmax again, without effect",
            "pass the logits, or use nll_loss",
        )
    if event.loss == "logsumexp":
        return (
            "the output of this softmax is passed to a distribution as logits: softmax is applied again",
            "pass the probabilities as probs=, or the values before softmax as logits=",
        )
    return (
        f"the output of this {event.first} is passed to {event.loss}, which applies {event.second} itself",
        f"pass the logits to {event.loss}, and apply {event.first} only where you need probabilities",
    )
