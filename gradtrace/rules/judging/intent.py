"""Is it meant: what looks like a fault and is a choice, by what the run shows and what the source says.

No name of a variable decides here. What people call a target, a teacher or a critic is known by what becomes of it: who owns
it, what it is compared with, and where a loss drives it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Given, NonFinite, Unreached
from gradtrace.model.site import Site, Stack
from gradtrace.source import questions, switches

#: what half precision brings about; a division by zero is a fault of its own
_OF_HALF_PRECISION = ("overflow", "custom", "unknown", "inf")


# errors


def expects_error(stacks: Iterable[Stack]) -> bool:
    """Whether a test wants the error: a frame stands in `with pytest.raises(...):`."""
    return any(questions.expects_error(site.path, site.line) for stack in stacks for site in stack)


def has_answer(stack: Stack) -> bool:
    """Whether the script has an answer to an error: a `try` around the line, whose handler gives another value."""
    return bool(stack) and questions.falls_back(stack[0])


# gradients that somebody else takes care of


def is_unused(one: Given) -> bool:
    """Whether neither another optimizer's step nor the script's own code has used these gradients."""
    return not one.taken and not one.read


def is_watched(one: Given) -> bool:
    """Whether the script's own code looks at these gradients, or a GradScaler, which may leave out the step."""
    return one.read or one.heard or one.checked


def skips_step(event: NonFinite) -> bool:
    """Whether a GradScaler skips the step with these gradients, as it is there to do."""
    return event.scaled and event.kind in _OF_HALF_PRECISION


# what this run did not show


def later_calls(site: Site, names: tuple[str, ...]) -> list[int]:
    """The lines below that call one of `names` under a condition: another run, or a longer one, may reach them."""
    return questions.conditional(site, names)


def ended_by(cut: Stack, backward: Stack) -> str:
    """The flag, or the threshold with a name, that ends a stage of training by this cut; empty where there is none."""
    return switches.switch_before(cut, backward)


# networks that are not trained


def may_be_untrained(event: Unreached) -> bool:
    """Whether parameters may be without gradients on purpose: loaded, in evaluation mode, made by a library, one of several
    to pick from, or there to compare with."""
    return bool(event.excuse)


def is_reference(event: Unreached) -> bool:
    """Whether what is computed from these parameters is only compared with what is trained, as a random target is."""
    return event.excuse == "compared"


# two networks with losses of their own


def passes_through(one: Given, own: Given) -> bool:
    """Whether a loss runs through these leaves only on its way to another optimizer's, which it is there to train.

    That is so where it only weighs the others' results, as an advantage does; where it is the plain output of these leaves,
    which no network should learn to raise; and where `own`, their own loss, takes the others' results as constants.
    """
    return one.weighs or one.outright or not own.kept_from.isdisjoint(one.foreign)


def is_opponent(one: Given, other: Given) -> bool:
    """Whether two losses drive what the same two networks compute together to different places, and only `one` also
    drives what the second network makes of data: the losses of a discriminator and of its generator."""
    both = one.feeds and other.feeds and one.apart and not other.apart
    return both and bool(one.goals and other.goals) and set(one.goals).isdisjoint(other.goals)
