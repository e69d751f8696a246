"""Facts about a whole training run: what must hold of every sound one, and where it did not hold of this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from gradtrace.model.site import Stack


@dataclass(frozen=True, slots=True)
class Truth:
    """Something that holds of every sound run: how often it was looked at, and how often it did not hold.

    `kind` is "losses are finite", "gradients are finite", "optimizers step", "steps find gradients", "steps change
    parameters" or "gradients are not zero".
    """

    kind: str
    checked: int
    broken: int = 0
    #: the user's names for what broke it, a few of them
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NonFiniteStep:
    """A step used gradients that are NaN or infinite."""

    optimizer: str
    stack: Stack
    names: tuple[str, ...]
    count: int
    #: parameters are NaN or infinite after it
    spoiled: bool
    #: the operation outside of any graph that made the NaN or infinity (`div_`), and where
    op: str = ""
    born: Stack = ()
    #: where the user's code put a gradient in place, since the last backward call
    written: Stack = ()


@dataclass(frozen=True, slots=True)
class NonFiniteLoss:
    """A backward call on a value that is NaN or infinite, whose gradients a step used."""

    root: str
    stack: Stack
    step: Stack
    #: steps that used gradients of such calls
    times: int = 1


@dataclass(frozen=True, slots=True)
class NeverStepped:
    """An optimizer made no step in a run that came to its end, and no other one moved its parameters."""

    optimizer: str
    made: Stack
    names: tuple[str, ...]
    count: int
    #: backward calls that gave gradients to its parameters, the place of most of them, and the user's expression there
    calls: int
    backward: Stack = ()
    root: str = ""
    #: those of the calls whose gradients another optimizer has used, for its own parameters
    by_the_way: int = 0
    #: steps that others made after its first gradients
    others: int = 0
    #: a GradScaler looked for infinite gradients, and may have left out each step
    scaled: bool = False
    #: the user's code reads these gradients: it may use them itself
    read: bool = False
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoEffect:
    """Steps of an optimizer that changed none of its parameters, in a row.

    `why` is "rate" (the learning rate is 0) or "precision" (there are gradients, but the updates are lost to rounding).
    `when` is "always", "start", "end" or "between".
    """

    optimizer: str
    stack: Stack
    why: str
    when: str
    #: steps in a row, and all steps
    steps: int
    of: int
    made: Stack = ()
    dtype: str = ""


@dataclass(frozen=True, slots=True)
class LeftInEvaluation:
    """Steps train dropout or batch norm in evaluation mode, though they had trained in training mode before: an evaluation
    came in between, and nothing switched back."""

    #: where the mode was switched, the backward call, the step, and the layer
    switched: Stack
    backward: Stack
    step: Stack
    layer: Stack
    #: where training mode was switched on last; empty where it never was
    back: Stack = ()
    #: places from which this line was reached
    callers: int = 1


@dataclass(frozen=True, slots=True)
class TrainedInEvaluation:
    """No dropout and no batch norm ever trained in training mode: a model that holds such layers was switched to evaluation
    mode before its first backward call."""

    switched: Stack
    backward: Stack
    layer: Stack


@dataclass(frozen=True, slots=True)
class EvaluatedInTraining:
    """A layer that trains ran several times in a row without gradients, in training mode as before, and numbers were read
    from the results."""

    layer: Stack


@dataclass(frozen=True, slots=True)
class DropoutInEvaluation:
    """Functional dropout was active in a module that ran in evaluation mode without gradients."""

    stack: Stack
    calls: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """A learning rate scheduler, at the end of the run: its steps beside those of its optimizer."""

    scheduler: str
    optimizer: str
    made: Stack
    #: the place of most of its steps, and how many there were
    place: Stack
    stepped: int
    #: those of them before the first step of the optimizer
    early: int
    #: steps of the optimizer; windows between two of them, and those that held several steps of the scheduler, one for each
    #: backward call
    steps: int
    windows: int
    crowded: int
    #: the optimizer's last steps in a row with a learning rate of 0
    idle: int
    #: a GradScaler may have skipped steps of the optimizer
    scaled: bool = False
    #: the run came to its end
    complete: bool = True


@dataclass(frozen=True, slots=True)
class WrongBackward:
    """The backward of a custom Function does not give the slope of its forward, on inputs that it really got."""

    function: str
    #: the `def` lines
    backward: Stack
    forward: Stack
    #: which input, what the backward gave along some direction, and the slope along it by finite differences
    index: int
    given: str
    slope: str


@dataclass(frozen=True, slots=True)
class IgnoredAttribute:
    """An attribute like `requires_grad` that nothing reads: misspelt on a tensor, or set on a module."""

    attribute: str
    #: "tensor" or "module"
    kind: str
    names: tuple[str, ...]
    count: int
    #: of the user's code
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokenTie:
    """Two modules shared one parameter, and now train two."""

    names: tuple[str, ...]
    #: where they were tied, and where one of the two was replaced
    tied: Stack
    parted: Stack = ()
    #: the replacement was a copy of the shared values, made for this parameter alone
    on_purpose: bool = False


@dataclass(frozen=True, slots=True)
class HeldTwice:
    """An optimizer holds parameters twice: each of its steps moves them twice."""

    optimizer: str
    names: tuple[str, ...]
    count: int
    made: Stack


@dataclass(frozen=True, slots=True)
class FrozenStatistics:
    """Batch norm with frozen weights updates its running statistics in training."""

    stack: Stack
    calls: int


@dataclass(frozen=True, slots=True)
class DiscardedResult:
    """A statement without an effect: `kind` is "detach" (its result is discarded), "context" (torch.no_grad() that nothing
    enters) or "uncalled" (a method without parentheses)."""

    text: str
    stack: Stack
    kind: str


RunFact: TypeAlias = (
    Truth
    | NonFiniteStep
    | NonFiniteLoss
    | NeverStepped
    | NoEffect
    | LeftInEvaluation
    | TrainedInEvaluation
    | EvaluatedInTraining
    | DropoutInEvaluation
    | Schedule
    | WrongBackward
    | IgnoredAttribute
    | BrokenTie
    | HeldTwice
    | FrozenStatistics
    | DiscardedResult
)
