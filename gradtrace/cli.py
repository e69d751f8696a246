"""The command line: parses, hands on to the commands, and is the one place where our errors become messages and exit
codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from gradtrace.errors import ExitCode, GradtraceError, UsageError
from gradtrace.host.streams import announce

_CHECK_CODES = """
Exit codes: 0 nothing at or above --fail-on; 1 findings; 2 usage, or an internal error; 3 the script failed for another
reason, which no finding explains; 4 nothing to check: no backward() or autograd.grad() call was seen, or an internal
error kept gradtrace from checking the whole run.
"""
_GRAPH_CODES = "Exit codes: 0 shown; 2 usage, or an internal error; 3 the script failed; 4 no graph was seen."
_STORY_CODES = "Exit codes: 0 shown; 2 usage, or an internal error; 3 the script failed, and the story shows where."
_DIFF_CODES = "Exit codes: 0 equal; 1 different; 2 usage, or an internal error."
_FIX_CODES = """
Exit codes: 0 nothing is left to fix; 1 a finding is left; 2 usage, or an internal error; 3 the script failed for another
reason.
"""
_LIVES_CODES = """
Exit codes: 0 all that optimizers hold trains; 1 something that an optimizer holds does not; 2 usage, or an internal
error; 3 the script failed; 4 no parameter was seen.
"""


@dataclass(frozen=True)
class _Invocation:
    """The command that a command line names. It runs outside of typer, whose error handling must not touch the script's."""

    run: Callable[[], int]
    debug: bool

    def answer(self) -> int:
        """The exit code. Raises `GradtraceError`."""
        try:
            os.getcwd()
        except OSError:
            raise GradtraceError("the working directory is gone; change to one that exists") from None
        try:
            return self.run()
        except GradtraceError:
            raise
        except Exception as error:
            if self.debug:
                traceback.print_exception(error)
            place = traceback.extract_tb(error.__traceback__)[-1]
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise GradtraceError(
                f"internal error: {reason}, at {place.name}:{place.lineno}; "
                "please report it with the traceback that --debug shows"
            ) from error


# --- how typer parses ------------------------------------------------------------------------------------------------


class _Light:
    """Takes texts, and what is not given, as they are: to check them typer loads pydantic, half of all that our start
    takes."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in parameters:
            kind = getattr(one, "type_descriptor", None)  # older ones of typer have none, and do without pydantic
            if kind is not None and not one.required:
                is_text = kind.annotation in (str, list[str])
                vars(one).setdefault("process_value", partial(_value, is_text, one.process_value))
        return parameters


def _value(is_text: bool, checked: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    return value if is_text or value is None else checked(context, value)


class _Commands(_Light, TyperGroup):
    """All commands."""


class _Command(_Light, TyperCommand):
    """One command."""


class _RunsScript(_Command):
    """Everything after the script, or after `-m module`, belongs to the script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with_value = set()
        for option in self.params:
            if not getattr(option, "is_flag", True):
                with_value.update(option.opts)
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-", "--"):
            end = at + (2 if args[at] in with_value else 1)
            names_module = args[at].startswith(("-m", "--module=")) or args[at] == "--module"
            if names_module and end <= len(args):
                return super().parse_args(ctx, [*args[:end], "--", *args[end:]])
            at = end
        late = self._misplaced(args[at:])
        if late is not None:
            announce(f"{late} comes after {args[at]}, which gets it; options of gradtrace come before the script")
        return super().parse_args(ctx, args)

    def _misplaced(self, words: list[str]) -> str | None:
        """The first option of ours after the script, unless the script's own text has such an option."""
        ours = {name for option in self.params for name in option.opts if len(name) > 2}
        given = [word.partition("=")[0] for word in words[1:]]
        late = [name for name in given if name in ours]
        if not late:
            return None
        with suppress(OSError, UnicodeDecodeError):
            text = Path(words[0]).read_text(encoding="utf-8").replace("-", "_")
            for name in late:
                if name.strip("-").replace("-", "_") not in text:
                    return name
        return None


_RUN: dict[str, Any] = {"cls": _RunsScript, "context_settings": {"allow_interspersed_args": False}}

app = typer.Typer(
    cls=_Commands,
    name="gradtrace",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="See the autograd graph that a PyTorch script builds, and find the line that breaks its gradients.",
    epilog=_CHECK_CODES,
)

# --- options of several commands -------------------------------------------------------------------------------------

Words = Annotated[list[str] | None, typer.Argument(metavar="SCRIPT [ARGS]", hidden=True)]
Module = Annotated[
    str | None, typer.Option("-m", "--module", metavar="NAME", help="Run this module, as `python -m` does.")
]
Steps = Annotated[
    int | None, typer.Option(min=1, metavar="NUMBER", help="End the run cleanly after this many optimizer steps.")
]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="End the run cleanly after this many seconds.")]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write to this file; its ending chooses the format."),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an internal error.")]
Color = Annotated[
    bool | None, typer.Option("--color/--no-color", help="Colors [default: on a terminal, without NO_COLOR].")
]
ToEnd = Annotated[
    bool, typer.Option("--to-end", help="Run to the end, also after a backward call site was reached again.")
]
TensorName = Annotated[
    str | None,
    typer.Option("--tensor", metavar="NAME", help="Only the graph of this variable, at the end of the run."),
]
Line = Annotated[
    int | None,
    typer.Option("--line", min=1, metavar="NUMBER", help="Only the graph of the backward call on this line."),
]
Depth = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="LEVELS", help="How many levels of modules, functions and lines to open [default: what fits]."
    ),
]
Open = Annotated[
    list[str] | None, typer.Option("--open", metavar="MODULE", help="Open this module anyway: encoder.layers.3.")
]
Grad = Annotated[
    bool, typer.Option("--grad", help="Run on through the backward call: show each gradient's norm, zeros and NaN.")
]
PathTo = Annotated[
    str | None, typer.Option("--path", metavar="LEAF", help="Only the paths from the loss to this leaf.")
]

Select = Annotated[list[str] | None, typer.Option(metavar="RULES", help="Use these rules alone [default: all].")]
Ignore = Annotated[list[str] | None, typer.Option(metavar="RULES", help="Leave these rules out [default: none].")]
Levels = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE=LEVEL", help="How bad findings of a rule are [default: see rules]."),
]
FailOn = Annotated[
    str | None,
    typer.Option(metavar="LEVEL", help="The lowest level that fails: error, warning or note [default: warning]."),
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write to this file: .txt, .json, .sarif, .xml (JUnit), .html; else as --format.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "-v", "--verbose", help="Also what was silenced, what holds of the whole run, and which rules lacked data."
    ),
]


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


# --- commands --------------------------------------------------------------------------------------------------------


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from gradtrace import __version__

        typer.echo(f"gradtrace {__version__} (torch {version('torch')}, Python {sys.version.split()[0]})")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What comes before the command."""


@app.command(epilog=_CHECK_CODES, **_RUN)
def check(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    steps: Steps = None,
    timeout: Timeout = None,
    select: Select = None,
    ignore: Ignore = None,
    level: Levels = None,
    fail_on: FailOn = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Findings in this file are known, and do not count [default: none]."),
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write what is found to --baseline.")
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT",
            help="What stdout gets: text, json, sarif, junit, html or github [default: text, or nothing beside -o].",
        ),
    ] = None,
    output: Outputs = None,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Record the run in this .jsonl file, to be checked again without the script."
        ),
    ] = None,
    gradcheck: Annotated[
        bool,
        typer.Option(
            "--gradcheck",
            help="Run each custom Function again: compare its backward with finite differences in float64.",
        ),
    ] = False,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Also try edits, as `gradtrace fix` does, and report those that hold."),
    ] = False,
    pdb: Annotated[
        bool, typer.Option("--pdb", help="Stop at the first error in a debugger, as `gradtrace debug` does.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Findings alone: no summary, no progress.")] = False,
    verbose: Verbose = False,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Run the script and report every gradient fault, with the line that caused it and the fix.

    SCRIPT is a file, a directory, - for stdin, or a recording (.jsonl); what follows it belongs to the script.
    --select, --ignore, --level and -o may be repeated; rules may also be separated by commas. Options that are not given
    come from [tool.gradtrace] in the nearest pyproject.toml, from the script's directory upwards.
    """
    from gradtrace.commands.check import CheckOptions, check
    from gradtrace.commands.run import Options

    options = Options(words or [], module, steps=steps, timeout=timeout, color=color, debug=debug)
    wanted = CheckOptions(
        select or [],
        ignore or [],
        fail_on,
        level or [],
        _path(baseline),
        write_baseline,
        format=format,
        outputs=[Path(name) for name in output or []],
        detail=verbose - quiet,
        record=_path(record),
        gradcheck=gradcheck,
        fix=fix,
        stop_at=() if pdb else None,
    )
    ctx.obj.append(_Invocation(lambda: check(options, wanted), debug))


@app.command("debug", epilog=_CHECK_CODES, **_RUN)
def debug_command(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            metavar="WHERE",
            help="Stop at backward, step, nan, finding, a rule's name or FILE:LINE [default: the first error].",
        ),
    ] = None,
    rank: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="The rank to stop, under torchrun.")] = 0,
    steps: Steps = None,
    timeout: Timeout = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Run the script and stop as soon as its first error is known, at the prompt of pdb.

    The prompt knows pdb's commands, and these: graph, path, why, grads, saved, cuts, findings, diff, and until with
    backward, step, finding or nan; `help` explains them. --at may be repeated. When the script has ended, or after q, the
    report follows. Without a terminal it runs as check does.
    """
    from gradtrace.commands.check import CheckOptions, check
    from gradtrace.commands.run import Options

    options = Options(words or [], module, steps=steps, timeout=timeout, color=color, debug=debug)
    wanted = CheckOptions(stop_at=at or (), stop_rank=rank)
    ctx.obj.append(_Invocation(lambda: check(options, wanted), debug))


@app.command(cls=_Command, epilog=_CHECK_CODES)
def merge(
    ctx: typer.Context,
    recordings: Annotated[list[str] | None, typer.Argument(metavar="RECORDING", hidden=True)] = None,
    select: Select = None,
    ignore: Ignore = None,
    level: Levels = None,
    fail_on: FailOn = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="What stdout gets: text, json, sarif, junit or github [default: text]."),
    ] = None,
    output: Outputs = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Findings alone: no summary.")] = False,
    verbose: Verbose = False,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Report on the recordings of the ranks of one job together: each RECORDING is a file that `check --record` wrote, one
    for each rank.

    Needed only where the ranks could not reach each other; elsewhere rank 0 reports for all.
    """
    from gradtrace.commands.check import CheckOptions
    from gradtrace.commands.merge import merge

    wanted = CheckOptions(
        select or [],
        ignore or [],
        fail_on,
        level or [],
        format=format,
        outputs=[Path(name) for name in output or []],
        detail=verbose - quiet,
    )
    files = [Path(name) for name in recordings or []]
    ctx.obj.append(_Invocation(lambda: merge(files, wanted, color), debug))


@app.command(epilog=_GRAPH_CODES, **_RUN)
def show(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    steps: Steps = None,
    timeout: Timeout = None,
    to_end: ToEnd = False,
    tensor: TensorName = None,
    line: Line = None,
    depth: Depth = None,
    open: Open = None,
    grad: Grad = False,
    path: PathTo = None,
    saved: Annotated[
        bool, typer.Option("--saved", help="Show the memory kept for the backward, and for what.")
    ] = False,
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="text or json [default: by the ending of -o, else text]."),
    ] = None,
    output: Output = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Print the grad_fn graph of each backward call site as a tree, with names, shapes and source lines.

    Read it from the loss down: ● is an operation (a grad_fn), ◆ a leaf, · a constant (a tensor that requires no grad),
    ▣ a module, function or line folded into one row, ✂ where the path to a leaf was cut; ○ ◇ ▢ get no gradient.
    `see #5` stands for what #5 shows elsewhere.

    SCRIPT is a file, a directory, - for stdin, or graphs that were saved with `-o graph.json`.
    """
    from gradtrace.commands.run import Options
    from gradtrace.commands.show import GraphOptions, show
    from gradtrace.graphs.fold import Folding

    options = Options(
        words or [],
        module,
        steps=steps,
        timeout=timeout,
        output=_path(output),
        format=format,
        color=color,
        debug=debug,
    )
    wanted = GraphOptions(to_end, tensor, line, grad, path)
    folding = Folding(depth, open or ())
    ctx.obj.append(_Invocation(lambda: show(options, wanted, folding, saved), debug))


@app.command(epilog=_GRAPH_CODES, **_RUN)
def dot(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    steps: Steps = None,
    timeout: Timeout = None,
    to_end: ToEnd = False,
    tensor: TensorName = None,
    line: Line = None,
    depth: Depth = None,
    open: Open = None,
    grad: Grad = False,
    path: PathTo = None,
    output: Output = None,
    direction: Annotated[
        str,
        typer.Option(
            metavar="DIRECTION", help="forward: data flows to the loss; backward: gradients flow [default: forward]."
        ),
    ] = "forward",
    debug: Debug = False,
) -> None:
    """Write the same graph as Graphviz DOT to stdout, or draw it: -o graph.svg, .png, .pdf, .html.

    SCRIPT is a file, a directory, - for stdin, or graphs that were saved with `gradtrace show -o graph.json`.
    """
    from gradtrace.commands.run import Options
    from gradtrace.commands.show import GraphOptions, dot
    from gradtrace.graphs.fold import Folding

    if direction not in ("forward", "backward"):
        raise UsageError(f"--direction {direction}: there are only forward and backward")
    options = Options(words or [], module, steps=steps, timeout=timeout, output=_path(output), debug=debug)
    wanted = GraphOptions(to_end, tensor, line, grad, path)
    folding = Folding(depth, open or ())
    ctx.obj.append(_Invocation(lambda: dot(options, wanted, folding, direction == "forward"), debug))


@app.command(epilog=_DIFF_CODES)
def diff(
    ctx: typer.Context,
    before: Annotated[str, typer.Argument(metavar="BEFORE", hidden=True)],
    after: Annotated[str, typer.Argument(metavar="AFTER", hidden=True)],
    steps: Steps = None,
    timeout: Timeout = None,
    to_end: ToEnd = False,
    line: Line = None,
    output: Output = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Compare the graphs of two scripts, or of today and yesterday: what is new, gone, rewired or cut.

    BEFORE and AFTER are scripts, or graphs saved as .json. Lines that only moved are no difference.
    """
    from gradtrace.commands.diff import diff

    given = {"--steps": steps, "--timeout": timeout, "--line": line}
    options = []
    for name, value in given.items():
        if value is not None:
            options += [name, str(value)]
    if to_end:
        options.append("--to-end")
    ctx.obj.append(_Invocation(lambda: diff(before, after, options, _path(output), color), debug))


@app.command(epilog=_STORY_CODES, **_RUN)
def follow(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    steps: Steps = None,
    timeout: Timeout = None,
    function: Annotated[
        str, typer.Option(metavar="NAME", show_default=False, help="Only the statements of this function or method.")
    ] = "",
    lines: Annotated[
        str, typer.Option(metavar="RANGE", show_default=False, help="Only these lines of each file, as in 20-40.")
    ] = "",
    loops: Annotated[
        int,
        typer.Option(
            min=1, metavar="NUMBER", help="Iterations to show of each loop, besides the first that differ from them."
        ),
    ] = 1,
    package: Annotated[
        str | None, typer.Option(metavar="NAME", help="Follow the code of this installed package as well.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="text, json or html [default: by the ending of -o, else text]."),
    ] = None,
    output: Output = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Show the story of the run: each statement, and what changed because of it.

    SCRIPT is a file, a directory or - for stdin; what follows it belongs to the script.
    """
    from gradtrace.commands.follow import StoryOptions, follow
    from gradtrace.commands.run import Options

    options = Options(
        words or [],
        module,
        steps=steps,
        timeout=timeout,
        output=_path(output),
        format=format,
        color=color,
        debug=debug,
    )
    wanted = StoryOptions(function, _lines(lines), loops, package)
    ctx.obj.append(_Invocation(lambda: follow(options, wanted), debug))


@app.command(epilog=_FIX_CODES, **_RUN)
def fix(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    steps: Steps = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Give up on a run after so many seconds [default: 10 times the first, and 10 s]."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Runs at once.")] = 2,
    write: Annotated[
        bool, typer.Option("--write", help="Change the files: put the edits that hold into them.")
    ] = False,
    format: Annotated[str | None, typer.Option(metavar="FORMAT", help="text or json [default: text].")] = None,
    output: Output = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Find edits that fix the findings, and prove each by running the edited script.

    The script runs many times, with all that it does: twice as it is, then once for each candidate edit. --steps keeps
    that short. An edit holds if its finding is gone, nothing new is found, the script ends as well as before, makes as
    many optimizer steps and backward calls, and each parameter that trained, or got a gradient, still does. Read the
    diff: a run shows that an edit trains, not that it is what was meant. Files stay as they are without --write.
    """
    from gradtrace.commands.fix import fix
    from gradtrace.commands.run import Options
    from gradtrace.fixes.search import Effort

    options = Options(
        words or [],
        module,
        steps=steps,
        timeout=timeout,
        output=_path(output),
        format=format,
        color=color,
        debug=debug,
    )
    ctx.obj.append(_Invocation(lambda: fix(options, Effort(jobs, timeout, write)), debug))


@app.command(epilog=_LIVES_CODES, **_RUN)
def why(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    steps: Steps = None,
    timeout: Timeout = None,
    iteration: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Only this iteration, counted by optimizer steps.")
    ] = None,
    last: Annotated[bool, typer.Option("--last", help="Only the last iteration.")] = False,
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="text, json or html [default: by the ending of -o, else text]."),
    ] = None,
    output: Output = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Show what became of each parameter: which train, and why the others do not.

    `gradtrace why train.py encoder.weight` shows one parameter: its gradients, the steps that used them, and why it does
    not train. The word after the script is its name, the end of its name, or a pattern (encoder.*); put -- in front of
    the arguments of the script: `gradtrace why train.py encoder.weight -- --epochs 1`.
    """
    from gradtrace.commands.run import Options
    from gradtrace.commands.why import Question, why

    name, rest = _name_first(words or [], script=module is None)
    options = Options(
        rest, module, steps=steps, timeout=timeout, output=_path(output), format=format, color=color, debug=debug
    )
    ctx.obj.append(_Invocation(lambda: why(options, Question(name, iteration, last)), debug))


def _name_first(words: list[str], script: bool) -> tuple[str, list[str]]:
    """The name that comes before the arguments of the script, and the words without it."""
    start, rest = (words[:1], words[1:]) if script else ([], words)
    name = ""
    if rest and not rest[0].startswith("-"):
        name, *rest = rest
    return name, start + (rest[1:] if rest[:1] == ["--"] else rest)


def _lines(text: str) -> tuple[int, int] | None:
    first, dash, last = text.partition("-")
    if not text:
        return None
    if not first.isdecimal() or (dash and (not last.isdecimal() or int(last) < int(first))):
        raise UsageError(f"--lines {text}: give a line or a range, as in 12 or 20-40")
    return int(first), int(last or first)


@app.command(cls=_Command)
def rules(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="RULE", hidden=True)] = None,
    format: Annotated[str, typer.Option(metavar="FORMAT", help="text or json.")] = "text",
    color: Color = None,
    debug: Debug = False,
) -> None:
    """List all rules, or print the manual of one RULE: what it finds, why that matters, how to fix or silence it."""
    from gradtrace.commands.rules import rules

    ctx.obj.append(_Invocation(lambda: rules(name, format, color), debug))


# --- entry point -----------------------------------------------------------------------------------------------------


def main() -> None:
    """Entry point of `gradtrace` and of `python -m gradtrace`."""
    jobs: list[_Invocation] = []
    hook = sys.excepthook
    try:
        code = _parse(jobs)
        # typer has put its own in place, and the script is to find what python gives it
        sys.excepthook = hook
        for job in jobs:
            code = job.answer()
    except GradtraceError as error:
        announce(str(error))
        code = ExitCode.ERROR
    sys.exit(code)


def _parse(jobs: list[_Invocation]) -> int:
    """Leaves the job in `jobs`."""
    try:
        app(obj=jobs)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else ExitCode.ERROR
    return ExitCode.OK
