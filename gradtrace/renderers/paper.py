"""What a result is written on: how wide it is, which characters it takes, whether it shows colours."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from gradtrace.escapes import visible


@dataclass(frozen=True, slots=True)
class Paper:
    """`width` in cells; None is that of the terminal. `detail` is how much people want to read: less (-1), more (1)."""

    encoding: str = "utf-8"
    width: int | None = 100
    color: bool = False
    detail: int = 0

    @property
    def is_terminal(self) -> bool:
        """Whether people read it at once."""
        return self.width is None

    def printed(self, draw: Callable[[Console], None]) -> str:
        """What `draw` prints on a console made for this paper."""
        file = _Encoded(self.encoding)
        console = Console(
            file=file,
            force_terminal=self.color,
            no_color=not self.color,
            width=self.width,
            highlight=False,
            soft_wrap=False,
            legacy_windows=False,
            force_jupyter=False,
        )
        console.push_render_hook(_Visible())
        draw(console)
        return file.getvalue()


def as_html(draw: Callable[[Console], None], width: int = 110) -> str:
    """What `draw` prints as an element of HTML, for notebooks."""
    console = Console(
        file=io.StringIO(), record=True, force_terminal=True, color_system="truecolor", width=width, highlight=False,
        legacy_windows=False, force_jupyter=False,
    )  # fmt: skip
    console.push_render_hook(_Visible())
    draw(console)
    shape = '<pre style="line-height:1.3;overflow-x:auto;white-space:pre">{code}</pre>'
    return console.export_html(inline_styles=True, code_format=shape)


class _Visible(RenderHook):
    """Spells out what a terminal would obey in all that is printed: names come from the user's program and from files."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_VisibleRenderable(one) for one in renderables]


class _VisibleRenderable:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


class _Encoded(io.StringIO):
    """Text in memory that says which encoding it will be written in, so that a renderer knows what it can draw."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding
