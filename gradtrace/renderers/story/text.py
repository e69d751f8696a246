"""Prints the story of a run, for people: each statement, and below it what changed because of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from gradtrace.model.finding import Finding, Level
from gradtrace.model.story import Chapter, FunctionCall, Item, Iteration, Loop, Story, StoryStep, asks, chapters
from gradtrace.renderers.paper import Paper
from gradtrace.renderers.story.phrases import of_finding, of_series, of_step
from gradtrace.renderers.wording import count, file, place, printable
from gradtrace.source import texts
from gradtrace.stories.chronicle import is_head, steps_of

_STYLE = {Level.ERROR: "bold red", Level.WARNING: "bold yellow", Level.NOTE: "bold cyan"}
_TITLES = {"request": "gradient request", "loop": "loop", "after": "after the loop"}
_LEFT = {"exit": "exited with status {}", "killed": "was killed by a signal", "interrupted": "was interrupted"}


def render(story: Story, paper: Paper) -> str:
    """The whole story."""

    def draw(console: Console) -> None:
        page = _StoryPage(story, console)
        page.chapters(chapters(story.items), 0)
        page.end()

    return paper.printed(draw)


class Stream:
    """Prints a story while it happens: at each `advance` what has come to it since the last one and will stay.

    What is found about a statement that was shown already, comes at the end.
    """

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._lines = 0
        #: of each statement that was shown, the findings that were shown with it
        self._drawn: dict[int, set[tuple[str, str, int]]] = {}

    def advance(self, story: Story) -> str:
        """What is new of a story that goes on."""
        return self._rest(story, whole=False)

    def finish(self, story: Story) -> str:
        """What is left of the whole story."""
        return self._rest(story, whole=True) if self._lines else render(story, self._paper)

    def _rest(self, story: Story, whole: bool) -> str:
        story = self._with_late_findings(story)
        drawn: dict[int, set[tuple[str, str, int]]] = {}

        def draw(console: Console) -> None:
            page = _StoryPage(story, console, drawn)
            with suppress(_GoesOnError):
                page.chapters(chapters(story.items), 0, running=not whole)
                if whole:
                    page.end()

        lines = self._paper.printed(draw).splitlines(keepends=True)
        new, self._lines = lines[self._lines :], max(self._lines, len(lines))
        self._drawn.update(drawn)
        return "".join(new)

    def _with_late_findings(self, story: Story) -> Story:
        placed, late = {}, []
        for number, findings in story.findings.items():
            shown = self._drawn.get(number)
            there = tuple(one for one in findings if shown is None or one.place in shown)
            late += [one for one in findings if one not in there]
            placed[number] = there
        return replace(story, findings=placed, elsewhere=(*late, *story.elsewhere))


class _GoesOnError(Exception):
    """What comes next is not known yet."""


class _StoryPage:
    """Lays the story out for one console. `drawn` is given where the story is printed while it happens: then nothing may
    be printed that is known at the end alone."""

    def __init__(
        self, story: Story, console: Console, drawn: dict[int, set[tuple[str, str, int]]] | None = None
    ) -> None:
        self._story = story
        self._console = console
        self._drawn = drawn
        lines = [step.line + step.source.count("\n") for step in steps_of(story.items)]
        if drawn is not None:
            lines = [len(texts.lines(path)) for path in {step.path for step in steps_of(story.items)}]
        self._margin = len(str(max(lines, default=1)))
        self._main = next((step.path for step in steps_of(story.items)), "")
        self._shown = {step.number: step for step in steps_of(story.items)}
        self._first = True
        #: the loop whose iteration is being shown: its head has been shown
        self._head: tuple[str, int] = "", 0
        #: leaves of which the page has said already that gradients flow to them
        self._named: set[tuple[str, ...]] = set()

    def chapters(self, parts: Sequence[Chapter], depth: int, running: bool = False) -> None:
        for chapter in parts:
            items = [item for item in chapter.items if self._is_worth(item)]
            if not items:
                continue
            if running and chapter.kind == "output":
                raise _GoesOnError  # another gradient request may follow
            if chapter.kind and chapter.kind != "loop" and not all(isinstance(item, Loop) for item in items):
                self._title(" ".join([_TITLES.get(chapter.kind, chapter.kind), chapter.title]).strip(), depth)
            self._items(items, depth)

    def _title(self, text: str, depth: int) -> None:
        if not self._first:
            self._console.print()
        self._first = False
        if text:
            width = min(self._console.width, 80)
            head = f"{'  ' * depth}── {text} "
            self._console.print(Text(head + "─" * max(width - len(head), 3), "bold blue"), soft_wrap=True)

    def _is_worth(self, item: Item) -> bool:
        if isinstance(item, Loop):
            return bool(item.shown)
        return bool(item.facts or item.calls or item.number in self._story.findings) or not is_head(item)

    def _items(self, items: Iterable[Item], depth: int) -> None:
        after_loop = False
        for item in items:
            if isinstance(item, Loop):
                self._loop(item, depth)
                after_loop = True
            elif self._is_worth(item):
                if after_loop:
                    self._console.print()
                self._step(item, depth)
                after_loop = False

    def _step(self, step: StoryStep, depth: int) -> None:
        if (step.path, step.line) != self._head:
            self._source(step.line, step.source, depth)
        for call in step.calls:
            self._call(call, depth + 1)
        if step.running:
            raise _GoesOnError
        if self._drawn is not None:
            self._drawn[step.number] = {one.place for one in self._story.findings.get(step.number, ())}
        for text in of_step(step, self._named):
            self._note(text, depth)
        for finding in self._story.findings.get(step.number, ()):
            self._finding(finding, depth)

    def _source(self, line: int, text: str, depth: int) -> None:
        for at, row in enumerate(text.split("\n")):
            number = Text(f"{line + at:>{self._margin}} │ ", "blue")
            code = printable(row.expandtabs(4)), "bold"
            self._console.print(Text.assemble(number, "  " * depth, code), soft_wrap=True)

    def _note(self, text: str, depth: int, style: str = "", hang: int = 2) -> None:
        """A sentence below its statement, wrapped to the width."""
        bar = Text(f"{' ' * self._margin} │ ", "blue")
        lead = "  " * depth + "    "
        space = max(self._console.width - len(bar) - len(lead) - hang, 30)
        lines = Text(printable(text), style or "green").wrap(self._console, space, overflow="fold")
        for at, line in enumerate(lines):
            line.rstrip()
            self._console.print(Text.assemble(bar, lead, " " * hang * bool(at), line), soft_wrap=True)

    def _finding(self, finding: Finding, depth: int) -> None:
        # how often it will have occurred is not known while the story goes on
        counted = finding if self._drawn is None else replace(finding, occurrences=1)
        head, *more = of_finding(counted, self._main)
        self._note(f"✗ {head}", depth, _STYLE[finding.level])
        for text in more:
            self._note(f"  {text}", depth, "" if text.startswith("help") else "dim", hang=4)

    def _call(self, call: FunctionCall, depth: int) -> None:
        module = call.function == "<module>"
        given = file(call.path) if module else f"{call.function}({', '.join(call.given)})"
        where = "" if call.path == self._main or module else f" in {file(call.path)}"
        known = self._shown.get(call.like)
        named = f", {self._as_before(call, known)}" if call.like else ""
        if call.items or call.like:
            self._note(f"↳ {given}{where}{named}", depth - 1, "magenta")
        whole = depth == 1 and any(asks(item) for item in call.items)
        if call.running and depth == 1 and not whole:
            raise _GoesOnError
        self.chapters(chapters(call.items, "setup" if whole else ""), depth, call.running)
        if call.running:
            raise _GoesOnError

    def _as_before(self, call: FunctionCall, known: StoryStep | None) -> str:
        return f"as shown at {place_of(known, self._main)}" if known is not None else "as before"

    def _loop(self, loop: Loop, depth: int) -> None:
        self._title("", depth)
        noun = "call" if not loop.line or not loop.source.startswith(("for", "while", "async")) else "iteration"
        self._source(loop.line, loop.source if noun == "iteration" else f"def {loop.source}", depth)
        if self._drawn is None and (noun == "call" or loop.count != 1):
            self._note(count(loop.count, noun), depth, "blue")
        for iteration in loop.shown:
            outer, self._head = self._head, (loop.path, loop.line)
            self._iteration(iteration, noun, depth + 1, loop.running and iteration.number > loop.count)
            self._head = outer
        if loop.running:
            raise _GoesOnError
        self._rest(loop, noun, depth + 1)

    def _iteration(self, iteration: Iteration, noun: str, depth: int, running: bool) -> None:
        self._first = False
        if iteration.differences:
            self._title(f"{noun} {iteration.number}: as before, except", depth)
            self._items(iteration.items, depth)
        else:
            self.chapters(chapters(iteration.items, f"{noun} {iteration.number}"), depth, running)

    def _rest(self, loop: Loop, noun: str, depth: int) -> None:
        rest = loop.count - len(loop.shown)
        if not rest:
            return
        numbers = _ranges(loop, rest)
        what = f"{noun}{'s' * (rest > 1)} {numbers}"
        shape = "the same shape of events" if loop.alike == rest else f"{loop.alike:,} of {rest:,} with events as shown"
        self._title(f"{what}: {shape}{self._see(loop)}", depth)
        for series in loop.series:
            self._note(of_series(series), depth)
        for text in loop.printed:
            self._note(f"prints: {text.rstrip()}", depth)

    def _see(self, loop: Loop) -> str:
        """The faults that the shown iterations have, and that go on in the others."""
        findings = (self._story.findings.get(step.number, ()) for step in steps_of([loop]))
        rules = dict.fromkeys(one.rule for found in findings for one in found if one.occurrences > 1)
        return f", see {', '.join(rules)}" if rules else ""

    def end(self) -> None:
        """What belongs to no statement that was shown, and how the run ended."""
        for finding in self._story.elsewhere:
            self._title(f"also found, {place(finding.site)}", 0)
            self._finding(finding, 0)
        for remark in self._story.remarks:
            self._note(f"remark: {remark}", 0, "dim")
        if self._story.ended.how not in ("finished", "stopped"):
            ended = self._story.ended
            error = (ended.exception or "").partition(":")[0]
            how = f"failed with {error}" if error else _LEFT[ended.how].format(ended.status)
            self._title("the end", 0)
            self._note(f"the script {how}", 0, "bold red")


def _ranges(loop: Loop, rest: int) -> str:
    shown = {iteration.number for iteration in loop.shown}
    others = [number for number in range(1, loop.count + 1) if number not in shown] if loop.count <= 100_000 else []
    if not others:
        return f"of {loop.count:,}"
    if len(others) == others[-1] - others[0] + 1:
        return f"{others[0]:,} to {others[-1]:,}" if len(others) > 1 else f"{others[0]:,}"
    return f"up to {others[-1]:,}"


def place_of(step: StoryStep, main: str) -> str:
    """`line 12`, with the file where it is another one."""
    return f"line {step.line}" if step.path == main else f"{file(step.path)}:{step.line}"
