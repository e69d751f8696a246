"""The commands of the prompt that are about gradients: graph, path, why, grads, saved, cuts, findings, diff and until.

Each turns what it is asked about into plain values, prints them, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gradtrace.debugger import wishes
from gradtrace.debugger.prompt import Prompt
from gradtrace.errors import GradtraceError, UsageError, no_such
from gradtrace.graphs import diff as comparing
from gradtrace.graphs import fold, paths
from gradtrace.model.finding import Finding
from gradtrace.model.graph import Graph
from gradtrace.model.lives import GradientNow, Life
from gradtrace.model.moments import Moment
from gradtrace.renderers.findings import text as findings_text
from gradtrace.renderers.graph import cuts as cuts_text
from gradtrace.renderers.graph import diff as diff_text
from gradtrace.renderers.graph import tree
from gradtrace.renderers.lives import text as lives_text
from gradtrace.renderers.paper import Paper
from gradtrace.report import reasons

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import FrameType

HELP = """\
Commands about gradients (an expression that begins like one of them is Python: `!grads` prints a variable of that name):

graph [NAME]    the graph behind a tensor, any expression; without a name, that of the last backward call
path NAME       the paths from the loss to a parameter, or where they are cut
why NAME        the life of a parameter: its gradients, the steps that used them, and why it does not train
grads           the gradients that there are now
saved [NAME]    the memory that a graph keeps for its backward
cuts            where paths are cut, and the parameters that the last loss does not lead to
findings        the faults found so far
diff            what of the last graph is not as it was at the call before, on the same line
until WORD      run on until the next backward, step, finding or nan

And those of pdb:
"""


class Sight(Protocol):
    """What can be seen of the run from outside of it."""

    def graph(self, tensor: Any, frame: FrameType) -> Graph: ...

    def latest(self) -> tuple[Graph | None, Graph | None]: ...

    def lives(self, frame: FrameType) -> Sequence[Life]: ...

    def gradients(self, frame: FrameType) -> Sequence[GradientNow]: ...

    def findings(self) -> Sequence[Finding]: ...

    def until(self, moment: Moment) -> None: ...

    def at_prompt(self) -> AbstractContextManager[None]: ...


class GradientPrompt(Prompt):
    """Pdb with these commands."""

    def __init__(self, is_user: Callable[[FrameType], bool], sight: Sight, color: bool) -> None:
        super().__init__(is_user, sight.at_prompt)
        self._sight = sight
        self._paper = Paper("utf-8", None, color)

    def onecmd(self, line: str) -> bool:
        name, rest, _ = self.parseline(line)
        if name in _OURS and self.is_python(name, rest or ""):
            line = f"!{line}"
        try:
            return bool(super().onecmd(line))
        except GradtraceError as error:
            self.error(str(error))
            return False

    def _show(self, draw: Callable[[Any], None]) -> None:
        self.message(self._paper.printed(draw).rstrip("\n"))

    @property
    def _frame(self) -> FrameType:
        assert self.curframe is not None
        return self.curframe

    def _last(self) -> Graph:
        graph, _ = self._sight.latest()
        if graph is None:
            raise UsageError("no backward call has begun yet: name a tensor, as in `graph loss`")
        return graph

    def _graph_of(self, text: str) -> Graph:
        if not text.strip():
            return self._last()
        try:
            tensor = self.value(text)
        except Exception as error:  # noqa: BLE001 - an expression of the user's may raise anything
            raise UsageError(f"{text}: {type(error).__name__}: {error}") from None
        with self.looked_through():
            return self._sight.graph(tensor, self._frame)

    def do_graph(self, arg: str) -> None:
        """graph [expression]
        The graph behind a tensor as a tree, from its value back to the leaves. Without an expression: the graph of the last
        backward call, as it was before that call.
        """
        graph = self._graph_of(arg)
        self._show(lambda console: tree.render([_fitted(graph)], console, legend=True))

    def do_saved(self, arg: str) -> None:
        """saved [expression]
        The memory that a graph keeps for its backward: by module, by line, and at each operation.
        """
        graph = self._graph_of(arg)
        self._show(lambda console: tree.render([_fitted(graph)], console, saved=True))

    def do_path(self, arg: str) -> None:
        """path name
        The paths from the root of the last backward call to a parameter; where none leads there, the cuts they end at.
        """
        graph = self._last()
        name = _leaf(graph, arg.strip())
        found = paths.toward(graph, name)
        self._show(lambda console: tree.render([_fitted(found)], console))

    def do_cuts(self, arg: str) -> None:
        """cuts
        Where the paths of the last graph are cut, and the parameters that it does not lead to.
        """
        graph = self._last()
        cutting = [one for one in self._sight.findings() if one.rule in _CUTTING]
        self._show(lambda console: cuts_text.render(graph, cutting, console))

    def do_why(self, arg: str) -> None:
        """why name
        The life of a parameter so far: the backward calls that gave it a gradient, the steps that used it, and why it does
        not train. The name may be the end of a name, or a pattern.
        """
        with self.looked_through():
            lives = self._sight.lives(self._frame)
        if not any(life.stretches for life in lives):
            raise UsageError("no backward call has ended yet, and no optimizer has made a step")
        name = arg.strip()
        if not name:
            shown = reasons.of_interest(lives)
            self._show(lambda console: lives_text.table(shown, console))
            return
        chosen = reasons.chosen(lives, name)
        graph, _ = self._sight.latest()
        if graph is not None:
            chosen = reasons.with_paths(chosen, [graph])
        self._show(lambda console: lives_text.stories(chosen, console))

    def do_grads(self, arg: str) -> None:
        """grads [name]
        The gradient that each parameter has now, its norm, also relative to the weight, and the optimizer that holds it.
        """
        with self.looked_through():
            rows = [row for row in self._sight.gradients(self._frame) if arg.strip() in row.name]
        if not rows:
            raise UsageError("no parameter is in sight here; try `up`")
        self._show(lambda console: lives_text.gradients(rows, console))

    def do_findings(self, arg: str) -> None:
        """findings
        The faults found so far, the worst first.
        """
        found = self._sight.findings()
        if not found:
            self.message("nothing found so far")
            return
        self._show(lambda console: findings_text.listing(found, console))

    def do_diff(self, arg: str) -> None:
        """diff
        What of the graph of the last backward call is not as it was at the call before, on the same line.
        """
        graph, previous = self._sight.latest()
        if graph is None or previous is None:
            raise UsageError("no line has made two backward calls yet: there is nothing to compare")
        old, new = comparing.version("the previous iteration", [previous]), comparing.version("this one", [graph])
        found = comparing.compared(old, new)
        self._show(lambda console: diff_text.render(old, new, found, console))

    def do_until(self, arg: str) -> bool | None:
        """unt(il) [lineno | backward | step | finding | nan]
        Without argument, continue until a line with a greater number is reached; with a line number, until that line. With
        a word, continue until the next backward call, optimizer step, finding, or value that is not finite.
        """
        wanted = wishes.moment(arg.strip())
        if wanted is None:
            done: bool | None = super().do_until(arg)
            return done
        self._sight.until(wanted)
        self.set_continue()
        return True

    do_unt = do_until

    def do_help(self, arg: str) -> bool | None:
        """h(elp)
        Without argument, print the list of available commands; with a command, print help about it.
        """
        if not arg:
            self.message(HELP.rstrip())
        helped: bool | None = super().do_help(arg)
        return helped

    do_h = do_help
    # an expression, or a name that the frame knows
    complete_graph = complete_saved = complete_path = complete_why = complete_grads = Prompt.complete_p

    def complete_until(self, text: str, *ignored: Any) -> list[str]:
        """The moments."""
        return [one.value for one in Moment if one.value.startswith(text)]

    complete_unt = complete_until


#: rules about values which do not lead back to what they were made from
_CUTTING = frozenset({"no-graph", "unreached-parameter", "missing-create-graph", "dead-loss-term"})
_OURS = frozenset({"graph", "path", "why", "grads", "saved", "cuts", "findings", "diff"})


def _fitted(graph: Graph) -> Graph:
    return fold.fitted(graph, tree.height, tree.PAGE)


def _leaf(graph: Graph, name: str) -> str:
    if not name:
        raise UsageError("to which parameter? as in `path encoder.weight`")
    found = paths.leaf_called(graph, name)
    if found is None:
        raise no_such("leaf of the graph", name, paths.leaf_names([graph]))
    return found
