"""follow: runs the script under watch, statement by statement, and shows the story of the run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from gradtrace.commands.run import Options, WatchedRun, by_ending
from gradtrace.errors import ExitCode, UsageError, no_such
from gradtrace.host import heap, script, streams
from gradtrace.model.events import Event
from gradtrace.model.finding import Ended
from gradtrace.model.story import Story
from gradtrace.renderers.output import Out
from gradtrace.renderers.paper import Paper
from gradtrace.rules import Judge
from gradtrace.stories.chronicle import Chronicle

#: seconds until what there is of the story is written; from then on, how many times as long as writing takes it waits
_AFTER, _SHARE = 1.0, 20
#: each is a module of renderers.story
FORMATS = ("text", "json", "html")


@dataclass(frozen=True, slots=True)
class StoryOptions:
    """What of a run is shown: one function, some lines, so many iterations of each loop, a package's code as well."""

    function: str = ""
    lines: tuple[int, int] | None = None
    loops: int = 1
    package: str | None = None


def follow(options: Options, wanted: StoryOptions) -> int:
    """Runs the script and shows its story; returns the exit code."""
    options.check_places(options.output)
    kind = options.format or by_ending(options.output, "follow", "text", FORMATS)
    if kind not in FORMATS:
        raise no_such("format of follow", kind, FORMATS)
    program = options.load()
    roots = (*program.roots, *script.package_roots(wanted.package)) if wanted.package else program.roots
    if kind == "html" and options.output is None:
        raise UsageError("--format html: name a file for the page, as in -o story.html")
    out = Out(options.output, options.color, claim=options.output is None)

    # all of it now: later the script's directory comes first on the path
    with heap.filled():
        from gradtrace.watcher.story.teller import Storyteller, Wanted
        from gradtrace.watcher.watch import Watch

    render: Callable[[Story, Paper], str] = importlib.import_module(f"gradtrace.renderers.story.{kind}").render
    judge = Judge()
    stream: _StoryStream | None = None
    if kind == "text" and options.output is None:
        stream = _StoryStream(program.name, judge, out)
    chronicle = Chronicle(wanted.loops, stream.tick if stream is not None else lambda: None)
    if stream is not None:
        stream.chronicle = chronicle
    teller = Storyteller(chronicle, Wanted(wanted.function, wanted.lines))
    listener = _listener(judge, chronicle)
    watch = Watch(listener, user_roots=roots, stop_after=options.steps, story=teller, debug=options.debug)

    def finish(ended: Ended) -> int:
        story = chronicle.story(program.name, ended, judge.findings, watch.remarks + watch.unseen)
        out.write(render(story, out.paper) if stream is None else stream.finish(story))
        if not story.items:
            lines = " in these lines" if wanted.lines else ""
            streams.announce(f"no statement of {wanted.function or program.name} ran{lines}")
        return ExitCode.SCRIPT_FAILED if ended.status else ExitCode.OK

    return WatchedRun(program, watch, finish).run(options.timeout)


class _StoryStream:
    """Writes the story while it happens, of a run that takes longer than one waits for."""

    def __init__(self, script: str, judge: Judge, out: Out) -> None:
        from gradtrace.renderers.story.text import Stream

        self._script = script
        self._judge = judge
        self._out = out
        self._stream = Stream(out.paper)
        self._due = 0.0
        self.chronicle: Chronicle | None = None

    def tick(self) -> None:
        """A statement begins."""
        now = monotonic()
        self._due = self._due or now + _AFTER
        if now < self._due or self.chronicle is None:
            return
        self._out.write(self._stream.advance(self.chronicle.so_far(self._script, self._judge.findings)) or None)
        self._due = monotonic() + _SHARE * (monotonic() - now)

    def finish(self, story: Story) -> str:
        """What is left to write."""
        return self._stream.finish(story)


def _listener(judge: Judge, chronicle: Chronicle) -> Callable[[Event], None]:
    """Judges each event, and says at once which step of the story a new finding belongs to."""
    known: set[tuple[str, str, int]] = set()

    def see(event: Event) -> None:
        judge.see(event)
        for finding in judge.findings:
            if finding.place not in known:
                known.add(finding.place)
                chronicle.found(finding)

    return see
