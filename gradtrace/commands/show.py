"""`show` and `dot`: graphs of a script that runs, or from a file, passed on to a renderer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from gradtrace.commands.run import Options, WatchedRun, by_ending
from gradtrace.errors import DocumentError, ExitCode, UsageError, no_such
from gradtrace.graphs import document, paths
from gradtrace.graphs.fold import Folding
from gradtrace.host import heap, streams
from gradtrace.model.finding import Ended
from gradtrace.model.graph import Graph
from gradtrace.renderers.output import Out

SHOW_FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """Which graphs."""

    to_end: bool = False
    tensor: str | None = None
    line: int | None = None
    #: with the gradients that come by
    gradients: bool = False
    #: only the paths to this leaf
    path: str | None = None

    def of(self, graphs: Sequence[Graph]) -> Sequence[Graph]:
        """The graphs that lead to the requested leaf; all, down to where their paths end, where none does."""
        if self.path is None:
            return graphs
        known = paths.leaf_names(graphs)
        if self.path not in known:
            raise no_such("leaf of the graph", self.path, known)
        leading = [graph for graph in graphs if self.path in paths.leaf_names([replace(graph, absent=())])]
        return [paths.toward(graph, self.path) for graph in leading or graphs]


def show(options: Options, wanted: GraphOptions, folding: Folding, saved: bool = False) -> int:
    """Prints the graphs as trees, or writes them as JSON; returns the exit code. `saved`: with the memory they keep."""
    kind = options.format or by_ending(options.output, "show", "text", SHOW_FORMATS)
    if kind not in SHOW_FORMATS:
        raise UsageError(f"--format {kind}: show writes {' or '.join(SHOW_FORMATS)}")

    from gradtrace.renderers.graph import tree

    def draw(graphs: Sequence[Graph], out: Out, torch: str) -> str:
        if kind == "json":
            return document.written(graphs, options.named, torch)
        folded = folding.of(graphs, tree.height, tree.PAGE)
        return out.paper.printed(
            lambda console: tree.render(folded, console, saved=saved, legend=out.paper.is_terminal)
        )

    return _draw_graphs(options, wanted, Out(options.output, options.color, claim=kind == "json"), draw)


def dot(options: Options, wanted: GraphOptions, folding: Folding, forward: bool) -> int:
    """Writes the graphs as DOT, or draws them; returns the exit code."""
    from gradtrace.renderers.graph import dot, html

    kind = by_ending(options.output, "dot", "dot", ("gv", "dot", "svg", "png", "pdf", "html"))
    direction: dot.Direction = "forward" if forward else "backward"

    def folded(graphs: Sequence[Graph]) -> Sequence[Graph]:
        return folding.of(graphs, lambda graph: len(graph.nodes), dot.PAGE)

    def source(graphs: Sequence[Graph], *_: object) -> str:
        return dot.source(folded(graphs), direction)

    if kind in ("dot", "gv"):
        out = Out(options.output, options.color, claim=options.output is None)
        return _draw_graphs(options, wanted, out, source)
    if kind == "html":
        out = Out(options.output, options.color)
        return _draw_graphs(options, wanted, out, lambda graphs, *_: html.page(folded(graphs), list(folding.open)))
    assert options.output is not None  # it was its ending that selected this
    path = options.output.absolute()
    dot.require_program(path)

    def draw(graphs: Sequence[Graph], _: Out, torch: str) -> None:
        if dot.write(source(graphs), path, kind) != "dot":
            streams.announce(f"{path} was laid out by sfdp, since the graph is too large for dot")

    return _draw_graphs(options, wanted, Out(options.output, options.color), draw)


#: the graphs, where the result goes, and the version of torch, if it ran
_Draw: TypeAlias = Callable[[Sequence[Graph], "Out", str], "str | None"]


def _draw_graphs(options: Options, wanted: GraphOptions, out: Out, draw: _Draw) -> int:
    options.check_places(options.output)
    if options.module is None and options.words and options.words[0].endswith(".json"):
        graphs = _read_back(options, wanted)
        out.write(draw(wanted.of(graphs), out, ""))
        return ExitCode.OK
    if wanted.gradients and wanted.tensor is not None:
        raise UsageError("--grad reads gradients while a backward call runs; --tensor shows a tensor without one")
    program = options.load()

    with heap.filled():
        from gradtrace.watcher.pictures.snapshot import Snapshots
        from gradtrace.watcher.watch import TORCH_VERSION, Watch

    snapshots = Snapshots(
        stop_when_repeated=not wanted.to_end and wanted.tensor is None,
        tensor=wanted.tensor,
        line=wanted.line,
        gradients=wanted.gradients,
    )
    watch = Watch(
        lambda event: None, user_roots=program.roots, stop_after=options.steps, snapshots=snapshots, debug=options.debug
    )

    def finish(ended: Ended) -> int:
        # ours alone from here on: gone when this ends, and not looked through when the process does
        graphs, snapshots.graphs = snapshots.graphs, []
        for remark in watch.remarks:
            streams.announce(remark)
        if not graphs:
            streams.announce(snapshots.why_nothing())
            return ExitCode.SCRIPT_FAILED if ended.status else ExitCode.NOTHING_TO_CHECK
        out.write(draw(wanted.of(graphs), out, TORCH_VERSION))
        return ExitCode.SCRIPT_FAILED if ended.status else ExitCode.OK

    return WatchedRun(program, watch, finish).run(options.timeout)


def _read_back(options: Options, wanted: GraphOptions) -> Sequence[Graph]:
    name = options.words[0]
    given = {
        "--steps": options.steps,
        "--tensor": wanted.tensor,
        "--to-end": wanted.to_end,
        "--grad": wanted.gradients,
        "arguments": options.words[1:],
    }
    if unusable := [option for option, value in given.items() if value]:
        raise UsageError(
            f"{name} is a saved graph, which does not run: it takes no {unusable[0]} (options come before it)"
        )
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None
    graphs = document.read(text, name)
    chosen = [graph for graph in graphs if wanted.line is None or (graph.stack and graph.stack[0].line == wanted.line)]
    if not chosen:
        raise UsageError(f"{name} has no graph of line {wanted.line}")
    return chosen
