"""Folding of graphs: what becomes a box, what stays outside, and that nothing is lost."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from building import BOX, CONSTANT, CUT, LEAF, OP, SHAPE, Building, encoder

from gradtrace.graphs import fold
from gradtrace.model.graph import Gradient, Graph, Saved, SavedState, TensorFact

FREED = (Saved("result", TensorFact(None), 0, SavedState.FREED),)


def titles(graph: Graph) -> list[tuple[str, int]]:
    return [(",".join(node.box.paths), node.box.times) for node in graph.nodes if node.box]


def covered(graph: Graph) -> Counter[int]:
    """How often each node of the whole graph is drawn, in a box or by itself."""
    found: Counter[int] = Counter()
    for node in graph.nodes:
        found.update(node.box.members if node.box else [node.id])
    return found


LAYERS = ",".join(f"encoder.layers.{number}" for number in range(12))


class TestDepth:
    def test_0_shows_the_outermost_modules_and_lines(self) -> None:
        graph = fold.folded(encoder(12), 0)
        assert titles(graph) == [("", 1), ("encoder", 1)]
        line, module = graph.nodes
        assert (line.op, module.op, graph.roots) == ("Square, Mean", "Encoder", (line.id,))
        assert [(edge.user, edge.source) for edge in graph.edges] == [(line.id, module.id)]

    def test_1_shows_equal_layers_once(self) -> None:
        graph = fold.folded(encoder(12), 1)
        assert titles(graph) == [(LAYERS, 12), ("encoder.first", 1)]

    def test_2_opens_the_last_of_equal_layers(self) -> None:
        graph = fold.folded(encoder(12), 2)
        others = LAYERS.removesuffix(",encoder.layers.11")
        assert [(title, times) for title, times in titles(graph) if times > 1] == [(others, 11)]
        assert {title for title, times in titles(graph) if times == 1} == {
            "encoder.first", "encoder.layers.11.up", "encoder.layers.11.down"
        }  # fmt: skip
        assert [node.box.times for node in graph.nodes if node.box and node.box.more] == [11]
        assert "ReluBackward0" in {node.op for node in graph.nodes}

    def test_all_leaves_no_box_but_repetitions(self) -> None:
        graph = fold.folded(encoder(12), 3)
        assert [node.box.times for node in graph.nodes if node.box] == [11]
        assert fold.folded(encoder(1), 3) == encoder(1)

    def test_is_chosen_by_what_fits(self) -> None:
        whole = encoder(12)

        def size(graph: Graph) -> int:
            return len(graph.nodes)

        assert fold.fitted(whole, size, 1_000) is whole
        for depth in (2, 1):
            rows = size(fold.folded(whole, depth))
            assert fold.fitted(whole, size, rows) == fold.folded(whole, depth)
            assert fold.fitted(whole, size, rows - 1) == fold.folded(whole, depth - 1)
        assert fold.fitted(whole, size, 1) == fold.folded(whole, 0), "no less can be shown"

    def test_outside_of_modules_opens_functions_and_lines(self) -> None:
        made = Building()
        x = made.end("w")
        for line in (3, 3, 4, 4):
            x = made.op("Sin", x, line=line, function="step")
        made.op("Sum", x, line=9)
        kinds = [[node.kind for node in fold.folded(made.graph(), depth).nodes] for depth in range(3)]
        assert kinds == [[OP, BOX], [OP, BOX, BOX], [OP, OP, OP, OP, OP, LEAF]]
        boxes = [fold.folded(made.graph(), depth).nodes[1].box for depth in range(2)]
        assert [box.functions for box in boxes if box] == [("step",), ()]


class TestOpen:
    def test_shows_one_module_whole(self) -> None:
        graph = fold.folded(encoder(12), 0, ["encoder.layers.3"])
        assert titles(graph) == [
            ("", 1),
            (",".join(f"encoder.layers.{number}" for number in range(4, 12)), 8),
            (",".join(f"encoder.layers.{number}" for number in range(3)), 3),
            ("encoder.first", 1),
        ]
        modules = {node.module for node in graph.nodes if node.kind is OP}
        assert modules == {"encoder.layers.3", "encoder.layers.3.up", "encoder.layers.3.down"}

    def test_knows_all_modules(self) -> None:
        assert fold.modules(encoder(1)) == [
            "encoder", "encoder.first", "encoder.layers.0", "encoder.layers.0.up", "encoder.layers.0.down"
        ]  # fmt: skip


class TestWhatIsNeverHidden:
    @pytest.mark.parametrize("depth", [0, 1, 2])
    def test_a_cut(self, depth: int) -> None:
        made = Building()
        x = made.end("x", CONSTANT)
        made.enter("net")
        for number in range(6):
            x = made.linear(f"net.{number}", x if number != 3 else made.end("h", CUT, made.end("old", CONSTANT)))
        made.leave()
        graph = fold.folded(made.graph(), depth)
        (cut,) = [node for node in graph.nodes if node.kind is CUT]
        (user,) = [edge.user for edge in graph.edges if edge.source == cut.id]
        drawn = graph.by_id[user]
        assert (drawn.box.paths if drawn.box else drawn.module) == [("net",), ("net.3",), "net.3"][depth]

    @pytest.mark.parametrize(
        "fault",
        [{"saved": (Saved("self", TensorFact(None), 0, SavedState.MODIFIED),)}, {"tags": ("modified in place",)}],
    )
    def test_what_was_written_to(self, fault: dict[str, object]) -> None:
        graph = fold.folded(encoder(12, {4: fault}), 0)
        assert [node.module for node in graph.nodes if node.kind is OP and not node.box and node.op[:3] == "Add"] == [
            "encoder.layers.4"
        ]

    def test_a_freed_node_beside_others(self) -> None:
        kept = {"saved": (Saved("result", SHAPE[0], 24),)}
        special = {number: {"saved": FREED} if number == 4 else kept for number in range(12)}
        graph = fold.folded(encoder(12, special), 0)
        assert [node.box.paths for node in graph.nodes if node.tags] == [("encoder.layers.4",)]

    def test_but_where_all_is_freed_the_box_says_so(self) -> None:
        graph = fold.folded(encoder(12, {number: {"saved": FREED} for number in range(12)}), 1)
        assert [(node.box.times, node.tags) for node in graph.nodes if node.box] == [(12, ("freed",)), (1, ())]

    def test_a_gradient_that_went_wrong(self) -> None:
        wrong = {4: {"gradient": Gradient(float("nan"), 0.0, 0.0, 0.5), "tags": ("checkpoint",)}}
        whole = encoder(6, wrong)
        dead = Gradient(0.0, 0.0, 1.0, 0.0)
        leaf = "encoder.layers.2.up.weight"
        whole = replace(
            whole, nodes=tuple(one._replace(gradient=dead) if one.name == leaf else one for one in whole.nodes)
        )
        (tags,) = [node.tags for node in fold.folded(whole, 0).nodes if node.op == "Encoder"]
        assert tags == ("checkpoint", "1 NaN or infinite gradient inside", "1 all-zero leaf gradient inside")


class TestBoxes:
    def test_count_nodes_parameters_and_bytes(self) -> None:
        saved = {"saved": (Saved("result", SHAPE[0], 24, storage=7, storage_bytes=24),)}
        other = {"saved": (Saved("self", SHAPE[0], 24, storage=8, storage_bytes=96),)}
        parameter = {"saved": (Saved("weight", SHAPE[0], 24, storage=9, storage_bytes=24, parameter=True),)}
        graph = fold.folded(encoder(3, {0: saved, 1: other, 2: parameter}), 0)
        box = graph.nodes[1].box
        assert box is not None
        assert (box.operations, len(box.members), box.parameters) == (20, 28, 42)
        assert box.saved_bytes == 120
        assert graph.whole == encoder(3, {0: saved, 1: other, 2: parameter})

    def test_share_a_leaf_only_where_different_modules_use_it(self) -> None:
        made = Building()
        weight = made.end("embed.weight")
        x = made.linear("embed", made.end("x", CONSTANT), weight)
        x = made.linear("middle", x)
        made.linear("head", x, weight)
        graph = fold.folded(made.graph(), 0)
        assert [node.name for node in graph.nodes if node.kind is LEAF] == ["embed.weight"]
        assert len([edge for edge in graph.edges if graph.by_id[edge.source].kind is LEAF]) == 2

    def test_number_their_outputs(self) -> None:
        made = Building()
        made.enter("net")
        first = made.op("Sin", made.end("x"))
        second = made.op("Cos", first)
        made.leave()
        made.op("Mul", second, made.op("Exp", first, line=7), line=8)
        graph = fold.folded(made.graph(), 0)
        (box,) = [node for node in graph.nodes if node.box]
        read = sorted((graph.by_id[edge.user].op, edge.output) for edge in graph.edges if edge.source == box.id)
        assert (read, box.outputs) == ([("ExpBackward0", 1), ("MulBackward0", 0)], SHAPE * 2)

    def test_a_loop_ends_with_a_whole_turn(self) -> None:
        made = Building()
        h, weights = made.end("h"), [made.end("a.weight"), made.end("b.weight")]
        h = made.linear("b", h, weights[1])
        for _ in range(10):
            h = made.linear("b", made.linear("a", h, weights[0]), weights[1])
        graph = fold.folded(made.graph(), 0)
        assert titles(graph) == [("a,b", 10), ("b", 1)]


@pytest.mark.parametrize("seed", range(30))
def test_in_any_graph_every_node_is_drawn_once_and_no_way_leads_in_a_circle(seed: int) -> None:
    draw = random.Random(seed)
    made = Building()
    known = [made.end(f"x{number}") for number in range(3)]
    depth = 0
    for _ in range(80):
        choice = draw.random()
        if choice < 0.15 and depth < 4:
            made.enter(".".join(draw.choice("abc") for _ in range(depth + 1)), draw.choice(["Linear", "Block"]))
            depth += 1
        elif choice < 0.3 and depth:
            made.leave()
            depth -= 1
        else:
            tags = ("freed",) if draw.random() < 0.05 else ()
            sources = draw.choices(known[-6:], k=draw.randint(1, 3))
            known.append(made.op(draw.choice(["Sin", "Mul"]), *sources, line=draw.randint(1, 4), tags=tags))
    whole = made.graph()
    for level in range(6):
        graph = fold.folded(whole, level, ["a.b"])
        assert graph.is_acyclic
        assert {edge.source for edge in graph.edges} <= {node.id for node in graph.nodes}
        ops = {node.id: node for node in whole.nodes if node.kind is OP}
        drawn = covered(graph)
        assert {number: drawn[number] for number in ops} == dict.fromkeys(ops, 1)
        assert set(drawn) == set(whole.by_id)
        facts = {node.id: node.outputs for node in graph.nodes}
        assert all(edge.output < len(facts[edge.source]) for edge in graph.edges)
