"""Parameters whose gradient is exactly zero each time, and the flat operation that all paths to them pass through.

A zero gradient alone proves nothing: the key bias of attention and a bias before normalisation have one by nature. So
the graph itself must show it: no path from the root reaches the parameter without an operation whose derivative is
zero. A product of two parameters that are both all zeros is such an operation for each of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import torch

from gradtrace.model.events import FlatGradient
from gradtrace.model.site import Stack
from gradtrace.model.truths import Truth
from gradtrace.watcher.compat import local_part, node_number, output_metadata, saved_argument
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import ops, query, saved, walk
from gradtrace.watcher.graph.reads import largest
from gradtrace.watcher.parameters.births import Births
from gradtrace.watcher.parameters.leaves import operation

Tensor = torch.Tensor

_SATURATED = "gradtrace: saturated"
_CANCELS = "gradtrace: cancels"
#: operations between a softmax and the product with values in attention
_BETWEEN = 5
#: looks at a parameter's gradient: the first ones, then ever more rarely
_LOOKS = frozenset((1, 2, 3, 4, 5, *(2**power for power in range(3, 31))))
#: looks before a flat and before a saturated operation is called a fault
_ITERATIONS, _ITERATIONS_SATURATED = 3, 6
#: and before a gradient is called zero though no reason is known
_ITERATIONS_ALONE = 8
#: what two gradients that cancel leave by rounding, at most
_ROUNDING = 1e-6
#: calls in which all gradients are looked at, the later calls of one place in which they are, and the graphs in which
#: paths are looked for
_FIRST_CALLS = 4
_LATER = frozenset(number for power in range(4, 31) for number in (2**power, 3 * 2 ** (power - 1)))
_PLACES = 64
_PATHS = 24
_NAMES = 6


class _Zero:
    """A parameter whose gradient was zero, or next to it, each time it was looked at, and why."""

    __slots__ = (
        "backward calls cancels exact late matrix name op open paths product saturated stack term zeroed".split()
    )

    def __init__(self, backward: Stack, matrix: bool, late: bool, exact: bool) -> None:
        self.backward = backward
        #: zero, and not only as small as rounding errors
        self.exact = exact
        #: it had a gradient before
        self.late = late
        #: it has two or more dimensions: a bias may well have no effect, in front of a normalization
        self.matrix = matrix
        #: some path to it has no flat operation: why its gradient is zero is not known
        self.open = False
        self.name = ""
        self.calls = 1
        #: graphs in which all paths to it passed through the operation
        self.paths = 0
        self.op = ""
        self.stack: Stack = ()
        self.saturated = False
        #: the operation compares two equal tensors
        self.cancels = False
        #: the operation limits a term of the loss, as a margin does, or weighs the values of an attention
        self.term = False
        #: the operation is a product with zeros
        self.product = False
        #: where the parameter got its first values, if it is one of these zeros
        self.zeroed: Stack = ()


class FlatGradients(Observer):
    def __init__(self, session: Session, births: Births) -> None:
        super().__init__(session)
        self._births = births
        self._zero: dict[TensorId, _Zero] = {}
        #: leaves looked at in the first calls
        self._looked: set[TensorId] = set()
        self._calls_left, self._paths_left = _FIRST_CALLS, _PATHS
        #: calls of each place
        self._calls: Counter[Stack] = Counter()
        #: some zeros have no known cause yet
        self._searching = False

    def woken(self) -> Handler:
        return self._made

    @property
    def _unexplained(self) -> dict[TensorId, _Zero]:
        """Those for which a flat operation is still looked for."""
        return {key: zero for key, zero in self._zero.items() if not zero.open}

    def _made(self, call: TorchCall) -> None:
        """Notes on the node of a ReLU or clamp that it lets no gradient through."""
        if not self._searching or not self._paths_left:
            return
        self.session.wake()
        if not isinstance(call.out, Tensor) or not torch.is_grad_enabled():
            return
        node: Any = call.out.grad_fn
        if _cancels(node, call):
            node.metadata[_CANCELS] = True
        if not ops.is_saturating(type(node).__name__) or not call.args or not isinstance(call.args[0], Tensor):
            return
        if _is_saturated(type(node).__name__, call.args[0], call.out):
            node.metadata[_SATURATED] = True

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if not call.accumulates or not self._searching or not self._paths_left:
            return
        unexplained = self._unexplained
        self._searching = bool(unexplained)
        wanted = {self.session.ids.of(leaf) for leaf in call.leaves if self.session.ids.of(leaf) in unexplained}
        if not wanted:
            return
        self._paths_left -= 1
        roots = walk.roots_of(outputs)
        nodes = set(call.nodes)
        dead = _dead_products(call.nodes) if self._some_are_zeros(call) else {}
        found, flat = _reachable(roots, nodes, dead=dead)
        open_leaves = self.session.ids.of_all(found)
        terms = _terms(roots, call.nodes)
        for key in wanted & open_leaves:
            self._zero[key].open = True
        users = query.users_of(call.nodes) if any(type(node).__name__ in ops.SOFTMAXES for node in flat) else {}
        for node in flat:
            behind, _ = _reachable([node], nodes, through=True)
            for key in (wanted - open_leaves) & self.session.ids.of_all(behind):
                normalizes = type(node).__name__ in ops.SOFTMAXES
                meant = _weighs_values(node, users) if normalizes else node in terms
                self._explain(self._zero[key], node, meant)
                wanted.discard(key)
        for node, edges in dead.items():
            inputs = query.slots(node)
            below = [child for index in edges if (child := inputs[index]) is not None]
            behind, _ = _reachable(below, nodes, through=True)
            for key in (wanted - open_leaves) & self.session.ids.of_all(behind):
                self._explain(self._zero[key], node, False)
                self._zero[key].product = True
                self._zero[key].zeroed = self._zeroed(key, behind)
                wanted.discard(key)

    def _some_are_zeros(self, call: BackwardCall) -> bool:
        """Whether several leaves without a gradient are all zeros themselves."""
        return (
            sum(
                self.session.ids.of(leaf) in self._zero and not bool(local_part(leaf).detach().any())
                for leaf in call.leaves
            )
            > 1
        )

    def _explain(self, zero: _Zero, node: Any, term: bool) -> None:
        zero.paths += 1
        zero.op, zero.stack = operation(node), self.session.trail.find(node_number(node))
        zero.saturated |= bool(node.metadata.get(_SATURATED))
        zero.cancels |= bool(node.metadata.get(_CANCELS))
        zero.term = term

    def _zeroed(self, key: TensorId, leaves: Sequence[Tensor]) -> Stack:
        leaf = next(one for one in leaves if self.session.ids.of(one) == key)
        return () if bool(local_part(leaf).detach().any()) else self._births.filled_at(leaf)

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if error is not None or not call.accumulates:
            return
        first = self._calls_left > 0
        late = self._is_looked_at_late(call.stack)
        if not (first or late or self._zero):
            return
        self._calls_left -= first
        fresh: list[Tensor] = []
        for leaf in call.leaves:
            key = self.session.ids.of(leaf)
            known = self._zero.get(key)
            if known is not None:
                self._look_again(leaf, known)
            elif late and key in self._looked:
                fresh.append(leaf)
            elif first and key not in self._looked and self.session.owned(leaf):
                self._looked.add(key)
                fresh.append(leaf)
        for leaf, size in _sizes(fresh):
            if not size <= _ROUNDING:
                continue
            self._zero[self.session.ids.of(leaf)] = _Zero(call.stack, leaf.dim() > 1, late, size == 0)
            self._searching = True
            self.session.wake()

    def _is_looked_at_late(self, place: Stack) -> bool:
        if len(self._calls) >= _PLACES and place not in self._calls:
            return False
        self._calls[place] += 1
        return self._calls[place] in _LATER

    def _look_again(self, leaf: Tensor, known: _Zero) -> None:
        known.calls += 1
        if not known.name:
            found = self.session.book.known(leaf)
            known.name = found.name if found is not None else ""
        if known.calls not in _LOOKS:
            return
        size = next((size for _, size in _sizes([leaf])), math.inf)
        if size <= _ROUNDING:
            known.exact = known.exact and size == 0
        else:
            del self._zero[self.session.ids.of(leaf)]

    def at_end(self) -> None:
        always = [one for one in self._zero.values() if one.matrix and one.exact and not one.late]
        unexplained = [one for one in always if one.open and one.calls >= _ITERATIONS_ALONE]
        names = tuple(dict.fromkeys(one.name for one in unexplained))[:_NAMES]
        self._report_flat()
        if unexplained:
            first = unexplained[0]
            self.session.emit(FlatGradient(names, len(unexplained), "", first.backward, first.calls, first.backward))
        zeros = [one for one in always if one.calls >= _ITERATIONS]
        self.session.emit(Truth("gradients are not zero", len(self._looked), len(zeros), names))

    so_far = at_end

    def _report_flat(self) -> None:
        groups_found: dict[tuple[Stack, str], list[_Zero]] = {}
        for zero in self._zero.values():
            enough = _ITERATIONS_SATURATED if zero.saturated else _ITERATIONS
            # of rounding errors only what cancels is the cause
            if zero.calls >= enough and zero.paths >= 2 and zero.stack and (zero.exact or zero.cancels):
                groups_found.setdefault((zero.stack[:1], zero.op), []).append(zero)
        zeros_made = any(zero.zeroed for found in groups_found.values() for zero in found)
        for found in groups_found.values():
            first = found[0]
            made = tuple(dict.fromkeys(zero.zeroed for zero in reversed(found) if zero.matrix and zero.zeroed))
            # what these zeros are multiplied with gets no gradient either
            if first.product and (len(found) < 2 or (zeros_made and not made)):
                continue
            names = tuple(dict.fromkeys(zero.name for zero in found))[:_NAMES]
            self.session.emit(
                FlatGradient(
                    names,
                    len(found),
                    first.op,
                    first.stack,
                    first.calls,
                    first.backward,
                    first.saturated,
                    first.term,
                    first.product,
                    first.late,
                    first.cancels,
                    made,
                )
            )


def _sizes(leaves: Sequence[Tensor]) -> list[tuple[Tensor, float]]:
    """Those of the leaves whose gradient is whole and dense, each with its largest absolute value."""
    found = [(leaf, leaf.grad) for leaf in leaves]
    # of a distributed one this rank holds a part alone, which may be zero by chance
    whole = [(leaf, grad) for leaf, grad in found if grad is not None and local_part(grad) is grad]
    dense = [(leaf, grad) for leaf, grad in whole if grad.layout is torch.strided and grad.numel()]
    return list(zip((leaf for leaf, _ in dense), largest([grad for _, grad in dense]), strict=True))


def _cancels(node: Any, call: TorchCall) -> bool:
    """Whether two equal tensors, both with a graph, are subtracted or divided: what they share gets their gradients with
    opposite signs."""
    at_rest = ops.AT_REST.get(type(node).__name__)
    operands = call.inputs if at_rest is not None else []
    if (
        at_rest is None
        or len(operands) != 2
        or not all(one.requires_grad and one.shape == call.out.shape for one in operands)
    ):
        return False
    return bool(local_part(call.out).detach().eq(at_rest).all())


def _is_saturated(kind: str, given: Tensor, out: Tensor) -> bool:
    given, out = local_part(given), local_part(out)
    if given.shape != out.shape:
        return False
    if kind.startswith("Relu"):
        return not bool((out.detach() > 0).any())
    # what comes out unchanged lets its gradient through
    return given is not out and not bool((given.detach() == out.detach()).any())


def _terms(roots: Sequence[Any], nodes: Sequence[Any]) -> set[Any]:
    """The flat nodes whose results are only summed up and scaled on all ways to the roots."""
    sums = {node for node in nodes if type(node).__name__ in ops.SUMS_OF_TENSORS}
    others = [node for node in nodes if node not in sums and not _is_flat(node)]
    return set(_reachable(roots, sums)[1]).difference(_reachable(others, set(nodes))[1])


def _is_flat(node: Any) -> bool:
    kind = type(node).__name__
    if kind in ops.SOFTMAXES:
        return _normalizes_one(node)
    if kind == "DivBackward2":
        return saved_argument(node, "rounding_mode") is not None
    return kind in ops.ZERO_SLOPE or bool(node.metadata.get(_SATURATED) or node.metadata.get(_CANCELS))


def _normalizes_one(node: Any) -> bool:
    """Whether a softmax runs over a dimension of size one: its result is the constant 1, or the logarithm of that."""
    shape, dim = output_metadata(node)[0].shape, saved_argument(node, "dim")
    # torch hands out negative numbers as unsigned ones
    return dim is not None and len(shape) > 0 and shape[dim - 2**64 if dim >= 2**63 else dim] == 1


def _weighs_values(node: Any, users: Mapping[Any, Sequence[Any]]) -> bool:
    """Whether a softmax gives the weights of an attention, which may have a single key on purpose."""
    level = [node] if type(node).__name__ in ops.SOFTMAXES else []
    for _ in range(_BETWEEN):
        level = [user for below in level for user in users.get(below, ())]
        if any(type(user).__name__ in ops.MATMULS for user in level):
            return True
        level = [user for user in level if _keeps_weights(user)]
    return False


def _keeps_weights(node: Any) -> bool:
    """Whether what goes through are the same weights, in another shape or partly dropped: on the CPU torch drops them by
    multiplying with a constant."""
    name = type(node).__name__
    if name in ops.FACTORS:
        return None in query.slots(node)
    return name in ops.SAME_WEIGHTS


def _dead_products(nodes: Sequence[Any]) -> dict[Any, tuple[int, ...]]:
    """Products, with the inputs that get no gradient through them since the other one is all zeros."""
    found = {}
    for node in nodes:
        inputs = ops.PRODUCTS.get(type(node).__name__, ())
        values = dict(saved.tensors(node)) if inputs else {}
        dead = tuple(index for index, other in inputs if other in values and not bool(local_part(values[other]).any()))
        if dead:
            found[node] = dead
    return found


def _open_inputs(node: Any, dead: tuple[int, ...]) -> list[Any]:
    """What made the inputs of a node, but for those that get no gradient."""
    return [child for index, child in enumerate(query.slots(node)) if child is not None and index not in dead]


def _reachable(
    roots: Sequence[Any], within: set[Any], through: bool = False, dead: Mapping[Any, tuple[int, ...]] | None = None
) -> tuple[list[Tensor], list[Any]]:
    """Leaves that can be reached from the roots without passing a flat node, and the flat nodes met.

    With `through` flat nodes are passed. Of `dead` nodes these inputs are not gone into.
    """
    leaves: list[Tensor] = []
    flat: list[Any] = []
    seen: set[Any] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if type(node) is walk.ACCUMULATE:
            leaves.append(node.variable)
        elif not through and _is_flat(node):
            flat.append(node)
        elif node in within:
            waiting += _open_inputs(node, dead[node]) if dead and node in dead else query.inputs(node)
    return leaves, flat
