"""What the processes of one job say about themselves: where each one is, what it found, and the facts that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeGuard, get_args

from gradtrace.model.finding import Ended, Finding
from gradtrace.model.site import Stack


@dataclass(frozen=True, slots=True)
class LastSeen:
    """A sign of life of one process. `doing` is "starting", "joining", "running backward" or "stepping"."""

    rank: int
    host: str
    pid: int
    #: seconds since the epoch, by the clock of its machine
    at: float
    doing: str = "starting"
    calls: int = 0
    steps: int = 0
    #: the user's line, where one is known
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaUse:
    """One DistributedDataParallel module of this rank at the end of the run: how its gradients were made and reduced."""

    #: the user's names of what it wraps: a class, and where the wrapper was made and its `forward` last called
    kind: str
    made: Stack
    called: Stack
    #: backward calls that reached its parameters, in training mode; those of them that reduced gradients
    calls: int
    reduced: int
    #: where most of the others are, and why nothing was reduced there: "no_sync" or "bypassed"
    unreduced: Stack = ()
    why: str = ""
    #: steps on its parameters, and those of them that used gradients of a last backward call that was not reduced
    steps: int = 0
    local_steps: int = 0
    step: Stack = ()
    #: find_unused_parameters=True, and the calls after which a parameter had no gradient
    finds_unused: bool = False
    unused: int = 0
    #: static_graph=True
    static: bool = False
    #: windows between two steps, and those in which one line reduced several times; how often at most, and which line
    windows: int = 0
    crowded: int = 0
    most: int = 0
    backward: Stack = ()
    #: parameters, and their bytes
    parameters: int = 0
    bytes: int = 0
    #: it spans all ranks of the job
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Digests:
    """Checksums of the parameters of one optimizer, or of their gradients, after some of its steps.

    `values[i]` belongs to the step `steps[i]` and holds one number for each of `names`, as text with commas between.
    Equal tensors have equal numbers on every rank and machine.
    """

    #: "parameters" or "gradients"
    what: str
    #: which optimizer of this rank, in the order of their first steps, and its class
    optimizer: int
    kind: str
    step: Stack
    made: Stack
    #: the user's names, or the first and the last of a group of parameters that share a number
    names: tuple[str, ...]
    #: shapes and dtypes, to tell whether two ranks hold the same model
    layout: str
    steps: tuple[int, ...]
    values: tuple[str, ...]
    #: of those that a DistributedDataParallel module holds, by index into `names`
    replicated: tuple[int, ...] = ()
    #: they are shards of larger tensors
    sharded: bool = False
    #: all steps of this optimizer
    total: int = 0
    #: elements of all its parameters, and where the first of them was made
    elements: int = 0
    born: Stack = ()


@dataclass(frozen=True, slots=True)
class InputDigests:
    """Checksums of what went into a DistributedDataParallel module in training, one for each call that was looked at."""

    called: Stack
    made: Stack
    values: tuple[int, ...]
    #: the numbers of these calls, from 1
    calls: tuple[int, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class UnfinishedReduction:
    """DistributedDataParallel raised "Expected to have finished reduction": the backward call before gave some of its
    parameters no gradient."""

    #: the error, "RuntimeError: message", its first line
    error: str
    #: where the wrapper was called, where it was made, and the last backward call
    called: Stack
    made: Stack
    backward: Stack
    #: the parameters by their names in the wrapped module, a few of them, and where their modules registered them
    names: tuple[str, ...]
    count: int
    registered: tuple[Stack, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplerOrder:
    """A shuffling DistributedSampler was iterated again with the same epoch, so that it gave the same order."""

    made: Stack
    #: where the loop over it begins
    used: Stack
    times: int
    epoch: int
    #: steps were made in between
    trains: bool


@dataclass(frozen=True, slots=True)
class GatheredConstant:
    """What `all_gather` gave for a tensor with a graph entered a loss, as constants: no gradient flows back through it."""

    #: the operation, its place, and the user's name for what was gathered
    operation: str
    stack: Stack
    source: str
    #: the backward call whose graph they entered, and its root
    backward: Stack
    root: str
    #: the tensor itself is in that graph as well
    beside: bool
    times: int = 1


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the script itself sent between ranks outside of backward calls: elements of tensors in all."""

    elements: int
    collectives: int
    #: the first few operations by name
    operations: tuple[str, ...] = ()


#: The facts of one rank that mean something only beside those of the others, or only in a job with several.
RankFact: TypeAlias = (
    ReplicaUse | Digests | InputDigests | UnfinishedReduction | SamplerOrder | GatheredConstant | Exchange
)
_RANK_FACTS: tuple[type, ...] = get_args(RankFact)


def is_rank_fact(event: object) -> TypeGuard[RankFact]:
    """Whether an event is such a fact."""
    return isinstance(event, _RANK_FACTS)


def is_rank_fact_kind(kind: type) -> bool:
    """Whether events of this class are such facts."""
    return kind in _RANK_FACTS


@dataclass(frozen=True, slots=True)
class Account:
    """What one rank hands to the one that writes the report."""

    rank: int
    host: str
    ended: Ended
    calls: int
    steps: int
    findings: tuple[Finding, ...] = ()
    facts: tuple[RankFact, ...] = ()
    remarks: tuple[str, ...] = ()
    #: its last backward call, and its last step
    last_call: Stack = ()
    last_step: Stack = ()
    #: an internal error kept rules from judging there
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """All ranks of a job after its end: an event for the rules that compare ranks."""

    size: int
    accounts: tuple[Account, ...]
    #: those that handed over nothing, and the last sign of life of each, where there was one
    missing: tuple[int, ...] = ()
    seen: tuple[LastSeen, ...] = ()
