"""What torch did, as plain values: the only thing rules see.

Every event is complete in itself and holds no tensor, so that a rule can be tested on events written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from gradtrace.model.site import Stack


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a path to a leaf ended: `op` at `stack` gave a tensor that requires no grad from one that did.

    `why` is "detached" (detach, .data, numpy, item), "no_grad" (grad mode was off), "not differentiable" (argmax, a
    comparison, an integer cast), "copied" (torch.tensor(t)) or "frozen" (nothing that went in required grad).
    """

    op: str
    why: str
    stack: Stack
    #: what was cut off: the user's expression for it, its node (`AddmmBackward0`, "leaf") and its shape, where known
    source: str | None = None
    behind: str = ""
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Contribution:
    """One backward call that accumulated into a leaf's .grad. `call` is its number."""

    call: int
    stack: Stack
    #: the user's expression for the root: `loss`
    root: str
    #: number of the root's node (sequence number), to tell whether the same root was used twice; -1 without a graph
    root_node: int
    #: the root was given a gradient of the caller's own: `y.backward(v)`
    with_gradient: bool = False


@dataclass(frozen=True, slots=True)
class Reentry:
    """This backward call entered a graph that an earlier call has run through."""

    #: number and place of the earlier call, and the user's expression for its root
    call: int
    call_stack: Stack
    call_root: str
    #: the earlier call freed it (no retain_graph)
    freed: bool
    #: the operation of the old graph that was entered, and where it was made
    op: str
    built: Stack
    #: where the operation was made that took it in; empty where the root itself is old
    entry: Stack
    #: that operation was made after the earlier call
    entered_later: bool
    #: the new part of the graph has leaves of its own
    own_leaves: bool
    #: the new part's leaves and the old part's leaves belong to different optimizers
    foreign: bool
    #: the old operation computes nothing: a view, of which nothing is spoilt by using it again
    view: bool
    #: the part entered is only known as part of that call's graph
    vague: bool = False


@dataclass(frozen=True, slots=True)
class Backward:
    """One call of `backward()` or `autograd.grad()`, after it ended."""

    number: int
    #: "backward" or "grad"
    request: str
    stack: Stack
    root: str
    root_node: int
    retain_graph: bool
    create_graph: bool
    #: nodes run through, as far as they were counted
    nodes: int
    #: numbers of the earlier calls whose graph (or whose created gradient graph) this one entered
    entered: tuple[int, ...] = ()
    #: numbers of earlier retaining calls whose graph was still alive when this one began
    held: tuple[int, ...] = ()
    reentries: tuple[Reentry, ...] = ()
    #: names of leaves into whose .grad this call and an earlier call from the same root both accumulated
    repeated: tuple[str, ...] = ()
    #: the earlier call of `repeated`
    repeated_stack: Stack = ()
    #: the error it raised, "RuntimeError: message", its first line
    error: str | None = None
    #: with the error "does not require grad": what cut the paths, nearest first
    cuts: tuple[Cut, ...] = ()


@dataclass(frozen=True, slots=True)
class Use:
    """Leaves whose .grad holds the sum of the same backward calls at a step."""

    contributions: tuple[Contribution, ...]
    #: how many of the contributions (the first ones) an earlier step had used already, and where that step was
    used: int
    used_stack: Stack
    #: names of the leaves, at most a few
    leaves: tuple[str, ...]
    #: how many leaves
    count: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an optimizer, or a hand-written update of one leaf (`optimizer` is empty then), after it ended."""

    number: int
    #: the class, e.g. `Adam`, and a key to tell optimizers apart
    optimizer: str
    key: int
    stack: Stack
    uses: tuple[Use, ...]
    #: how often the closure was evaluated
    evaluations: int = 0


@dataclass(frozen=True, slots=True)
class Growth:
    """A variable or container of the user's holds more of old graphs each time it is looked at."""

    #: `self.losses[]`, `total`: `[]` stands for any element
    holder: str
    #: files of the user's code that were running
    files: tuple[str, ...]
    #: tensors held that have a graph, nodes of theirs and bytes that these nodes saved, as far as they were counted
    tensors: int
    nodes: int
    bytes: int
    #: nodes more with each optimizer step; 0 where it grew between steps
    per_step: int
    #: where the newest of the tensors was made
    made: Stack = ()


@dataclass(frozen=True, slots=True)
class HooksGrew:
    """The number of hooks on one tensor or module grew all the time."""

    holder: str
    #: `register_hook`, `register_forward_hook` ...
    kind: str
    hooks: int
    stack: Stack
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class End:
    """The run is over."""

    #: numbers of retaining calls whose graph was still alive
    held: tuple[int, ...] = ()


Event: TypeAlias = Backward | Step | End | Growth | HooksGrew
