"""The commands of the prompt that are about gradients: graph, path, why, grads, saved, cuts, findings, diff and until.

Each turns what it is asked about into plain values, prints them, and keeps nothing.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gradtrace.debugger import wishes
from gradtrace.debugger.opening import read
from gradtrace.debugger.prompt import Prompt
from gradtrace.errors import GradtraceError, UsageError, no_such
from gradtrace.graphs import diff as comparing
from gradtrace.graphs import paths
from gradtrace.graphs.fold import Folding
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
path NAME       the paths from the loss to a parameter, or where they are cut (`path NAME from z`: from another tensor)
why [NAME]      the life of a parameter: its gradients, the steps that used them, and why it does not train
grads [NAME]    the gradients that there are now
saved [NAME]    the memory that a graph keeps for its backward
cuts [NAME]     where paths are cut, and the parameters that the last loss, or this tensor, does not lead to
findings        the faults found so far
diff            what of the last graph is not as it was at the call before, on the same line
until WORD      run on until the next backward, step, finding or nan

And those of pdb:
"""


class Sight(Protocol):
    """What can be seen of the run from outside of it."""

    def graph(self, text: str, value: Any, frame: FrameType) -> Graph: ...

    def names_of(self, value: object) -> Sequence[str]: ...

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

    def _graph_of(self, text: str, example: str) -> Graph:
        """The graph behind the value of an expression; without one, that of the last backward call."""
        text = text.strip()
        if text:
            value = self._evaluated(text)
            with self.looked_through():
                return self._sight.graph(text, value, self._frame)
        graph, _ = self._sight.latest()
        if graph is None:
            raise UsageError(f"no backward call has begun yet: name a tensor, as in `{example}`")
        return graph

    def _evaluated(self, text: str) -> Any:
        try:
            return self.value(text)
        except Exception as error:  # noqa: BLE001 - an expression of the user's may raise anything
            raise UsageError(f"{text}: {type(error).__name__}: {error}") from None

    def _names_of(self, text: str) -> Sequence[str]:
        """What the run calls the parameter, or the parameters of the module, that an expression means here (`self.head`);
        empty where it means nothing. Raises `UsageError` for a tensor that was computed."""
        try:
            value = self.value(text)
        except Exception:  # noqa: BLE001 - it is a name then, not an expression
            return ()
        if getattr(value, "grad_fn", None) is not None:
            raise UsageError(f"`{text}` is computed, not a parameter; `graph {text}` shows what it was computed from")
        names = self._sight.names_of(value)
        if not names and hasattr(value, "grad_fn") and not value.requires_grad:
            self._graph_of(text, "")  # which it has none of: says why
        return names

    def do_graph(self, arg: str) -> None:
        """graph [expression] [--depth N] [--open module]
        The graph behind a tensor as a tree, from its value back to the leaves. Without an expression: the graph of the last
        backward call, as it was before that call. What does not fit is folded: the options open more of it.
        """
        text, folding = read(arg)
        graph = _fitted(self._graph_of(text, "graph loss"), folding)
        self._show(lambda console: tree.render([graph], console, legend=True))

    def do_saved(self, arg: str) -> None:
        """saved [expression] [--depth N] [--open module]
        The memory that a graph keeps for its backward: by module, by line, and at each operation.
        """
        text, folding = read(arg)
        graph = _fitted(self._graph_of(text, "saved loss"), folding)
        self._show(lambda console: tree.render([graph], console, saved=True))

    def do_path(self, arg: str) -> None:
        """path name [from expression] [--depth N] [--open module]
        The paths from the root of the last backward call, or from a tensor, to a parameter; where none leads there, the
        cuts they end at.
        """
        text, folding = read(arg)
        name, _, start = text.partition(" from ")
        name = name.strip()
        if not name:
            raise UsageError("to which parameter? as in `path encoder.weight`")
        graph = self._graph_of(start, f"path {name} from loss")
        name = self._leaf(graph, name)
        found = _fitted(paths.toward(graph, name), folding)
        self._show(lambda console: tree.render([found], console))

    def do_cuts(self, arg: str) -> None:
        """cuts [expression]
        Where the paths of a graph are cut, and the parameters that it does not lead to. Without an expression: the graph
        of the last backward call.
        """
        graph = self._graph_of(arg, "cuts loss")
        cutting = [one for one in self._sight.findings() if one.rule in _CUTTING and not arg]
        self._show(lambda console: cuts_text.render(graph, cutting, console))

    def do_why(self, arg: str) -> None:
        """why [name]
        The life of a parameter so far: the backward calls that gave it a gradient, the steps that used it, and why it does
        not train. The name may be the end of a name, a module, a pattern (layers.*.weight) or an expression; without one,
        what became of each.
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
        chosen = self._chosen(lives, name)
        graph, _ = self._sight.latest()
        if graph is not None:
            chosen = reasons.with_paths(chosen, [graph])
        self._show(lambda console: lives_text.stories(chosen, console))

    def do_grads(self, arg: str) -> None:
        """grads [name]
        The gradient that each parameter has now, its norm, also relative to the weight, and the optimizer that holds it.
        """
        with self.looked_through():
            rows = self._sight.gradients(self._frame)
        if not rows:
            raise UsageError("no parameter is in sight here; try `up`, or `why`, which knows those of the whole run")
        wanted = paths.dotted(arg.strip())
        chosen = [row for row in rows if wanted in row.name or fnmatch.fnmatchcase(row.name, f"*{wanted}")]
        if not chosen:
            names = self._names_of(arg.strip())
            chosen = [row for row in rows if row.name in names]
        if not chosen:
            raise no_such("parameter in sight", wanted, [row.name for row in rows])
        self._show(lambda console: lives_text.gradients(chosen, console))

    def _chosen(self, lives: Sequence[Life], name: str) -> Sequence[Life]:
        """The lives that a name is about, else those that it means as an expression here."""
        try:
            return reasons.chosen(lives, name)
        except UsageError:
            names = self._names_of(name)
            if not names:
                raise
            return [life for life in lives if life.name in names]

    def _leaf(self, graph: Graph, name: str) -> str:
        """What the graph calls a leaf, or a parameter that it does not lead to."""
        found = paths.leaf_called(graph, name)
        for other in self._names_of(name) if found is None else ():
            found = found or paths.leaf_called(graph, other)
        if found is None:
            raise no_such("leaf of the graph", name, paths.leaf_names([graph]))
        return found

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
        if arg:
            raise UsageError("diff takes no name: it compares the last two backward calls of one line")
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


def _fitted(graph: Graph, folding: Folding) -> Graph:
    (fitted,) = folding.of([graph], tree.height, tree.PAGE)
    return fitted
