"""How tensors were computed, in the user's names: formulas, the leaves behind them, the ways of a backward call."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch

from gradtrace.model.site import Stack
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.observer import TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.graph import query, saved
from gradtrace.watcher.graph.walk import ACCUMULATE, mark_of

#: living nodes that are looked at: Python's wrappers of a very deep graph are not safe to drop (see walk)
_NODES = 20_000
#: formulas, and places of memory with what saved them, that are remembered, and characters of a formula
_KEPT, _FORMULA = 4_096, 300
#: leaves of a call up to which the path to each is shown
_FEW = 4
#: nodes among which the freed one is looked for after an error
_NEAR = 1_000

Naming = Callable[[torch.Tensor], str]


_TOUCHED, _SAVING = "gradtrace: touched", "gradtrace: saving"


class _Token:
    """Lives in the metadata of nodes, and as long as they."""

    __slots__ = ("__weakref__",)


class Saver(NamedTuple):
    """An operation that saved a tensor for its backward."""

    op: str
    stack: Stack
    token: weakref.ref[_Token]

    @property
    def alive(self) -> bool:
        return self.token() is not None


class Lineage:
    """Remembers by numbers of nodes and places of memory, never tensors."""

    def __init__(self, session: Session, naming: Naming) -> None:
        self._session = session
        self._naming = naming
        #: held by every node that was looked at, so that its references show how many of them are alive
        self._touched = _Token()
        self._none = sys.getrefcount(self._touched)
        #: formulas of the nodes made by the statement that runs, or by one around it
        self._formulas: dict[int, str] = {}
        self._behind: dict[int, tuple[str, ...]] = {}
        self._savers: dict[int, Saver] = {}

    def node_of(self, tensor: torch.Tensor) -> Any:
        """Its grad_fn, while there are nodes left to look at."""
        if not tensor.requires_grad or tensor.is_leaf or self._is_full():
            return None
        try:
            node: Any = tensor.grad_fn
        except RuntimeError:  # a view made under no_grad, whose base was written to afterwards
            return None
        if node is not None:
            node.metadata[_TOUCHED] = self._touched
        return node

    def _is_full(self) -> bool:
        return sys.getrefcount(self._touched) - self._none > _NODES

    def made(self, call: TorchCall) -> None:
        """A call made nodes: notes how it computed its results."""
        arguments = ", ".join(text for one in call.args if (text := self._argument(one)))
        stack = self._session.frames.stack(call.frame)
        for out in tensors_in([call.out]):
            node = self.node_of(out)
            if node is None:
                continue
            number, op = node_number(node), type(node).__name__
            if number >= call.before:
                self._formulas[number] = f"{op}({arguments})" if len(arguments) < _FORMULA else f"{op}(…)"
                self._note_saved(node, op, stack)
        if len(self._formulas) > 2 * _KEPT:
            self._formulas = dict(islice(self._formulas.items(), _KEPT, None))

    def _argument(self, given: Any) -> str:
        if isinstance(given, torch.Tensor):
            node = self.node_of(given)
            known = self._naming(given)
            shape = str(list(given.shape)) if given.dim() else "scalar"
            return known or self._formulas.get(node_number(node) if node else -1, "") or shape
        if isinstance(given, (bool, int, float)):
            return f"{given:g}" if isinstance(given, float) else str(given)
        if isinstance(given, (list, tuple)) and given and all(isinstance(one, torch.Tensor) for one in given):
            return f"[{', '.join(self._argument(one) for one in given[:4])}{', …' * (len(given) > 4)}]"
        return ""

    def _note_saved(self, node: Any, op: str, stack: Stack) -> None:
        token = _Token()
        for _, tensor in saved.tensors(node):
            place = saved.memory(tensor)
            if place:
                node.metadata[_SAVING] = token
                if len(self._savers) > 2 * _KEPT:
                    self._savers = dict(islice(self._savers.items(), _KEPT, None))
                self._savers[place] = Saver(op, stack, weakref.ref(token))

    def saver(self, tensor: torch.Tensor) -> Saver | None:
        """What saved the numbers of this tensor for a backward that can still come."""
        found = self._savers.get(saved.memory(tensor))
        return found if found is not None and found.alive else None

    def formula(self, number: int) -> str:
        return self._formulas.get(number, "")

    def behind(self, node: Any) -> tuple[str, ...]:
        """Names of the leaves to which gradients flow back from a node."""
        number = node_number(node)
        if number not in self._behind:
            if len(self._behind) > 2 * _KEPT:
                self._behind = dict(islice(self._behind.items(), _KEPT, None))
            self._behind[number] = tuple(self._leaves(node))
        return self._behind[number]

    def _leaves(self, root: Any) -> dict[str, None]:
        found: dict[str, None] = {}
        seen, waiting = {root}, [root]
        while waiting:
            node = waiting.pop()
            if type(node) is ACCUMULATE:
                leaf = node.variable
                found[self._naming(leaf) or f"a leaf of shape {list(leaf.shape)}"] = None
            elif (known := self._behind.get(node_number(node))) is not None:
                found |= dict.fromkeys(known)
            elif not self._is_full():
                node.metadata[_TOUCHED] = self._touched
                children = [child for child in query.inputs(node) if child not in seen]
                waiting += reversed(children)
                seen.update(children)
        return found


class Way(NamedTuple):
    """How a backward call came to a leaf: the user's names on one path, and how many operations used the leaf."""

    leaf: str
    names: str
    uses: int


def ways(call: BackwardCall, named: Sequence[tuple[str, torch.Tensor]], naming: Naming) -> list[Way]:
    """The ways to the leaves that a backward call reaches."""
    users = call.users
    takers: dict[int, list[Any]] = {}
    for node in users:
        for leaf in query.leaf_inputs(node):
            takers.setdefault(id(leaf), []).append(node)
    known = _names_of_nodes(named, users) if len(call.leaves) <= _FEW else {}
    found = []
    for leaf in call.leaves:
        name = naming(leaf) or f"a leaf of shape {list(leaf.shape)}"
        uses = takers.get(id(leaf), [])
        way = _climb(uses[0], users, known) if uses and known else []
        found.append(Way(name, " → ".join([*way, name]) if way else "", len(uses)))
    return found


def _climb(node: Any, users: dict[Any, Any], known: dict[Any, str]) -> list[str]:
    """The names from the root down to a node."""
    names = [known[one] for one in query.path_up(node, users) if one in known]
    return names[::-1]


def _names_of_nodes(named: Iterable[tuple[str, torch.Tensor]], nodes: dict[Any, Any]) -> dict[Any, str]:
    found: dict[Any, str] = {}
    for name, tensor in named:
        if tensor.requires_grad and not tensor.is_leaf:
            try:
                node = tensor.grad_fn
            except RuntimeError:
                continue
            if node in nodes:
                found.setdefault(node, name)
    return found


def freed_at(root: Any) -> int:
    """The line of the backward call that has freed a part of the graph below a node; 0 where none has."""
    for node in query.below([root], _NEAR):
        mark = mark_of(node) if type(node) is not ACCUMULATE else None
        if mark is not None and not mark.retained and not mark.failed and mark.stack:
            return mark.stack[0].line
    return 0


def spent(call: BackwardCall, named: Iterable[tuple[str, torch.Tensor]]) -> tuple[str, ...]:
    """The variables whose graph a backward call ran through."""
    return tuple(dict.fromkeys(_names_of_nodes(named, call.users).values()))
