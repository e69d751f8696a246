"""`gradtrace diff`: the graphs of two runs side by side."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from gradtrace.errors import DocumentError, ExitCode, GradtraceError
from gradtrace.graphs import diff as comparing
from gradtrace.graphs import document
from gradtrace.renderers.output import Out


def diff(before: str, after: str, options: Sequence[str], output: Path | None, color: bool | None) -> int:
    """Compares the graphs of two scripts or saved graphs; returns the exit code: 0 where they are equal, 1 where not.

    Each script runs in a process of its own; `options` are those of `show` that say how it runs.
    """
    out = Out(output, color)
    old = _version(before, options)
    new = _version(after, options)
    found = comparing.compared(old, new)

    from gradtrace.renderers.graph import diff as renderer

    out.write(out.paper.printed(lambda console: renderer.render(old, new, found, console)))
    return ExitCode.OK if all(one.equal for one in found) else ExitCode.FINDINGS


def _version(name: str, options: Sequence[str]) -> comparing.Version:
    if name.endswith(".json"):
        return comparing.version(name, document.read(_text(Path(name)), name))
    with TemporaryDirectory() as directory:
        saved = Path(directory) / "graph.json"
        command = [sys.executable, "-m", "gradtrace", "show", "-o", str(saved), *options, name]
        # what the script prints is not the result
        done = subprocess.run(command, stdout=2 if sys.stderr is not None else subprocess.DEVNULL, check=False)
        if not saved.exists():
            raise GradtraceError(
                f"there is no graph of {name} to compare: its run ended with exit status {done.returncode}"
            )
        return comparing.version(name, document.read(_text(saved), name))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
