"""Builds graphs by hand, as a forward would."""

from __future__ import annotations

from gradtrace.model.graph import Call, Edge, Graph, Kind, Node, TensorFact
from gradtrace.model.site import Site

OP, LEAF, CONSTANT, CUT, BOX = Kind.OP, Kind.LEAF, Kind.CONSTANT, Kind.CUT, Kind.BOX
SHAPE = (TensorFact((2, 3), "float32"),)


class Building:
    """Builds a graph from the leaves to the loss, as a forward does. Ids are those of a walk back from the loss."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.reads: dict[int, list[int]] = {}
        self.calls: list[Call] = []
        self._running: list[int] = []

    def enter(self, path: str, kind: str = "Block") -> None:
        self.calls.append(Call(len(self.calls) + 1, path, kind, self._running[-1] if self._running else 0))
        self._running.append(len(self.calls))

    def leave(self) -> None:
        self._running.pop()

    def op(self, name: str, *sources: int, line: int = 1, function: str = "<module>", **more: object) -> int:
        call = self._running[-1] if self._running else 0
        path = self.calls[call - 1].path if call else ""
        made = sum(node.kind is OP for node in self.nodes) + 1
        stack = (Site("/train.py", line, function),)
        return self._add(Node(0, OP, f"{name}Backward0", None, SHAPE, stack, path, call=call, made=made), sources, more)

    def end(self, name: str, kind: Kind = LEAF, *sources: int) -> int:
        return self._add(Node(0, kind, "detach()" if kind is CUT else "", name, SHAPE), sources, {})

    def _add(self, node: Node, sources: tuple[int, ...], more: dict[str, object]) -> int:
        self.nodes.append(node._replace(id=len(self.nodes) + 1, **more))  # type: ignore[arg-type]
        self.reads[len(self.nodes)] = list(sources)
        return len(self.nodes)

    def linear(self, path: str, x: int, weight: int | None = None) -> int:
        self.enter(path, "Linear")
        weight = weight or self.end(f"{path}.weight")
        out = self.op("Addmm", x, self.op("T", weight), line=9)
        self.leave()
        return out

    def graph(self) -> Graph:
        last = len(self.nodes)
        nodes = tuple(node._replace(id=last + 1 - node.id) for node in reversed(self.nodes))
        edges = tuple(
            Edge(last + 1 - user, last + 1 - source, number)
            for user, sources in sorted(self.reads.items(), reverse=True)
            for number, source in enumerate(sources)
        )
        return Graph((1,), nodes, edges, calls=tuple(self.calls))


def encoder(layers: int, special: dict[int, dict[str, object]] | None = None) -> Graph:
    """`x` through a first Linear and equal layers of two Linears with a residual, to a loss."""
    made = Building()
    x = made.end("x", CONSTANT)
    made.enter("encoder", "Encoder")
    x = made.linear("encoder.first", x)
    for number in range(layers):
        path = f"encoder.layers.{number}"
        made.enter(path, "Layer")
        hidden = made.op("Relu", made.linear(f"{path}.up", x), line=5)
        x = made.op("Add", x, made.linear(f"{path}.down", hidden), line=6, **(special or {}).get(number, {}))
        made.leave()
    made.leave()
    made.op("Mean", made.op("Square", x, line=20), line=20)
    return made.graph()
