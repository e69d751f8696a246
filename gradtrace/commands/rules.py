"""`gradtrace rules`: the list of all rules, or the manual of one."""

from __future__ import annotations

from gradtrace.errors import ExitCode, no_such
from gradtrace.renderers.findings import rules as renderer
from gradtrace.renderers.output import Out
from gradtrace.rules import manuals


def rules(name: str | None, kind: str, color: bool | None) -> int:
    """Prints the rules, or the manual of one; returns the exit code."""
    if kind not in ("text", "json"):
        raise no_such("format of rules", kind, ("text", "json"))
    found = [manual for manual in manuals() if name in (None, manual.rule)]
    if not found:
        raise no_such("rule", str(name), (manual.rule for manual in manuals()))
    out = Out(None, color)
    if kind == "json":
        out.write(renderer.document(found))
    elif name is None:
        out.write(out.paper.printed(lambda console: renderer.listing(found, console)))
    else:
        out.write(out.paper.printed(lambda console: renderer.manual(found[0], console)))
    return ExitCode.OK
