"""graph-growth: the sizes in its message."""

from __future__ import annotations

from gradtrace.model.events import Growth
from gradtrace.model.site import Site
from gradtrace.rules.graph_growth import GraphGrowth


def test_small_graphs_have_small_sizes() -> None:
    made = (Site("train.py", 3, ""),)
    (finding,) = GraphGrowth().see(Growth("total", (), 1, 12, 48, 2, made))
    assert "12 nodes with 48 B of saved tensors, 2 more nodes with each step" in finding.message
