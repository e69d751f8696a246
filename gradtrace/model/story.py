"""The story of a run: which statement ran, and what changed because of it. Plain values, standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gradtrace.model.finding import Ended, Finding

Number: TypeAlias = bool | int | float | complex


@dataclass(frozen=True, slots=True)
class Value:
    """What a tensor held at one moment: all numbers of a small one, row after row; of a large one its extent."""

    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    numbers: tuple[Number, ...] | None = None
    #: of the finite ones; None where there are none, or where they were not looked at
    low: float | None = None
    mean: float | None = None
    high: float | None = None
    nan: int = 0
    inf: int = 0
    #: every number is exactly zero
    zero: bool = False

    @property
    def size(self) -> float | None:
        """The largest magnitude: one number that shows how a tensor grows; of a single number that number itself."""
        if self.numbers is not None and len(self.numbers) == 1 and not isinstance(self.numbers[0], complex):
            return float(self.numbers[0])
        return None if self.low is None or self.high is None else max(abs(self.low), abs(self.high))


@dataclass(frozen=True, slots=True)
class Made:
    """A variable or attribute got a tensor."""

    name: str
    value: Value
    requires_grad: bool
    leaf: bool
    parameter: bool = False
    #: its grad_fn (`AddBackward0`), and how it was computed: `AddBackward0(MulBackward0(x1, w1), b)`
    op: str = ""
    formula: str = ""
    #: leaves to which gradients flow back from it: names of some, and how many
    reaches: tuple[str, ...] = ()
    reached: int = 0
    #: the variable that is the same tensor, the one whose memory it shares, and the one it is a view of
    same: str = ""
    shares: str = ""
    view: str = ""
    #: why no gradient flows back from it although something it was computed from has a graph: "detach()", "no_grad",
    #: "copied", "not differentiable"; and from what it was computed
    cut: str = ""
    cut_from: tuple[str, ...] = ()
    #: the line of the backward call that has freed a part of its graph; for the tensors at an error
    freed_line: int = 0


@dataclass(frozen=True, slots=True)
class Built:
    """A variable got a module or an optimizer, with its class, its parameters' names and how many numbers they are."""

    name: str
    class_name: str
    optimizer: bool
    parameters: tuple[str, ...]
    count: int
    numbers: int


@dataclass(frozen=True, slots=True)
class Left:
    """Numbers left torch (`item()`), or a tensor was copied: no gradient flows back through that."""

    op: str
    source: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A call of `backward()` or `autograd.grad()`."""

    number: int
    request: str
    root: str
    retain_graph: bool
    create_graph: bool
    #: operations run through
    operations: int
    #: one path in the user's names for each leaf, if there are few: `loss → a → z → w1`
    paths: tuple[str, ...] = ()
    #: leaves reached and how many operations use each; those that require grad but were not reached
    reached: tuple[tuple[str, int], ...] = ()
    missed: tuple[str, ...] = ()
    #: variables whose graph this call has freed, or has kept
    spent: tuple[str, ...] = ()
    error: str | None = None
    #: all of the graph was looked at
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Graded:
    """The .grad of a tensor changed. `change` is "new", "accumulated", "cleared" (None), "zeroed" or "written"."""

    name: str
    change: str
    before: Value | None
    after: Value | None
    #: of one that was cleared or zeroed: no step had used it
    unused: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """The numbers of a tensor changed in place; `step`: by an optimizer."""

    name: str
    before: Value
    after: Value
    versions: tuple[int, int]
    step: bool = False
    #: the operation that saved the old numbers for its backward, and the line that made it
    saved_by: str = ""
    saved_line: int = 0
    #: "parameter", "buffer" of a module, or another "tensor"
    part: str = "tensor"


@dataclass(frozen=True, slots=True)
class Required:
    """A tensor began, or ceased, to require grad."""

    name: str
    requires_grad: bool


@dataclass(frozen=True, slots=True)
class Stepped:
    """An optimizer made a step."""

    optimizer: str


@dataclass(frozen=True, slots=True)
class Mode:
    """Gradients were switched on or off."""

    enabled: bool


@dataclass(frozen=True, slots=True)
class Printed:
    """The script printed. `names` are the variables that the statement reads."""

    text: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Raised:
    """The statement raised an error; `states` are the tensors that it reads, as they were."""

    error: str
    states: tuple[Made, ...] = ()


Fact: TypeAlias = Made | Built | Left | Asked | Graded | Written | Required | Stepped | Mode | Printed | Raised


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One statement that ran, what changed because of it, and the functions of the user's own that it called."""

    number: int
    path: str
    line: int
    source: str
    facts: tuple[Fact, ...] = ()
    calls: tuple[FunctionCall, ...] = ()
    #: it has not ended yet; likewise below
    running: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function ran. Without items where an earlier call has shown the same."""

    function: str
    path: str
    line: int
    #: which tensors it was given: `x = inputs`
    given: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    #: the step in which an earlier call showed the same; 0 where this one is shown
    like: int = 0
    running: bool = False


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration of a loop. `differences`: only the steps that were not as in the iteration before."""

    number: int
    items: tuple[Item, ...]
    differences: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """How one number went from iteration to iteration: the first few of them, and the last."""

    name: str
    first: tuple[float, ...]
    last: float
    count: int
    rises: bool
    falls: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop, or the calls of a function, folded: `count` iterations, of which some are shown."""

    path: str
    line: int
    source: str
    count: int
    shown: tuple[Iteration, ...]
    #: what the iterations that are not shown did
    series: tuple[Series, ...] = ()
    printed: tuple[str, ...] = ()
    #: how many of them were like one that is shown
    alike: int = 0
    running: bool = False


Item: TypeAlias = StoryStep | Loop


@dataclass(frozen=True)
class Story:
    """The whole."""

    script: str
    items: tuple[Item, ...]
    ended: Ended
    #: by number of the step
    findings: Mapping[int, tuple[Finding, ...]] = field(default_factory=dict)
    #: those whose line is in no step shown
    elsewhere: tuple[Finding, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chapter:
    """A part of the story: "setup", "request", "loop" or "output"."""

    kind: str
    title: str
    items: tuple[Item, ...]


def asks(item: Item) -> list[Asked]:
    """The gradient requests in a step or loop, in what it calls or repeats."""
    if isinstance(item, Loop):
        return [found for iteration in item.shown for one in iteration.items for found in asks(one)]
    own = [fact for fact in item.facts if isinstance(fact, Asked)]
    return own + [found for call in item.calls for one in call.items for found in asks(one)]


def prints(item: Item) -> bool:
    """Whether a step prints and does nothing else of note."""
    return isinstance(item, StoryStep) and any(isinstance(fact, Printed) for fact in item.facts)


def chapters(items: tuple[Item, ...], first: str = "setup") -> tuple[Chapter, ...]:
    """The parts in the order in which one reads such a script: setup, each gradient request, output."""
    last = max((at for at, item in enumerate(items) if asks(item)), default=-1)
    found: list[tuple[str, str, list[Item]]] = [(first, "", [])]
    for at, item in enumerate(items):
        asked = [fact for fact in item.facts if isinstance(fact, Asked)] if isinstance(item, StoryStep) else asks(item)
        if isinstance(item, Loop) and asked:
            found.append(("loop", item.source, []))
        elif asked and isinstance(item, StoryStep):
            first_asked, last_asked = asked[0].number, asked[-1].number
            title = f"{first_asked}" if first_asked == last_asked else f"{first_asked} to {last_asked}"
            found.append(("request", title, []))
        elif at > last >= 0 and prints(item) and found[-1][0] != "output":
            found.append(("output", "", []))
        elif found[-1][0] == "loop":
            found.append(("after", "", []))
        found[-1][2].append(item)
    return tuple(Chapter(kind, title, tuple(parts)) for kind, title, parts in found if parts)
