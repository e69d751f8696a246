"""Why a parameter does not train: the finding that is about it, else what its own life shows."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradtrace.errors import no_such
from gradtrace.graphs import paths
from gradtrace.model.finding import Finding
from gradtrace.model.graph import Graph
from gradtrace.model.lives import Life, State

#: what the life alone shows
_PLAIN = {
    State.BY_HAND: "no optimizer holds it; the script updates it itself",
    State.FROZEN: "it does not require grad, and no backward call gave it a gradient",
    State.UNOWNED: "backward calls give it a gradient, but no optimizer holds it",
    State.UNREACHED: "no backward call gave it a gradient",
    State.ZERO: "its gradient was exactly 0 after each backward call",
    State.NONFINITE: "a backward call gave it a gradient that is NaN or infinite",
    State.UNMOVED: "it has a gradient, but no optimizer step changed it",
}
#: rules about gradients that are summed with others
_SUMS = ("stale-grad", "repeated-backward", "leaked-grad")
#: the rules that explain a state, the best one first
_RULES: dict[State, tuple[str, ...]] = {
    State.TRAINS: (*_SUMS, "scaled-grad", "late-clip", "nonfinite-grad"),
    State.BY_HAND: _SUMS,
    State.FROZEN: (),
    State.UNOWNED: ("unoptimized-parameter", *_SUMS),
    State.UNREACHED: ("unreached-parameter", "no-graph", "freed-graph"),
    State.ZERO: ("zero-gradient",),
    State.NONFINITE: ("nonfinite-grad",),
    State.UNMOVED: ("never-stepped", "no-effect-step", "cleared-grad", "step-without-grad"),
}


def explained(lives: Iterable[Life], findings: Sequence[Finding]) -> list[Life]:
    """The lives, each with what is wrong with it."""
    return [_explained(life, findings) for life in lives]


def of_interest(lives: Sequence[Life]) -> list[Life]:
    """Of plain tensors those that the script trains, or that a finding is about: others may be inputs. All of them, where
    there are no others."""
    found = [life for life in lives if not life.plain or life.at or life.state is State.BY_HAND]
    return found or list(lives)


def _explained(life: Life, findings: Sequence[Finding]) -> Life:
    rules = _RULES[life.state]
    fitting = [finding for finding in findings if finding.rule in rules]
    about = [finding for finding in fitting if _is_about(finding, life.name)]
    # a finding names the first few of many
    if not about and len(fitting) == 1 and _may_be_about(fitting[0], life):
        about = fitting
    if not about and life.state in (State.UNREACHED, State.UNMOVED):
        # the run has come to an early end
        about = [finding for finding in findings if finding.error is not None][:1]
    if not about:
        return replace(life, reason=_plain_reason(life))
    best = min(about, key=lambda finding: rules.index(finding.rule) if finding.rule in rules else 0)
    return replace(life, reason=best.message, at=(best.site,))


def _plain_reason(life: Life) -> str:
    reason = _PLAIN.get(life.state, "")
    return f"{reason}, and no optimizer holds it" if life.state is State.UNREACHED and not life.optimizer else reason


def _is_about(finding: Finding, name: str) -> bool:
    """Whether it names the parameter, or the module that holds it."""
    return any(name == one or name.startswith((f"{one}.", f"{one}[")) for one in finding.about)


def _may_be_about(finding: Finding, life: Life) -> bool:
    """Whether a finding that names others may be about this one as well."""
    if finding.rule in _SUMS:
        calls = [arrival for one in life.stretches for arrival in one.first.arrivals]
        return any(arrival.accumulated for arrival in calls)
    return life.state is not State.TRAINS or not finding.about


def with_paths(lives: Iterable[Life], graphs: Sequence[Graph]) -> list[Life]:
    """The lives, each with its path from the loss in the first of the graphs that has one."""
    found = []
    for life in lives:
        cut = life.at[0].place if life.at else None
        lines = (paths.in_one_line(graph, life.name, cut) for graph in graphs)
        found.append(replace(life, path=next(filter(None, lines), "")))
    return found


def chosen(lives: Sequence[Life], name: str) -> list[Life]:
    """The lives that a name, the end of a name, an expression (`model.layers[0].weight`), a module's name or a glob is
    about.

    Raises `UsageError` where there are none, with the nearest names.
    """
    wanted = paths.dotted(name)
    exact = [life for life in lives if paths.dotted(life.name) == wanted]
    if exact:
        return exact
    ending = [life for life in lives if paths.dotted(life.name).endswith("." + wanted)]
    if ending:
        return ending
    inside = [life for life in lives if f".{wanted}." in f".{paths.dotted(life.name)}"]
    if inside:
        return inside
    matching = [life for life in lives if fnmatch.fnmatchcase(f".{paths.dotted(life.name)}", f"*.{wanted}")]
    if matching:
        return matching
    raise no_such("parameter of this run", name, [life.name for life in lives])
