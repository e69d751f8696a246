"""Networks that only measure: what they make of data alone is compared with what is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.identity import Identities, TensorId
from gradtrace.watcher.graph import ops, query
from gradtrace.watcher.graph.walk import ACCUMULATE


class _Source(NamedTuple):
    """What lies below a node."""

    #: ids of the leaves in question
    mine: frozenset[TensorId] = frozenset()
    #: trained leaves
    trained: bool = False
    #: the leaves in question have computed with something
    computed: bool = False


_NOTHING = _Source()


class ComparedLeaves(NamedTuple):
    """Leaves of networks whose results are compared with those of trained ones, and of those that run on data alone."""

    networks: frozenset[TensorId]
    references: frozenset[TensorId]


def comparison_networks(
    nodes: Sequence[Any], candidates: frozenset[TensorId], trained: frozenset[TensorId], ids: Identities
) -> ComparedLeaves:
    """Those of the candidates whose network computes something of data alone, which meets trained results in a
    comparison only: a random target, the features of a perceptual loss. The latter also runs on what is trained."""
    below: dict[Any, _Source] = {}
    measuring: set[TensorId] = set()
    feeding: set[TensorId] = set()
    fed: set[TensorId] = set()
    for node in sorted(nodes, key=node_number):
        parts = [_source(child, below, candidates, trained, ids) for child in query.inputs(node)]
        name = type(node).__name__
        mine = frozenset(leaf for part in parts for leaf in part.mine)
        meets = any(part.trained for part in parts)
        if meets:
            side = measuring if ops.is_comparison(name) else feeding
            side.update(leaf for part in parts if part.computed and not part.trained for leaf in part.mine)
            fed.update(leaf for part in parts if not part.computed and not part.trained for leaf in part.mine)
        computed = bool(mine) and (ops.computes_with_weight(name) or any(part.computed for part in parts))
        below[node] = _Source(mine, meets, computed)
    networks = frozenset(measuring - feeding)
    return ComparedLeaves(networks, networks - fed)


def _source(
    child: Any,
    below: dict[Any, _Source],
    candidates: frozenset[TensorId],
    trained: frozenset[TensorId],
    ids: Identities,
) -> _Source:
    if type(child) is not ACCUMULATE:
        return below.get(child, _NOTHING)
    leaf = ids.of(child.variable)
    return _Source(frozenset([leaf]) & candidates, leaf in trained)
