"""Prints what `check` found, for people: what happened, where, why, and what to type instead.

    error[freed-graph]: `loss` goes backward through a graph that was freed
      --> train.py:31:5 in train_step (12 times)
       │
    31 │     loss.backward()
       │     ^^^^^^^^^^^^^^^
      ::: train.py:24:9 in train_step
       │
    24 │     h = cell(x, h)
       │         ---------- the graph was made here
    help: ...

All text comes from strangers' programs: it is never read as markup, and what the terminal cannot show, or would obey,
is spelled out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gradtrace.errors import ExitCode
from gradtrace.escapes import visible
from gradtrace.model.finding import Finding, Level, Report
from gradtrace.model.fix import Fix
from gradtrace.model.site import Site
from gradtrace.renderers.edits import between, fix_of
from gradtrace.renderers.findings.summary import truths, unjudged, verdict
from gradtrace.renderers.paper import Paper
from gradtrace.renderers.wording import file
from gradtrace.source import syntax, texts

_STYLE = {Level.ERROR: "bold red", Level.WARNING: "bold yellow", Level.NOTE: "bold cyan"}
_FRAME = "bold blue"
_DIFF = {"+": "green", "-": "red", "@": "dim"}
_CODE = r"`[^`\n]+`"
_TAB = 4
_NARROWEST = 24


def render(report: Report, paper: Paper) -> str:
    """The page."""
    return paper.printed(lambda console: draw(report, console, paper.detail))


def draw(report: Report, console: Console, detail: int = 0) -> None:
    """Prints the findings, the remarks and one line that sums up, which less detail leaves out."""
    page = _ReportPage(console, report.root)
    for finding in report.findings:
        page.finding(finding, fix_of(finding, report.fixes))
    for remark in report.remarks:
        page.paragraph("remark", "dim", remark)
    if report.remarks:
        page.line()
    if detail > 0:
        page.details(report)
    if detail >= 0:
        page.summary(report)


def listing(findings: Sequence[Finding], console: Console) -> None:
    """Prints findings alone."""
    page = _ReportPage(console, None)
    for finding in findings:
        page.finding(finding)


class _ReportPage:
    """Lays text out for one console."""

    def __init__(self, console: Console, root: str | None) -> None:
        self._console = console
        self._root = root
        self._encoding = console.encoding or "ascii"
        self._bar = self._or_else("│", "|")
        self._dots = self._or_else("…", "...")

    def _or_else(self, wanted: str, fallback: str) -> str:
        return wanted if self._plain(wanted) == wanted else fallback

    def _plain(self, text: str) -> str:
        """The text with everything spelled out that the console could not show as it is."""
        return visible(text).encode(self._encoding, "backslashreplace").decode(self._encoding)

    def line(self, *parts: tuple[str, str]) -> None:
        """One line of (text, style) pairs, neither wrapped nor cut."""
        self._console.print(Text.assemble(*parts), soft_wrap=True)

    def _wrapped(self, text: Text, hang: int) -> list[Text]:
        """The lines of a text of which all but the first hang `hang` cells in."""
        head, body = text[:hang], text[hang:]
        space = max(self._console.width - hang, _NARROWEST)
        lines = list(body.wrap(self._console, space, overflow="fold"))
        return [Text.assemble(Text(" " * hang) if number else head, line) for number, line in enumerate(lines)]

    def paragraph(self, label: str, style: str, body: str, body_style: str = "", hang: int = 0) -> None:
        """`label: body`, wrapped to the width."""
        text = Text.assemble((f"{label}:", style), " ", (self._plain(body).expandtabs(_TAB), body_style))
        text.highlight_regex(_CODE, "bold")
        for line in self._wrapped(text, hang or len(label) + 2):
            line.rstrip()
            self._console.print(line, soft_wrap=True)

    def finding(self, finding: Finding, fix: Fix | None = None) -> None:
        """One finding with its source lines and the edit that holds, and an empty line after it."""
        level, style = str(finding.level), _STYLE[finding.level]
        margin = len(str(max(site.line for site in (finding.site, *(related.site for related in finding.related)))))
        times = f" ({finding.occurrences} times)" if finding.occurrences > 1 else ""
        self.paragraph(f"{level}[{finding.rule}]", style, finding.message, "bold", hang=len(level) + 2)
        self._place(margin, "-->", finding.site, times)
        self._source(margin, finding.site, "^", style)
        for related in finding.related:
            self._place(margin, ":::", related.site)
            self._source(margin, related.site, "-", _FRAME, related.message)
        if finding.help:
            self.paragraph("help", "bold green", finding.help)
        if fix is not None:
            self.paragraph("fix", "bold green", f"{fix.title} ({fix.proof})")
            for row in between(fix.before, fix.after, file(fix.path, self._root)).splitlines()[2:]:
                self.line((f"  {self._plain(row)}", _DIFF.get(row[:1], "")))
        self.line()

    def _place(self, margin: int, arrow: str, site: Site, suffix: str = "") -> None:
        column = "" if site.column is None else f":{site.column + 1}"
        function = f" in {site.function}" if site.function and site.function != "<module>" else ""
        where = self._plain(f"{file(site.path, self._root)}:{site.line}{column}")
        self.line((f"{' ' * margin}{arrow} ", _FRAME), (where, ""), (self._plain(function) + suffix, "dim"))

    def _source(self, margin: int, site: Site, mark: str, style: str, label: str = "") -> None:
        """The source line, what of it is meant, and what there is to say about it."""
        bar = f"{' ' * margin} {self._bar} "
        space = max(self._console.width - len(bar), _NARROWEST)
        excerpt = _excerpt(site, space, self._dots, self._plain)
        words = Text(self._plain(label).expandtabs(_TAB), style)
        marks = Text()
        if excerpt:
            self.line((bar.rstrip(), _FRAME))
            self.line((f"{site.line:>{margin}} {self._bar} ", _FRAME), (excerpt.text, ""))
            marks = Text.assemble(" " * excerpt.start, (mark * excerpt.width, style), " ")
        if "\n" not in label and marks.cell_len + words.cell_len <= space:
            below = [marks + words]
        else:
            indent = excerpt.start if excerpt and space - excerpt.start >= _NARROWEST else 0
            below = [marks, *self._wrapped(Text(" " * indent) + words, indent)]
        for line in below:
            line.rstrip()
            if line:
                self._console.print(Text.assemble((bar, _FRAME), line), soft_wrap=True)

    def details(self, report: Report) -> None:
        """What was silenced, what holds of the run as a whole, and which rules lacked data."""
        for one in report.silenced:
            place = f"{file(one.finding.site.path, self._root)}:{one.finding.site.line}"
            why = f": {one.reason}" if one.reason else ""
            self.paragraph("silenced", "dim", f"{one.finding.rule} at {place} by a {one.how}{why}")
        for words in truths(report):
            self.paragraph("checked", "dim", words)
        for words in unjudged(report):
            self.paragraph("lacked data", "dim", words)
        if report.settings:
            self.paragraph("settings", "dim", file(report.settings, self._root))

    def summary(self, report: Report) -> None:
        """What was found, in what run, and how it ended."""
        words, rest = verdict(report, self._dots)
        text = Text.assemble((words, _verdict_style(report)), self._plain(rest))
        for line in self._wrapped(text, 2):
            line.rstrip()
            self._console.print(line, soft_wrap=True)
        if report.fix_command:
            self.line((f"`{self._plain(report.fix_command)}` tries edits", "dim"))


def _verdict_style(report: Report) -> str:
    worst = max((finding.level for finding in report.findings), default=Level.NOTE)
    match report.exit_code:
        case ExitCode.SCRIPT_FAILED:
            return "bold red"
        case ExitCode.NOTHING_TO_CHECK:
            return "bold yellow"
        case ExitCode.OK if worst is Level.NOTE:
            return "bold green"
        case _:
            return _STYLE[worst]


@dataclass(frozen=True)
class _Excerpt:
    """As much of a source line as there is space for, and the cells of it that are meant."""

    text: str
    start: int
    width: int


def _excerpt(site: Site, space: int, dots: str, plain: Callable[[str], str]) -> _Excerpt | None:
    """The source line of a site, cut around what is meant; None where the source is gone."""
    line = texts.line(site.path, site.line).rstrip()
    if not line:
        return None
    cells = _cells(line, plain)
    edges = [0, *accumulate(cell_len(cell) for cell in cells)]
    first, last = _span(site, line)
    low, high = _window(edges, first, last, space, len(dots))
    before, after = dots * (low > 0), dots * (high < len(cells))
    start = edges[max(first, low)] - edges[low] + len(before)
    end = edges[min(last, high)] - edges[low] + len(before)
    return _Excerpt(before + "".join(cells[low:high]) + after, start, max(end - start, 1))


def _cells(line: str, plain: Callable[[str], str]) -> list[str]:
    """What is printed for each character of a line: tabs widened, the rest made plain."""
    cells: list[str] = []
    at = 0
    for char in line:
        cells.append(" " * (_TAB - at % _TAB) if char == "\t" else plain(char))
        at += cell_len(cells[-1])
    return cells


def _span(site: Site, line: str) -> tuple[int, int]:
    """The characters of the line that are meant; those of its statement where the interpreter does not know."""
    first, end = site.column, site.end_column
    if first is None or first >= len(line):
        return _statement_span(site, line)
    if site.end_line is not None and site.end_line > site.line:
        end = len(line)
    return first, min(max(end or 0, first + 1), len(line))


def _statement_span(site: Site, line: str) -> tuple[int, int]:
    found = syntax.statement(site.path, site.line)
    first, end = len(line) - len(line.lstrip()), len(line)
    if found is not None and found.lineno == site.line:
        first = found.col_offset
    if found is not None and found.end_lineno == site.line and found.end_col_offset is not None:
        end = found.end_col_offset
    return (first, end) if first < end <= len(line) else (0, len(line))


def _window(edges: list[int], first: int, last: int, space: int, dots: int) -> tuple[int, int]:
    """Which characters to show of a line: from the start if what is meant then fits, else with it in the middle."""
    if edges[-1] <= space:
        return 0, len(edges) - 1
    begin, space = 0, space - dots
    if edges[last] > space:
        space -= dots
        meant = min(edges[last] - edges[first], space)
        begin = min(edges[first] - (space - meant) // 2, edges[-1] - space)
    low = bisect_left(edges, begin)
    return low, bisect_right(edges, edges[low] + space) - 1
