"""How a backward call gets into the graph of an earlier one: what carried it there, and what is gone in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

from gradtrace.model.events import Owners, Reentry
from gradtrace.model.site import Stack
from gradtrace.watcher.compat import node_number, unpacked_attributes
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.trail import Trail
from gradtrace.watcher.graph import ops, query, walk

#: views passed on the way to the operation behind a tensor
_VIEWS = 8
#: reentries reported of one call, kinds of operations reported of one reentry
_MOST, _KINDS = 12, 8

#: a node (None for a root), the old node that it used, and the mark of the call that ran through that
Edge: TypeAlias = tuple[Any, Any, walk.Mark]


def reentries(visit: walk.Visit, session: Session, failed: bool) -> tuple[Reentry, ...]:
    """The entries of a visit into old graphs. Where the call went well, views are passed over: they are harmless."""
    old = [edge for edge in visit.old if failed or not _is_view(edge[1])]
    if not old:
        return ()
    ancestry = _Ancestry(visit)
    return tuple(_reentry(edge, ancestry, session, failed) for edge in islice(_distinct(old), _MOST))


def first_use_since(number: int, node: Any, nodes: Sequence[Any], trail: Trail) -> Stack:
    """Where the first operation from `number` on was made that what `node` computed goes into; empty where the line that
    made `node` has not run again since."""
    built = trail.find(node_number(node))
    if trail.ran_since(built, number) < len(built):
        return ()
    for user, _ in query.above(node, query.users_of(nodes)):
        if node_number(user) >= number:
            return trail.find(node_number(user))
    return ()


def _reentry(edge: Edge, ancestry: _Ancestry, session: Session, failed: bool) -> Reentry:
    user, node, mark = edge
    trail = session.trail
    entry, carried = ancestry.entry(user, node, mark.number)
    gathered = _gathered(carried)
    built = trail.find(node_number(carried))
    below = query.below([node])
    old = session.owners(one.variable for one in below if type(one) is walk.ACCUMULATE)
    return Reentry(
        call=mark.call,
        call_stack=mark.stack,
        call_request=mark.request,
        call_root=mark.root,
        freed=not mark.failed,
        saved_lost=failed and any(map(_has_lost_saved, below)),
        op=type(carried).__name__,
        node=node_number(carried),
        built=built,
        used=trail.find(node.metadata[walk.KEY][1]),
        rerun=trail.ran_since(built, mark.number),
        entry=trail.find(node_number(entry)) if entry is not None else (),
        entered_later=entry is not None and node_number(entry) >= mark.number,
        through=frozenset(islice(ancestry.kinds_above(user), _KINDS)),
        own_leaves=ancestry.has_leaves_since(mark.number),
        view=_is_view(node),
        owners=Owners(old, mark.owners - old, session.owners(ancestry.leaves), session.stepped_since(mark.call)),
        gathered=trail.find(node_number(gathered)) if gathered is not None else (),
    )


def _gathered(node: Any) -> Any:
    """Of several tensors that were only put together, the operation behind the first one; otherwise None."""
    if type(node).__name__ not in ops.JOINS:
        return None
    first = query.past(query.first_input(node), ops.VIEWS, _VIEWS)
    return None if type(first) is walk.ACCUMULATE else first


def _is_view(node: Any) -> bool:
    return type(node).__name__ in ops.VIEWS


def _has_lost_saved(node: Any) -> bool:
    """Whether an earlier call freed what the node had saved. Nodes that were not run through are left alone: to look at
    a saved tensor may compute it again."""
    mark = None if type(node) is walk.ACCUMULATE else walk.mark_of(node)
    if mark is None or mark.retained:
        return False
    return any(_is_gone(node, name) for name in unpacked_attributes(node))


def _is_gone(node: Any, name: str) -> bool:
    try:
        getattr(node, name)
    except RuntimeError as error:
        return "a second time" in str(error)
    return False


class _Ancestry:
    """Who used whom in a visit that ran into the graph of an earlier call."""

    def __init__(self, visit: walk.Visit) -> None:
        self.leaves = visit.leaves
        self._nodes = visit.nodes
        self._users = query.users_of(visit.nodes)

    def entry(self, user: Any, node: Any, number: int) -> tuple[Any, Any]:
        """The first node made at `number` or later above the edge from `user` to `node`, and the older one that it
        used.

        What lies between was made before that moment, though the earlier call did not run through it: a hidden state
        hangs on the same cell as the loss. Where all is older the edge itself is the entry.
        """
        for upper, lower in chain([(user, node)], query.above(user, self._users)):
            if upper is None or node_number(upper) >= number:
                return upper, lower
        return user, node

    def kinds_above(self, user: Any) -> Iterator[str]:
        """The kinds of the operations from `user` up to the root, each once."""
        seen = set()
        for upper, _ in chain([(user, None)], query.above(user, self._users)):
            kind = type(upper).__name__
            if upper is not None and kind not in seen:
                seen.add(kind)
                yield kind

    def has_leaves_since(self, number: int) -> bool:
        """Whether a node made at `number` or later uses a leaf."""
        return any(query.leaf_inputs(node) for node in self._nodes if node_number(node) >= number)


def _distinct(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Each pair of nodes once."""
    return iter({(user, node): (user, node, mark) for user, node, mark in edges}.values())
