"""Gradients of one loss accumulate in parameters of another optimizer, whose step then uses them.

Why it matters
    backward() accumulates gradients in every parameter that the loss depends on, not only in those that it should train.
    A generator's loss also reaches the discriminator, a policy's loss also the critic, a student's loss also the
    teacher. If these gradients are still there when the other network's optimizer steps, that network is trained on the
    wrong loss as well.

Bad
    for real, z in data:
        d_loss = disc(gen(z).detach()).mean() - disc(real).mean()
        d_loss.backward()
        d_opt.step()
        d_opt.zero_grad()

        g_loss = -disc(gen(z)).mean()
        g_loss.backward()
        g_opt.step()
        g_opt.zero_grad()  # the discriminator keeps the gradients of g_loss

Good
    for real, z in data:
        d_loss = disc(gen(z).detach()).mean() - disc(real).mean()
        d_opt.zero_grad()  # right before its own backward call
        d_loss.backward()
        d_opt.step()

        g_loss = -disc(gen(z)).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()

Or keep the loss from reaching the other network: `advantage = reward - value.detach()`, `with torch.no_grad():` around a
target network, requires_grad_(False) on a discriminator while the generator trains. The finding is at the backward call
whose gradients reach the wrong parameters. Gradients that are cleared before a step uses them, layers shared by two optimizers and
losses that are summed on purpose are fine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from gradtrace.model.events import Clipped, Collected, End, Event, Given, OptimizerStep
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.site import Stack
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import within
from gradtrace.rules.judging.evidence import FOLLOWED, REGULARLY, TWICE, oldest_beyond
from gradtrace.rules.judging.intent import is_opponent, passes_through
from gradtrace.rules.judging.naming import leaves_of, loss_of, step_call
from gradtrace.source import questions

_Pair: TypeAlias = tuple[int, Stack, Stack]


class LeakedGrad(Rule):
    id = "leaked-grad"
    level = Level.ERROR
    events = (OptimizerStep, Clipped, Collected, End)
    needs = Needs(calls=2, steps=2)

    def __init__(self) -> None:
        self._after: dict[_Pair, int] = {}
        self._together: dict[_Pair, int] = {}
        self._attacks: dict[_Pair, int] = {}
        #: the lines whose calls the first step of each optimizer used
        self._first: dict[int, frozenset[Stack]] = {}
        self._clips: dict[Stack, int] = {}
        self._clipped: dict[Stack, tuple[Clipped, Given]] = {}
        self._collected: list[Collected] = []

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, OptimizerStep):
            return self._fed(event)
        if isinstance(event, Clipped):
            self._clip(event)
        elif isinstance(event, Collected):
            self._collected.append(event)
        elif isinstance(event, End):
            return self._at_end()
        return []

    def _fed(self, step: OptimizerStep) -> list[Finding]:
        if step.given:
            self._first.setdefault(step.key, frozenset(one.stack for one in step.given))
            oldest_beyond(FOLLOWED, self._first)
        if step.stale or len(step.given) < 2:
            return []
        for one in step.given[:-1]:
            found = self._left_behind(step, one) or self._added(step, one) or self._undetached(step, one)
            found = found or self._attack(step, one)
            if found:
                return found
        return self._added(step, step.given[-1])

    def _left_behind(self, step: OptimizerStep, one: Given) -> list[Finding]:
        """Another optimizer has made its step with the gradients of this call; then came this optimizer's own loss."""
        own = step.given[-1]
        used_before = any(number < own.call for _, number in one.taken)
        if not used_before or own.stack == one.stack or own.taken or not own.foreign <= one.foreign:
            return []
        if one.feeds and not own.foreign and one.stack in self._first.get(step.key, ()):
            return []  # an encoder that has a loss of its own as well
        if not self._often(self._after, (step.key, one.stack, own.stack), TWICE):
            return []
        return self.finding(
            one.stack,
            f"{loss_of(one)} also leaves gradients in {leaves_of(one)}, and `{step_call(step)}` uses their sum with the "
            f"gradients of {loss_of(own, 'a later call')}: nothing cleared them in between",
            f"clear the gradients before {loss_of(own, 'the next loss')} is backpropagated, or keep {loss_of(one)} from reaching "
            "these parameters (detach, requires_grad_(False))",
            (
                *_entry(one),
                (own.stack, "the intended gradients are added here"),
                (step.stack, "this step uses the sum"),
            ),
        )

    def _added(self, step: OptimizerStep, one: Given) -> list[Finding]:
        """Two losses before both steps: that of a judge, and one that only passes through it on the way to others."""
        if not one.foreign or one.feeds:
            return []
        own = next((other for other in reversed(step.given) if not other.foreign and other.stack != one.stack), None)
        if own is None or any(number < own.call for _, number in one.taken) or not passes_through(one, own):
            return []
        if not self._often(self._together, (step.key, one.stack, own.stack), REGULARLY):
            return []
        fix = (
            f"use .detach() to keep {loss_of(one)} from reaching these parameters"
            if one.weighs
            else "call requires_grad_(False) on these parameters during this call"
        )
        return self.finding(
            one.stack,
            f"{loss_of(one)}, which trains other parameters, also accumulates gradients in {leaves_of(one)}, and "
            f"`{step_call(step)}` uses their sum with the gradients of {loss_of(own, 'another call')}",
            f"{fix}, or clear them before {loss_of(own, 'the other loss')} is backpropagated",
            (
                *_entry(one),
                (own.stack, "this loss should train these parameters"),
                (step.stack, "this step uses the sum"),
            ),
        )

    def _undetached(self, step: OptimizerStep, one: Given) -> list[Finding]:
        """A discriminator's loss goes on into the generator, and both losses come before both steps."""
        own = next((other for other in reversed(step.given) if is_opponent(one, other)), None)
        if own is None or own.foreign != one.foreign or one.taken != own.taken:
            return []
        if not self._often(self._together, (step.key, one.stack, own.stack), REGULARLY):
            return []
        return self.finding(
            one.stack,
            f"{loss_of(one)} also accumulates gradients in {leaves_of(one)}, and `{step_call(step)}` uses their sum with the "
            f"gradients of {loss_of(own)}: the generator's output was not detached",
            f"compute {loss_of(one)} from the detached output of the generator (`.detach()`)",
            (
                *_entry(one),
                (own.stack, "this loss should train these parameters"),
                (step.stack, "this step uses the sum"),
            ),
        )

    def _attack(self, step: OptimizerStep, one: Given) -> list[Finding]:
        """A call made for the gradient of an input."""
        own = step.given[-1]
        calls = sum(other.stack == one.stack for other in step.given)
        elsewhere = bool(one.stack and step.stack) and one.stack[0].function != step.stack[0].function
        if not one.input_read or own.input_read or own.stack == one.stack or not (calls > 1 or elsewhere):
            return []
        if not self._often(self._attacks, (step.key, one.stack, own.stack), TWICE):
            return []
        return self.finding(
            one.stack,
            f"{loss_of(one)} is backpropagated for the gradient of an input, but also leaves gradients in "
            f"{leaves_of(one)}, and `{step_call(step)}` uses their sum with the gradients of "
            f"{loss_of(own, 'the training loss')}",
            "compute the input's gradient with torch.autograd.grad(loss, input), or clear the gradients before the "
            "training loss",
            ((own.stack, "the intended gradients are added here"), (step.stack, "this step uses the sum")),
            Level.ERROR if calls > 1 else Level.WARNING,
        )

    def _clip(self, clip: Clipped) -> None:
        if clip.strays is not None and clip.fate == "used":
            self._clips[clip.stack] = self._clips.get(clip.stack, 0) + 1
            self._clipped[clip.stack] = clip, clip.strays

    def _at_end(self) -> list[Finding]:
        found: list[Finding] = []
        reported = set()
        for stack, (clip, strays) in self._clipped.items():
            if self._clips[stack] >= REGULARLY:
                reported.add(strays.stack)
                found += self._inflated(clip, strays)
        for event in self._collected:
            if (event.twin or event.compared) and event.given.stack not in reported:
                found += self._gathered(event)
        return found

    def _inflated(self, clip: Clipped, strays: Given) -> list[Finding]:
        return self.finding(
            strays.stack,
            f"{loss_of(strays)} also accumulates gradients in {leaves_of(strays)}, which no optimizer holds and nothing "
            f"clears: the sum of {clip.summed} calls so far is part of the norm by which `{clip.op}` scales all gradients",
            "compute with these parameters under torch.no_grad(), or call requires_grad_(False) on them, and clip only the "
            "parameters that the optimizer holds",
            (*_entry(strays), (clip.stack, "all gradients are clipped together here")),
        )

    def _gathered(self, event: Collected) -> list[Finding]:
        one = event.given
        return self.finding(
            one.stack,
            f"{loss_of(one)} also accumulates gradients in {leaves_of(one)}, which no optimizer holds: {event.calls} calls "
            "have added to them, and they are never used or cleared",
            "compute with these parameters under torch.no_grad(), or call requires_grad_(False) on them",
            (*_entry(one), (event.step, "this step uses only the other gradients")),
            # a network that stays as it is may be there to compare with, and is only run with more effort than needed
            Level.WARNING if event.written else Level.NOTE,
        )

    @staticmethod
    def _often(seen: dict[_Pair, int], pair: _Pair, times: int) -> bool:
        seen[pair] = seen.get(pair, 0) + 1
        return seen[pair] >= times


def _entry(one: Given) -> Iterable[tuple[Stack, str]]:
    if one.entry:
        yield _called_by_name(one) or within(one.entry, 1), "these parameters are reached through this line"


def _called_by_name(one: Given) -> Stack:
    """Where the module that holds all of them is called within another one: `self.target(x)` in its forward."""
    held = _shared_name(one.leaves)
    for depth, site in enumerate(one.entry):
        named = {text.rpartition(".")[2] for text in questions.reads(site) if "." in text}
        if held in named and site.in_module_call:
            return one.entry[depth:]
    return ()


def _shared_name(names: tuple[str, ...]) -> str:
    """The attribute that holds all of these: `target` of `net.target.0.weight` and `net.target.0.bias`."""
    paths = [name.split(".") for name in names]
    shared = [parts[0] for parts in zip(*paths, strict=False) if len({*parts}) == 1]
    return next((part for part in reversed(shared) if not part.isdigit()), "")
