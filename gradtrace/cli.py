"""The command line: parses, joins the rooms, and is the one place where our errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from gradtrace.errors import ExitCode, GradtraceError, UsageError
from gradtrace.host.streams import tell

_EPILOG = """
Exit codes: 0 nothing at or above --fail-on; 1 findings; 2 usage, or gradtrace's own error; 3 the script failed by
itself in a way that no finding explains; 4 nothing to check: no backward() or autograd.grad() call was seen.
"""
_OF_PICTURES = "Exit codes: 0 shown; 2 usage, or gradtrace's own error; 3 the script failed; 4 no graph was seen."
_OF_STORIES = "Exit codes: 0 told; 2 usage, or gradtrace's own error; 3 the script failed, and the story tells where."
_OF_DIFFERENCES = "Exit codes: 0 equal; 1 different; 2 usage, or gradtrace's own error."


#: what text on the command line becomes
_MADE: dict[object, Callable[[Any], Any]] = {
    str: str,
    Path: Path,
    list[str]: list,
    list[Path]: lambda texts: [Path(text) for text in texts],
}


class _Light:
    """Reads text and what is not given by itself: for that too typer would load pydantic, half of all that our start
    takes."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for one in found:
            kind = getattr(getattr(one, "type_descriptor", None), "annotation", None)
            vars(one).setdefault("process_value", partial(_made, kind, one.process_value))
        return found


def _made(kind: object, otherwise: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    """A value of this kind; `otherwise` is typer's way to it."""
    if value is None:
        return None
    return _MADE[kind](value) if kind in _MADE else otherwise(context, value)


class _Commands(_Light, TyperGroup):
    """All commands."""


app = typer.Typer(
    cls=_Commands,
    name="gradtrace",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="See the autograd graph that a PyTorch script builds, and be told which line breaks the gradients.",
    epilog=_EPILOG,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from gradtrace import __version__

        typer.echo(f"gradtrace {__version__} (torch {version('torch')}, Python {sys.version.split()[0]})")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """What comes before the command."""


@dataclass(frozen=True)
class _Job:
    """What a command line asks for. It runs outside of typer, whose error handling is not the script's business."""

    run: Callable[[], int]
    debug: bool

    def answer(self) -> int:
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
                f"this is a fault of its own: {reason}, at {place.name}:{place.lineno}; "
                "please report it with the traceback that --debug shows"
            ) from error


class _Command(_Light, TyperCommand):
    """One without arguments that must be given."""


class _RunsScript(_Command):
    """Everything after the script, or after `-m module`, belongs to the script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = {name for one in self.params if not getattr(one, "is_flag", True) for name in one.opts}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-", "--"):
            end = at + (2 if args[at] in takes_value else 1)
            names_module = args[at].startswith(("-m", "--module=")) or args[at] == "--module"
            if names_module and end <= len(args):
                return super().parse_args(ctx, [*args[:end], "--", *args[end:]])
            at = end
        if late := self._misplaced(args[at:]):
            tell(f"{late} stands after {args[at]}, which gets it; options of gradtrace come before the script")
        return super().parse_args(ctx, args)

    def _misplaced(self, words: list[str]) -> str | None:
        """The first option of ours after the script, unless the script itself speaks of such a thing."""
        named = {name: name.strip("-").replace("-", "_") for one in self.params for name in one.opts}
        late = [word.partition("=")[0] for word in words[1:] if word.partition("=")[0] in named]
        with suppress(OSError, UnicodeDecodeError):
            text = Path(words[0]).read_text(encoding="utf-8").replace("-", "_") if late else ""
            return next((name for name in late if len(name) > 2 and named[name] not in text), None)
        return None


_RUN: dict[str, Any] = {"cls": _RunsScript, "context_settings": {"allow_interspersed_args": False}}

Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="SCRIPT [ARGS]", help="The script (- reads it from stdin) and its arguments."),
]
Module = Annotated[str | None, typer.Option("-m", "--module", help="Run this module, as `python -m` does.")]
Steps = Annotated[int | None, typer.Option(min=1, help="End the run cleanly after this many optimizer steps.")]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="End the run cleanly after so many seconds.")]
Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="Write to this file; its ending chooses the format.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error inside gradtrace.")]
Color = Annotated[
    bool | None, typer.Option("--color/--no-color", help="Colours [default: on a terminal, without NO_COLOR].")
]
ToEnd = Annotated[bool, typer.Option("--to-end", help="Run on after a backward call site came round a second time.")]
TensorName = Annotated[
    str | None, typer.Option("--tensor", help="Only the graph of this variable, at the end of the run.")
]
Line = Annotated[int | None, typer.Option("--line", min=1, help="Only the graph of the backward call on this line.")]


@app.command(epilog=_EPILOG, **_RUN)
def check(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    steps: Steps = None,
    timeout: Timeout = None,
    select: Annotated[
        list[str] | None, typer.Option(metavar="RULES", help="Judge by these rules alone [default: all].")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="RULES", help="Leave these rules out [default: none].")
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE=LEVEL", help="How bad findings of a rule are [default: see rules]."),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="The lowest level that fails: error, warning or note [default: warning]."),
    ] = None,
    baseline: Annotated[
        Path | None,
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
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to this file: .txt, .json, .sarif, .xml (JUnit), .html; else as --format.",
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write all that happens to this .jsonl file, to be checked again without the script."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Findings alone: no summary, no progress.")] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Also what was silenced or could not judge.")
    ] = False,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Run the script and report every gradient fault, with the line that caused it and the mend.

    --select, --ignore, --level and -o may be repeated; rules may also be separated by commas. What is not said here is
    looked up below [tool.gradtrace] in the nearest pyproject.toml, from the script's directory upwards.
    """
    from gradtrace.commands.check import CheckOptions, check
    from gradtrace.commands.run import Options

    options = Options(words or [], module, steps=steps, timeout=timeout, color=color, debug=debug)
    wishes = CheckOptions(select or [], ignore or [], fail_on, level or [], baseline, write_baseline)
    wishes = replace(wishes, format=format, outputs=output or [], detail=verbose - quiet, record=record)
    ctx.obj.append(_Job(lambda: check(options, wishes), debug))


Depth = Annotated[
    int | None,
    typer.Option(min=0, help="How many levels of modules, functions and lines are opened [default: what fits]."),
]
Open = Annotated[
    list[str] | None, typer.Option("--open", metavar="MODULE", help="Open this module in any case: encoder.layers.3.")
]


Grad = Annotated[
    bool, typer.Option("--grad", help="Run on through the backward call: show each gradient's norm, zeros and NaN.")
]
PathTo = Annotated[str | None, typer.Option("--path", metavar="NAME", help="Only the ways from the loss to this leaf.")]


@app.command(epilog=_OF_PICTURES, **_RUN)
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
    format: Annotated[str | None, typer.Option(help="text or json [default: by the ending of -o, else text].")] = None,
    output: Output = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Print the grad_fn graph of each backward call site as a tree, with names, shapes and source lines.

    Read it from the loss down: ● is an operation (a grad_fn), ◆ a leaf, · a constant (a tensor that needs no gradient),
    ▣ a module, function or line folded into one row, ✂ where the path to a leaf was cut; ○ ◇ ▢ get no gradient.
    `see #5` stands for what #5 shows elsewhere.

    Graphs that were saved with `-o graph.json` are shown like those of a script: `gradtrace show graph.json`.
    """
    from gradtrace.commands.run import Options
    from gradtrace.commands.show import Folding, Wanted, show

    options = Options(
        words or [], module, steps=steps, timeout=timeout, output=output, format=format, color=color, debug=debug
    )
    wanted = Wanted(to_end, tensor, line, grad, path)
    folding = Folding(depth, open or ())
    ctx.obj.append(_Job(lambda: show(options, wanted, folding, saved), debug))


@app.command(epilog=_OF_PICTURES, **_RUN)
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
        str, typer.Option(help="forward: data flows to the loss; backward: gradients flow.")
    ] = "forward",
    debug: Debug = False,
) -> None:
    """Write the same graph as Graphviz DOT to stdout, or draw it: -o graph.svg, .png, .pdf, .html.

    The graph comes from a script, or from a file that `gradtrace show -o graph.json` wrote.
    """
    from gradtrace.commands.run import Options
    from gradtrace.commands.show import Folding, Wanted, dot

    if direction not in ("forward", "backward"):
        raise UsageError(f"--direction {direction}: there are only forward and backward")
    options = Options(words or [], module, steps=steps, timeout=timeout, output=output, debug=debug)
    wanted, folding = Wanted(to_end, tensor, line, grad, path), Folding(depth, open or ())
    ctx.obj.append(_Job(lambda: dot(options, wanted, folding, direction == "forward"), debug))


@app.command(epilog=_OF_DIFFERENCES)
def diff(
    ctx: typer.Context,
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A script, or a graph saved as .json.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Another, to be compared with it.")],
    steps: Steps = None,
    timeout: Timeout = None,
    to_end: ToEnd = False,
    line: Line = None,
    output: Output = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Compare the graphs of two scripts, or of today and yesterday: what is new, gone, rewired or cut.

    Exit code 0 where the graphs are equal, 1 where they differ. Lines that only moved are no difference.
    """
    from gradtrace.commands.diff import compare

    given = {"--steps": steps, "--timeout": timeout, "--line": line}
    options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    options += ["--to-end"] if to_end else []
    ctx.obj.append(_Job(lambda: compare(before, after, options, output, color), debug))


@app.command(epilog=_OF_STORIES, **_RUN)
def follow(
    ctx: typer.Context,
    words: Words = None,
    module: Module = None,
    steps: Steps = None,
    timeout: Timeout = None,
    function: Annotated[str, typer.Option(help="Only the statements of this function or method.")] = "",
    lines: Annotated[str, typer.Option(help="Only these lines of each file, as in 20-40.")] = "",
    loops: Annotated[
        int, typer.Option(min=1, help="Iterations told of each loop, besides the first that differ from them.")
    ] = 1,
    package: Annotated[str | None, typer.Option(help="Follow the code of this installed package as well.")] = None,
    format: Annotated[
        str | None, typer.Option(help="text, json or html [default: by the ending of -o, else text].")
    ] = None,
    output: Output = None,
    color: Color = None,
    debug: Debug = False,
) -> None:
    """Tell the story of the run: each statement, and what changed because of it."""
    from gradtrace.commands.follow import Plot, follow
    from gradtrace.commands.run import Options

    options = Options(
        words or [], module, steps=steps, timeout=timeout, output=output, format=format, color=color, debug=debug
    )
    plot = Plot(function, _lines(lines), loops, package)
    ctx.obj.append(_Job(lambda: follow(options, plot), debug))


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
    name: Annotated[str | None, typer.Argument(metavar="RULE", help="Print the manual of this rule.")] = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    color: Color = None,
    debug: Debug = False,
) -> None:
    """List all rules, or print the manual of one: what it finds, why it matters, and how to fix or silence it."""
    from gradtrace.commands.run import rules

    ctx.obj.append(_Job(lambda: rules(name, format, color), debug))


def main() -> None:
    """Entry point of `gradtrace` and of `python -m gradtrace`."""
    jobs: list[_Job] = []
    hook = sys.excepthook
    try:
        code = _parse(jobs)
        # typer has put its own in place, and the script is to find what python gives it
        sys.excepthook = hook
        for job in jobs:
            code = job.answer()
    except GradtraceError as error:
        tell(str(error))
        code = ExitCode.ERROR
    sys.exit(code)


def _parse(jobs: list[_Job]) -> int:
    """Leaves the job in `jobs`."""
    try:
        app(obj=jobs)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else ExitCode.ERROR
    return ExitCode.OK
