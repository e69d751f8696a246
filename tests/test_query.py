"""Questions to real graphs: what goes into a node, what lies below it, who used it, and that walks keep deep ones safe."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from gradtrace.watcher.graph import ops, query, walk
from gradtrace.watcher.graph.query import GraphNode

Tensor = torch.Tensor

DEEP = 50_000


def node_of(tensor: Tensor) -> Any:
    assert tensor.grad_fn is not None
    return tensor.grad_fn


def leaf(*shape: int) -> Tensor:
    return torch.ones(shape, requires_grad=True)


def names(nodes: Any) -> list[str]:
    return [type(node).__name__ for node in nodes]


class TestInputs:
    def test_one_without_a_graph_has_a_slot_and_is_no_input(self) -> None:
        x = leaf(3)
        product = node_of(x.exp() * torch.ones(3))
        assert names(query.slots(product)) == ["ExpBackward0", "NoneType"]
        assert names(query.inputs(product)) == ["ExpBackward0"]
        assert query.leaf_inputs(product) == []

    def test_a_node_whose_inputs_all_lack_a_graph_has_none(self) -> None:
        class Ones(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, anchor: Tensor, other: Tensor) -> Tensor:
                return torch.ones(2)

            @staticmethod
            def backward(ctx: Any, *grads: Tensor) -> tuple[None, None]:
                return None, None

        x = leaf()
        node = node_of(Ones.apply(torch.ones(()), x))
        assert query.slots(node)[0] is None
        assert [one.variable for one in query.inputs(node)] == [x]

    def test_a_leaf_that_goes_in_twice_counts_twice(self) -> None:
        x = leaf(2)
        square = node_of(x * x)
        assert [one is x for one in query.leaf_inputs(square)] == [True, True]
        assert query.users_of([square]) == {query.inputs(square)[0]: [square, square]}
        assert query.uses_of([square]) == {query.inputs(square)[0]: [(square, 0), (square, 1)]}

    def test_an_edge_knows_which_output_it_comes_from(self) -> None:
        parts = leaf(4).exp().unbind()
        assert query.edges(node_of(parts[2].sin())) == ((node_of(parts[0]), 2),)


class TestRows:
    def test_views_are_passed_down_to_what_they_show(self) -> None:
        made = leaf(2, 3).exp()
        node = node_of(made.t().unsqueeze(0).permute(2, 0, 1))
        assert query.past(node, ops.VIEWS) is node_of(made)
        assert all(name in ops.VIEWS for name in names(query.passed(node, ops.VIEWS, 9)))
        assert query.first_input(query.passed(node, ops.VIEWS, 9)[-1]) is node_of(made)

    def test_what_is_no_view_is_not_passed(self) -> None:
        node = node_of(leaf(2).exp())
        assert query.past(node, ops.VIEWS) is node
        assert query.passed(node, ops.VIEWS, 9) == []

    def test_nothing_lies_behind_nothing(self) -> None:
        assert query.past(None, ops.VIEWS) is None

    def test_a_row_ends_at_its_limit(self) -> None:
        outer = leaf(2).exp().view(2, 1).view(1, 2).view(2)
        node = node_of(outer)
        assert len(query.passed(node, ops.VIEWS, 2)) == 2
        assert query.past(node, ops.VIEWS, 2) is query.passed(node, ops.VIEWS, 3)[2]

    def test_a_row_ends_at_a_leaf(self) -> None:
        x = leaf(2, 3)
        behind = query.past(node_of(x.t()), ops.VIEWS)
        assert behind is not None
        assert behind.variable is x


class TestBelow:
    def test_each_node_once_in_the_order_of_the_inputs(self) -> None:
        x, y = leaf(), leaf()
        shared = x.exp()
        root = shared.sin() + (shared * y)
        expected = ["AddBackward0", "SinBackward0", "ExpBackward0", "AccumulateGrad", "MulBackward0", "AccumulateGrad"]
        found = list(query.below([node_of(root)]))
        assert names(found) == expected
        assert [one.variable for one in found if type(one) is walk.ACCUMULATE] == [x, y]

    def test_diamonds_upon_diamonds_are_walked_in_linear_time(self) -> None:
        x = leaf()
        for _ in range(200):
            x = x + x.sin()
        assert len(query.below([node_of(x)])) == 2 * 200 + 1

    def test_a_walk_ends_at_its_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        x = leaf()
        for _ in range(20):
            x = x.sin()
        assert len(query.below([node_of(x)], 7)) == 7
        assert len(query.below([node_of(x)])) == 21
        monkeypatch.setattr(walk, "LIMIT", 9)
        assert len(query.below([node_of(x)])) == 9

    @pytest.mark.parametrize(
        ("question", "answer"),
        [("len(query.below([x.grad_fn], query.WHOLE))", str(DEEP + 1)), ("query.leaves_of([x]) == [leaf]", "True")],
    )
    def test_a_deep_chain_is_walked_to_its_end_and_dropped_without_harm(self, question: str, answer: str) -> None:
        """In a process of its own: a wrapped chain that no walk makes safe overflows the C stack."""
        script = f"""
import torch
from gradtrace.watcher.graph import query, walk
walk.LIMIT = query.WHOLE
leaf = x = torch.ones((), requires_grad=True)
for _ in range({DEEP}):
    x = x.sin()
print({question})
del x
print("alive")
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (done.returncode, done.stdout.split()) == (0, [answer, "alive"])

    def test_a_freed_graph_is_still_walked(self) -> None:
        x = leaf()
        loss = x.exp().sin()
        before = list(query.below([node_of(loss)]))
        loss.backward()
        assert list(query.below([node_of(loss)])) == before
        assert query.leaf_inputs(before[1]) == [x]

    def test_roots_that_lie_below_others_are_told_apart(self) -> None:
        inner = leaf().exp()
        middle, other = inner.sin(), inner.cos()
        nodes = {node_of(one) for one in (inner, middle, other)}
        assert nodes - query.strictly_below(nodes) == {node_of(middle), node_of(other)}

    def test_leaves_below_tensors(self) -> None:
        x, y, unused = leaf(), leaf(), leaf()
        found = query.leaves_of([x.exp() + y, x])
        assert {id(one) for one in found} == {id(x), id(y)}
        assert query.leaves_of([torch.ones(2)]) == []
        assert query.leaves_of([unused]) == [unused]


class TestAbove:
    def test_the_nearest_come_first_each_with_the_one_below(self) -> None:
        x = leaf()
        start = x.exp()
        left, right = start.sin(), start.cos()
        top = left + right
        nodes = [node_of(one) for one in (top, left, right, start)]
        found = list(query.above(node_of(start), query.users_of(nodes)))
        assert {upper for upper, _ in found[:2]} == {node_of(left), node_of(right)}
        assert {lower for _, lower in found[:2]} == {node_of(start)}
        assert [upper for upper, _ in found[2:]] == [node_of(top)]

    def test_nothing_is_above_a_root(self) -> None:
        root = node_of(leaf().exp())
        assert list(query.above(root, query.users_of([root]))) == []

    def test_the_path_to_the_root_is_the_one_of_the_visit(self) -> None:
        x = leaf()
        root = node_of(x.exp().sin().cos())
        visit = walk.visit([root])
        path: list[GraphNode] = list(query.path_up(query.takers_of(x, visit.nodes)[0], visit.nodes))
        assert names(path) == ["ExpBackward0", "SinBackward0", "CosBackward0"]

    def test_takers_are_those_that_use_the_leaf_itself(self) -> None:
        x, y = leaf(), leaf()
        inner = x.exp()
        root = node_of(inner * x + y)
        takers = query.takers_of(x, walk.visit([root]).nodes)
        assert sorted(names(takers)) == ["ExpBackward0", "MulBackward0"]


class TestBetween:
    def test_only_what_lies_between_the_root_and_the_inputs_runs(self) -> None:
        x, y = leaf(), leaf()
        hidden = x.exp()
        loss = hidden.sin() * y.cos()
        found = walk.visit([node_of(loss)])
        runs = query.restrict(found, [hidden])
        assert sorted(names(runs.nodes)) == ["MulBackward0", "SinBackward0"]
        assert runs.leaves == []
        assert query.restrict(found, [y]).leaves == [y]
        assert names(query.restrict(found, [y]).nodes) == ["MulBackward0", "CosBackward0"]

    def test_nothing_runs_for_an_input_that_the_root_does_not_use(self) -> None:
        found = walk.visit([node_of(leaf().exp())])
        assert not query.restrict(found, [leaf()]).nodes
