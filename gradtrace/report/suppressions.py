"""Comments that silence findings, on the line of the finding or of a related one.

    loss.backward(retain_graph=True)  # gradtrace: ignore[unneeded-retain] -- the plot below needs the graph

Several rules are separated by commas; the reason comes after `--` or `:` and is kept. A comment at the end of a
statement of several lines covers all of them. Whatever silences nothing is reported: a comment without a rule, an unknown
rule, one for which there was nothing to silence.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gradtrace.errors import no_such
from gradtrace.model.finding import Finding, Level, Silenced
from gradtrace.model.site import Site
from gradtrace.source import texts

#: the rule under which comments are reported that silence nothing
UNUSED = "unused-ignore"
_COMMENT = re.compile(r"#\s*gradtrace:\s*ignore\b(?:\[(?P<rules>[^\]]*)\])?(?:\s*(?:--|:)\s*(?P<reason>.*))?")
_LAYOUT = tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT


@dataclass(frozen=True, slots=True)
class Ignore:
    """One comment, and the lines that it covers."""

    site: Site
    first_line: int
    rules: tuple[str, ...]
    reason: str

    def covers(self, site: Site) -> bool:
        ours = self.first_line, self.site.line
        return site.path == self.site.path and site.line <= ours[1] and (site.end_line or site.line) >= ours[0]


def is_silenced(finding: Finding) -> bool:
    """Whether a comment silences this finding."""
    return next(_matching(finding), None) is not None


def apply(
    findings: Sequence[Finding], files: Iterable[str], judged: Collection[str], known: Collection[str]
) -> tuple[list[Finding], list[Silenced], list[Finding]]:
    """The findings that remain, those that a comment silences, and what there is to say about comments.

    `files` are all files of the user's; `judged` the rules that judged this run, of all `known` ones.
    """
    kept, silenced, used = [], [], set()
    for finding in findings:
        ignore = next(_matching(finding), None)
        if ignore is None:
            kept.append(finding)
        else:
            silenced.append(Silenced(finding, "comment", ignore.reason))
            used.add((ignore, finding.rule))
    met = (finding.site.path for finding in findings)  # what came by stdin is no file
    useless = [
        _useless(ignore, why)
        for file in dict.fromkeys((*files, *met))
        for ignore in ignores(file)
        for why in _faults(ignore, {rule for at, rule in used if at == ignore}, judged, known)
    ]
    return kept, silenced, useless


def _matching(finding: Finding) -> Iterator[Ignore]:
    for site in (finding.site, *(related.site for related in finding.related)):
        for ignore in ignores(site.path):
            if finding.rule in ignore.rules and ignore.covers(site):
                yield ignore


def _faults(ignore: Ignore, used: set[str], judged: Collection[str], known: Collection[str]) -> Iterator[str]:
    if not ignore.rules:
        yield "it names no rule; name the one it is about, as in `# gradtrace: ignore[stale-grad]`"
    for rule in ignore.rules:
        if rule not in known:
            yield str(no_such("rule", rule, known))
        elif rule in judged and rule not in used:
            yield f"{rule} found nothing here in this run; remove it, unless another run needs it"


def _useless(ignore: Ignore, why: str) -> Finding:
    what, _, fix = why.partition("; ")
    return Finding(UNUSED, Level.NOTE, f"this comment silences nothing: {what}", fix, ignore.site)


@texts.cached(1024)
def ignores(path: str) -> tuple[Ignore, ...]:
    """The comments of a file; none where it cannot be read."""
    text = "".join(texts.lines(path))
    if "gradtrace:" not in text:
        return ()
    try:
        return tuple(_comments(path, text))
    except (tokenize.TokenError, SyntaxError):
        return ()


def _comments(path: str, text: str) -> Iterator[Ignore]:
    begun: int | None = None
    waiting: tuple[tokenize.TokenInfo, re.Match[str]] | None = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if waiting is not None:  # what follows the comment shows whether it ends its statement
            comment, found = waiting
            ends = token.type == tokenize.NEWLINE and begun is not None
            yield _ignore(path, comment, found, begun if ends and begun else comment.start[0])
            waiting = None
        if token.type == tokenize.NEWLINE:
            begun = None
        elif token.type not in _LAYOUT and begun is None:
            begun = token.start[0]
        match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
        if match:
            waiting = token, match


def _ignore(path: str, comment: tokenize.TokenInfo, found: re.Match[str], first_line: int) -> Ignore:
    line, column = comment.start
    site = Site(path, line, "", column + found.start(), line, comment.end[1])
    rules = (name.strip() for name in (found["rules"] or "").split(","))
    return Ignore(site, first_line, tuple(name for name in rules if name), (found["reason"] or "").strip())
