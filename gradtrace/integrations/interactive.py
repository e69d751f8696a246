"""For a REPL, a notebook or a test: the graph of a tensor, and the watch around a piece of code.

    gradtrace.show(loss)                    # the graph as a tree
    gradtrace.dot(loss).save("graph.svg")   # as a drawing; "graph.html" is a page to explore
    with gradtrace.watch() as w:            # the same engine as that of the command line
        train()
    w.findings, w.graphs, w.why("encoder.weight")

Lines and modules are known of what ran inside of a watch. Errors are those of `gradtrace.errors`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from gradtrace.errors import UsageError
from gradtrace.graphs import document
from gradtrace.graphs.fold import Folding
from gradtrace.host.streams import put_file
from gradtrace.model.finding import Finding
from gradtrace.model.graph import Graph
from gradtrace.model.lives import Life
from gradtrace.renderers.graph import dot as drawing
from gradtrace.renderers.graph import html, tree
from gradtrace.renderers.lives import text as lives_text
from gradtrace.renderers.paper import Paper, as_html
from gradtrace.report import reasons

if TYPE_CHECKING:
    import torch

#: columns where there is no terminal
_WIDTH = 100


@dataclass(frozen=True)
class Picture:
    """Graphs to look at. `graphs` are plain values: the tensors may go."""

    graphs: tuple[Graph, ...]
    folding: Folding = field(default_factory=Folding)

    def save(self, path: str | Path) -> None:
        """Writes a file; its ending chooses the format: .txt, .json, .dot, .svg, .png, .pdf or .html.

        Raises `UsageError` for another ending and `OutputError` where the file cannot be written or drawn.
        """
        target = Path(path).absolute()
        kind = target.suffix.lstrip(".").lower()
        if kind in ("svg", "png", "pdf"):
            drawing.write(self._source(), target, kind)
            return
        texts = {"txt": self._tree, "json": self._json, "dot": self._source, "gv": self._source, "html": self._page}
        if kind not in texts:
            raise UsageError(
                f"{path}: graphs are saved as {', '.join(f'.{known}' for known in (*texts, 'svg', 'png', 'pdf'))}"
            )
        put_file(target, texts[kind]().encode())

    def _tree(self, saved: bool = False) -> str:
        width = shutil.get_terminal_size((_WIDTH, 0)).columns
        return Paper("utf-8", width).printed(lambda console: tree.render(self._folded_tree(), console, saved=saved))

    def _folded_tree(self) -> Sequence[Graph]:
        return self.folding.of(self.graphs, tree.height, tree.PAGE)

    def _folded(self) -> Sequence[Graph]:
        return self.folding.of(self.graphs, lambda graph: len(graph.nodes), drawing.PAGE)

    def _source(self) -> str:
        return drawing.source(self._folded())

    def _page(self) -> str:
        return html.page(self._folded(), list(self.folding.open))

    def _json(self) -> str:
        return document.written(self.graphs)


@dataclass(frozen=True)
class Tree(Picture):
    """Graphs as trees of text: `print` it, or let a REPL or notebook show it."""

    saved: bool = False

    def __str__(self) -> str:
        return self._tree(self.saved).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(lambda console: tree.render(self._folded_tree(), console, saved=self.saved))


@dataclass(frozen=True, repr=False)
class Drawing(Picture):
    """Graphs as a drawing: a notebook shows it, `save` writes it."""

    @property
    def source(self) -> str:
        """The drawing in the DOT language of Graphviz."""
        return self._source()

    def __repr__(self) -> str:
        nodes = ", ".join(f"{len(graph.nodes):,} nodes" for graph in self.graphs)
        return f"<drawing of {nodes}; save it with .save('graph.svg') or .save('graph.html')>"

    def _repr_svg_(self) -> str | None:
        """None where the program `dot` is missing: then a notebook shows the page instead."""
        try:
            drawn = subprocess.run(
                ["dot", "-Tsvg"], input=self._source().encode(), capture_output=True, timeout=30, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return drawn.stdout.decode()

    def _repr_html_(self) -> str | None:
        """The page to explore, in a frame, where there is no SVG."""
        if shutil.which("dot"):
            return None
        page = self._page().replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe srcdoc="{page}" style="width:100%;height:600px;border:0"></iframe>'


@dataclass(frozen=True)
class LifeTable:
    """What became of parameters: `print` it, or let a REPL or notebook show it."""

    lives: tuple[Life, ...]
    #: each life, and not a table of all
    in_full: bool = False

    def __str__(self) -> str:
        width = shutil.get_terminal_size((_WIDTH, 0)).columns
        return Paper("utf-8", width).printed(self._draw).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self._draw)

    def _draw(self, console: Any) -> None:
        draw = lives_text.stories if self.in_full else lives_text.table
        draw(self.lives, console)


def show(*tensors: torch.Tensor, depth: int | None = None, open: Collection[str] = (), saved: bool = False) -> Tree:
    """The graph behind tensors as a tree: `gradtrace.show(loss)`.

    `depth` levels of modules are opened (by default what fits a screen), and the modules named in `open`; `saved` adds
    the memory that is kept for the backward. Raises `UsageError` where a tensor has no graph.
    """
    return Tree((_graph(tensors, sys._getframe(1)),), Folding(depth, open), saved)


def dot(*tensors: torch.Tensor, depth: int | None = None, open: Collection[str] = ()) -> Drawing:
    """The graph behind tensors as a drawing: `gradtrace.dot(loss).save("graph.svg")`. See `show` for the options."""
    return Drawing((_graph(tensors, sys._getframe(1)),), Folding(depth, open))


def _graph(tensors: Sequence[torch.Tensor], frame: FrameType) -> Graph:
    from gradtrace.watcher.watch import graph_of

    if not tensors:
        raise UsageError("which tensor? as in `gradtrace.show(loss)`")
    for tensor in tensors:
        if not getattr(tensor, "requires_grad", False):
            raise UsageError(f"{type(tensor).__name__} without a graph: it does not require grad")
    return graph_of(tensors, frame)


class watch:  # noqa: N801 - used like a function
    """Watches this thread's use of torch in a `with` block.

    `findings` are what `gradtrace check` would report, `graphs` those of each backward call site, one each. Both can be
    read in the block and after it.
    """

    def __init__(self) -> None:
        from gradtrace.rules import Judge
        from gradtrace.watcher.pictures.snapshot import Snapshots
        from gradtrace.watcher.watch import Watch

        self._judge = Judge()
        self._snapshots = Snapshots(stop_when_repeated=False, remaining=False)
        self._watch = Watch(self._judge.see, snapshots=self._snapshots, rules=True, lives=True)

    def __enter__(self) -> watch:
        self._watch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._watch.__exit__()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The faults found so far, the worst first; some show only when the block has ended."""
        return self._judge.findings

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph of each line with a backward() or autograd.grad() call, as it was at the first such call."""
        return tuple(self._snapshots.graphs)

    def why(self, name: str = "") -> LifeTable:
        """What became of each parameter so far; with a name, the life of one: `w.why("encoder.weight")`.

        The name may be the end of a name, an expression, or a pattern (`encoder.*`). Raises `UsageError` where no parameter
        is called so.
        """
        self._watch.meet(sys._getframe(1))
        lives = reasons.explained(self._watch.lives, self.findings)
        chosen = reasons.chosen(lives, name) if name else reasons.of_interest(lives)
        return LifeTable(tuple(reasons.with_paths(chosen, self.graphs)), in_full=bool(name))

    def show(self, depth: int | None = None, open: Collection[str] = (), saved: bool = False) -> Tree:
        """The graphs as trees."""
        return Tree(self.graphs, Folding(depth, open), saved)

    def dot(self, depth: int | None = None, open: Collection[str] = ()) -> Drawing:
        """The graphs as a drawing."""
        return Drawing(self.graphs, Folding(depth, open))
