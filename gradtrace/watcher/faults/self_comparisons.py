"""Terms of a loss that compare a parameter, or a copy of one, with itself: the reference was never copied.

The difference is exactly zero and has no gradient: the values lie in the same memory, and steps move both sides alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from gradtrace.model.events import ComparedWithItself
from gradtrace.model.site import Stack
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.gradient_places import GradientPlaces
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph import ops, query
from gradtrace.watcher.graph.saved import is_same_memory, place_of

Tensor = torch.Tensor

#: the distance between two tensors
_MEASURES = (*ops.DISTANCE_FUNCTIONS, torch.dist, Tensor.dist)
_KEY = "gradtrace: compares with itself"
#: places, iterations before anything is reported, and calls of which it is asked whether they are such comparisons
_PLACES, _SIGHTINGS, _CALLS = 64, 3, 200_000
#: backward calls in whose graphs a term is looked for that was computed; names that are reported
_PATIENCE, _NAMES = 4, 6


@dataclass(slots=True)
class _Comparison:
    """One place where the two sides were the same memory, each time so far."""

    stack: Stack
    #: the parameters behind the two sides, by identity
    leaves: set[TensorId]
    #: neither side is a parameter, or shares its memory: a copy is compared with itself
    copied: bool
    #: where the reference was taken of the parameter
    taken: Stack
    #: the two sides were different tensors once: a loop over all pairs
    differs: bool = False
    #: iterations whose loss or gradients it went into, and the steps before the last of them
    times: int = 0
    steps: int = -1
    names: dict[str, None] = field(default_factory=dict)
    entered: Stack = ()
    backward: Stack = ()
    root: str = ""


class SelfComparisons(Observer):
    def __init__(self, session: Session, origins: Origins) -> None:
        super().__init__(session)
        self._origins = origins
        self._places: dict[Stack, _Comparison] = {}
        self._calls_left = _CALLS
        #: tensors that were computed from such a difference, by identity
        self._zeros = session.ids.table(dict[TensorId, tuple[_Comparison, ...]]())
        #: backward calls in whose graphs is still looked for them
        self._waiting = 0
        self._gradients = GradientPlaces(session)

    def functions(self) -> Mapping[Any, Handler]:
        return {
            **dict.fromkeys((*ops.DIFFERENCE_FUNCTIONS, *_MEASURES), self._compared),
            **dict.fromkeys(ops.SUMMING_FUNCTIONS, self._written),
            Tensor.grad.__set__: self._written,  # type: ignore[union-attr]
        }

    def made_plain(self) -> Handler:
        return self._follow

    def woken(self) -> Handler:
        return self._follow

    # the comparison

    def _compared(self, call: TorchCall) -> None:
        sides = call.inputs[:2]
        if self._calls_left <= 0 or len(sides) < 2 or call.kwargs.get("alpha", 1) != 1:
            return
        one, other = sides
        if one is not other and not is_same_memory(one, other):
            self._note_difference(call)
            return
        self._calls_left -= 1
        leaves = self._leaves_behind(one) | self._leaves_behind(other)
        if not leaves and not (one is other and one.requires_grad):
            return
        known = self._place(call, leaves, sides)
        if known is None or not isinstance(call.out, Tensor):
            return
        self._zeros[self.session.ids.of(call.out)] = (known,)
        self.session.wake()
        node = call.out.grad_fn if call.out.requires_grad else None
        if node is not None:
            # a difference may be a straight-through sum, or a zero that is meant
            self._mark(node, (known,), self.session.frames.stack(call.frame), call.func in ops.DIFFERENCE_FUNCTIONS)

    def _note_difference(self, call: TorchCall) -> None:
        if self._places:
            known = self._places.get(self.session.frames.stack(call.frame))
            if known is not None:
                known.differs = True

    def _place(self, call: TorchCall, leaves: set[TensorId], sides: Sequence[Tensor]) -> _Comparison | None:
        stack = self.session.frames.stack(call.frame)
        known = self._places.get(stack)
        if known is None and stack and len(self._places) < _PLACES:
            plain = [side for side in sides if not side.requires_grad]
            copied = len(plain) == len(sides) and not self._is_parameters(sides[0])
            cuts = self._origins.of_value(_base(plain[-1])) if plain else ()
            taken = cuts[0].stack if cuts and not copied else ()
            known = self._places[stack] = _Comparison(stack, set(), copied, taken)
        if known is not None:
            known.leaves |= leaves
        return known

    def _leaves_behind(self, side: Tensor) -> set[TensorId]:
        """The parameters that a side is, shares the memory of, or was copied from, and nothing else."""
        base = _base(side)
        if base.is_leaf and base.requires_grad:
            held = isinstance(base, torch.nn.Parameter) or self.session.owned(base)
            return {self.session.ids.of(base)} if held else set()
        cuts = self._origins.of_value(side)
        if not cuts or any(cut.behind != "leaf" for cut in cuts):
            return set()
        behind = set().union(*(self._origins.leaves_behind(cut) for cut in cuts))
        return {key for key in behind if self.session.is_owned(key)}

    def _is_parameters(self, side: Tensor) -> bool:
        """Whether its memory is that of a parameter that some optimizer holds."""
        where = place_of(_base(side))
        held = (parameter for one in self.session.optimizers() for parameter in parameters(one))
        return any(place_of(parameter) == where for parameter in held)

    # where it goes

    def _follow(self, call: TorchCall) -> None:
        if not self._zeros:
            return
        self.session.wake()
        if not isinstance(call.out, Tensor) or not call.out.is_floating_point():
            return
        inputs = call.inputs
        constant = self._places_of([one for one in inputs if not one.requires_grad])
        found = constant or self._places_of(inputs)
        if not found:
            return
        node = call.out.grad_fn if call.out.requires_grad else None
        if node is None or not self._is_in_graph(inputs):
            self._zeros[self.session.ids.of(call.out)] = found
        if (
            node is not None
            and constant
            and ops.bare(call.func) in ops.ADDING
            and call.out.numel() <= max(1, len(inputs))
        ):
            self._mark(node, constant, self.session.frames.stack(call.frame), False)

    def _places_of(self, tensors: Sequence[Tensor]) -> tuple[_Comparison, ...]:
        """The comparisons from which some of these were computed, each once."""
        found: list[_Comparison] = []
        for tensor in tensors:
            for place in self._zeros.get(self.session.ids.known(tensor), ()):
                if all(place is not other for other in found):
                    found.append(place)
        return tuple(found[:_NAMES])

    def _is_in_graph(self, inputs: Sequence[Tensor]) -> bool:
        """Whether something else of these has a graph: what is computed from them is not such a difference alone."""
        return any(one.requires_grad and not self._places_of([one]) for one in inputs)

    def _mark(self, node: Any, places: tuple[_Comparison, ...], entered: Stack, is_open: bool) -> None:
        node.metadata[_KEY] = places, entered, is_open
        self._waiting = _PATIENCE

    def _written(self, call: TorchCall) -> None:
        """A difference is added to the gradient of a parameter by hand."""
        if not self._zeros or len(call.args) < 2 or not isinstance(call.args[1], Tensor):
            return
        places = self._zeros.get(self.session.ids.known(call.args[1]), ())
        target = call.args[0]
        if not places or not isinstance(target, Tensor):
            return
        setting = call.func is Tensor.grad.__set__  # type: ignore[union-attr]
        leaf = self.session.ids.known(target) if setting else self._gradients.leaf_of(target)
        if not self.session.is_owned(leaf):
            return
        for place in places:
            self._sight(place, [leaf], self.session.frames.stack(call.frame))

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not self._waiting or not call.accumulates or call.create or not call.whole:
            return
        self._waiting -= 1
        users: Mapping[Any, Any] = {}
        leaves = [self.session.ids.known(leaf) for leaf in call.leaves]
        for node in call.nodes:
            mark = node.metadata.get(_KEY)
            if mark is None or not self.session.owners(call.leaves):
                continue
            places, entered, is_open = mark
            users = users or query.users_of(call.nodes)
            if is_open and not _is_measured(node, users):
                for place in places:
                    place.differs = True
                continue
            for place in places:
                self._sight(place, leaves, entered, call)

    def _sight(
        self, place: _Comparison, leaves: Iterable[TensorId], entered: Stack, call: BackwardCall | None = None
    ) -> None:
        for leaf in leaves:
            name = self.session.book.name_of(leaf) if leaf in place.leaves else ""
            if name and len(place.names) < _NAMES:
                place.names[name] = None
        if place.steps == self.session.steps:
            return
        place.steps = self.session.steps
        place.times += 1
        place.entered = entered
        place.backward, place.root = (call.stack, call.root) if call is not None else ((), "")

    def at_end(self) -> None:
        for place in self._places.values():
            if place.times >= _SIGHTINGS and not place.differs:
                self.session.emit(
                    ComparedWithItself(
                        place.stack,
                        place.entered,
                        place.backward,
                        place.root,
                        tuple(place.names),
                        len(place.leaves),
                        place.copied,
                        place.taken,
                        place.times,
                    )
                )

    so_far = at_end


def _base(tensor: Tensor) -> Tensor:
    return tensor if tensor._base is None else tensor._base


def _is_measured(node: Any, users: Mapping[Any, Any]) -> bool:
    """Whether all that is computed from a difference goes through an operation whose gradient is zero where the difference
    is: a square, a norm. Else it may be a straight-through sum, whose gradient is that of one side."""
    waiting = [node]
    seen = {node}
    while waiting:
        below = waiting.pop()
        above = users.get(below, ())
        if not above:
            return False
        for user in above:
            if user in seen or _is_even(user, below):
                continue
            if type(user).__name__ not in ops.KEEPING_ZEROS:
                return False
            seen.add(user)
            waiting.append(user)
    return True


def _is_even(user: Any, below: Any) -> bool:
    """Whether the gradient that a node gives the one below it is zero where the value is: `x ** 2`, or `x * x`."""
    squares = type(user).__name__ == "MulBackward0" and all(one is below for one in query.slots(user))
    return squares or type(user).__name__ in ops.EVEN
