"""Writes the story of a run as one page that needs nothing else: the source on the left, the variables and the graph as
they were after each step on the right."""

from __future__ import annotations

import html
from importlib.resources import files

from gradtrace.escapes import ascii_json
from gradtrace.model.story import Story
from gradtrace.renderers.paper import Paper
from gradtrace.renderers.story.json import document
from gradtrace.renderers.wording import file
from gradtrace.source import texts
from gradtrace.stories.chronicle import steps_of

# read now: a script may change the directory or the path
_PAGE = files("gradtrace.renderers.story").joinpath("page.html").read_text(encoding="utf-8")


def render(story: Story, paper: Paper) -> str:
    """The page. All text in it comes from strangers' programs: it is data, never markup."""
    data = {**document(story), "sources": _sources(story)}
    # `</script>` in a string would end the script
    text = ascii_json(data).replace("<", "\\u003c")
    return _PAGE.replace("__TITLE__", html.escape(story.script)).replace("__STORY__", text)


def _sources(story: Story) -> dict[str, list[str]]:
    """The lines of each file that the story shows."""

    paths = dict.fromkeys(step.path for step in steps_of(story.items))
    return {file(path): [line.rstrip("\n") for line in texts.lines(path)] for path in paths}
