"""The lives of parameters: which backward calls gave each a gradient, and which steps used it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from gradtrace.model.site import Stack


class State(Enum):
    """What became of a parameter in a run; the value is the heading of its group."""

    TRAINS = "trains"
    BY_HAND = "updated by hand"
    FROZEN = "frozen"
    UNOWNED = "in no optimizer"
    UNREACHED = "never reached by a gradient"
    ZERO = "gradient always zero"
    NONFINITE = "gradient not finite"
    UNMOVED = "has a gradient, and no step changes it"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A backward call that left a gradient in the leaf."""

    stack: Stack
    #: what it was called on, as the source says: `loss`
    root: str
    #: the gradient of an earlier call was still there: this one was added to it
    accumulated: bool
    #: the norm of .grad after the call
    norm: float


@dataclass(frozen=True, slots=True)
class StepInterval:
    """From one optimizer step to the next. The last one may lack a step."""

    number: int
    arrivals: tuple[Arrival, ...]
    step: Stack = ()
    optimizer: str = ""
    #: the norm of the gradient that the step used; None where .grad was None
    gradient: float | None = None
    #: the norm of the change of the values, relative to the norm of the values
    update: float | None = None

    @property
    def shape(self) -> tuple[object, ...]:
        """What is alike in equal iterations: all but the numbers."""
        return tuple((one.stack, one.accumulated) for one in self.arrivals), self.step, self.gradient is None


@dataclass(frozen=True, slots=True)
class Stretch:
    """Equal iterations in a row."""

    first: StepInterval
    last: StepInterval
    times: int


@dataclass(frozen=True, slots=True)
class Life:
    """One parameter, or another leaf that a backward call reached."""

    name: str
    shape: tuple[int, ...]
    state: State
    #: where it was made, and the class and place of the optimizer that holds it
    created: Stack
    optimizer: str
    held: Stack
    steps: int
    stretches: tuple[Stretch, ...]
    #: at most `ThinnedSeries.MOST` values each, spread evenly over the run: norms of gradients, and relative updates
    gradients: tuple[float, ...]
    updates: tuple[float, ...]
    #: why it does not train, in one sentence; empty where it does
    reason: str = ""
    #: the line that the reason is about
    at: Stack = ()
    #: the path from the loss to it, or to the cut that ends it, in the user's names: "loss ← head ← encoder.weight"
    path: str = ""
    #: a plain tensor that requires grad and is in no optimizer
    plain: bool = False
    #: how it lies on several ranks: "Shard(0) of 2 ranks"; the norms are then of the part on this rank
    placement: str = ""


@dataclass(frozen=True, slots=True)
class GradientNow:
    """The gradient of a parameter at one moment."""

    name: str
    shape: tuple[int, ...]
    requires_grad: bool
    #: class and place of the optimizer that holds it
    optimizer: str
    #: None where .grad is None
    norm: float | None
    #: the norm of the parameter itself
    size: float
    #: elements of the gradient that are NaN or infinite
    lost: int = 0
