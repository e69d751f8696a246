"""Prints what became of parameters: a table of all of them, or the life of one.

trains: 1 parameter, SGD at line 40, 60 steps
  model.head.weight  [10, 64]  gradient 0.83 → 0.12 ▇▅▃▁  update 0.0012 → 0.00098 ▇▅▃▁

never reached by a gradient: 1 parameter, SGD at line 40, 60 steps
  model.encoder.weight  [64, 32]
  `detach()` cuts the path to the loss (model.py:20)
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from gradtrace.model.lives import Arrival, GradientNow, Life, State, StepInterval, Stretch
from gradtrace.model.site import Stack
from gradtrace.renderers import wording

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 12
_STYLE = {State.TRAINS: "green", State.FROZEN: "cyan", State.BY_HAND: "cyan"}


def table(lives: Sequence[Life], console: Console) -> None:
    """All parameters, grouped by what became of them."""
    main = _main_file(lives)
    for state in State:
        group = [life for life in lives if life.state is state]
        if group:
            _group(state, group, console, main)
    training = sum(life.state is State.TRAINS for life in lives)
    _line(console, Text(f"{training} of {wording.count(len(lives), 'parameter')} train", "bold"))


def _group(state: State, group: Sequence[Life], console: Console, main: str) -> None:
    shared = {_holder(life, main) for life in group}
    title = [f"{state.value}: {wording.count(len(group), 'parameter')}", *(shared if len(shared) == 1 else ())]
    _line(console, Text(", ".join(title), _STYLE.get(state, "bold red")))
    names = max(len(life.name) for life in group)
    shapes = max(len(_shape(life)) for life in group)
    for reason in dict.fromkeys(life.reason for life in group):
        alike = [life for life in group if life.reason == reason]
        for life in alike:
            facts = _curves(life, console)
            if len(shared) > 1:
                facts.insert(0, _holder(life, main))
            row = Text(f"  {life.name:<{names}}  {_shape(life):<{shapes}}", "bold")
            row.append("  ".join(["", *facts]), "not bold")
            row.rstrip()
            _line(console, row)
        if reason:
            at = f" ({wording.place(alike[0].at[0], main)})" if alike[0].at else ""
            _line(console, Text(f"  {reason}{at}", "italic"))
    console.print()


def stories(lives: Sequence[Life], console: Console) -> None:
    """The life of each, iteration by iteration; equal iterations fold."""
    for at, life in enumerate(lives):
        if at:
            console.print()
        _story(life, console, _main_file(lives))


def _story(life: Life, console: Console, main: str) -> None:
    head = Text(life.name, "bold")
    head.append(f"  {_shape(life)}  {_origin(life, main)}", "not bold")
    _line(console, head)
    rows = [(_numbers(stretch), _words(stretch, main)) for stretch in life.stretches]
    width = max((len(number) for number, _ in rows), default=0)
    for number, told in rows:
        for first, words in zip([number] + [""] * len(told), told, strict=False):
            _line(console, Text(f"  {first:<{width}}  {words}"))
    if life.path:
        shown = life.path if _can_show(console, life.path) else life.path.replace("←", "<-").replace("✂", "cut:")
        _line(console, Text(f"  path from the loss: {shown}"))
    _line(console, Text(_verdict(life, console, main), _STYLE.get(life.state, "bold red")))


def gradients(rows: Sequence[GradientNow], console: Console) -> None:
    """A table of the gradients that there are at one moment."""
    names = max((len(row.name) for row in rows), default=0)
    shapes = max((len(str(list(row.shape))) for row in rows), default=0)
    told = [_gradient(row) for row in rows]
    width = max((len(words) for words, _ in told), default=0)
    for row, (words, style) in zip(rows, told, strict=True):
        text = Text(f"{row.name:<{names}}  {list(row.shape)!s:<{shapes}}  ", "bold")
        text.append(f"{words:<{width}}", style)
        text.append(f"  {row.optimizer or 'in no optimizer'}", "dim")
        text.rstrip()
        _line(console, text)


def _gradient(row: GradientNow) -> tuple[str, str]:
    """What there is in .grad, and its style."""
    if row.norm is None:
        return ("grad None", "bold red") if row.requires_grad else ("does not require grad", "cyan")
    if row.lost:
        return f"grad has {wording.count(row.lost, 'value')} that are not finite", "bold red"
    if not row.norm:
        return "grad all zero", "bold red"
    relative = f", {row.norm / row.size:.2g} of the weight" if row.size else ""
    return f"grad {row.norm:.3g}{relative}", "green"


def _verdict(life: Life, console: Console, main: str) -> str:
    at = f" ({wording.place(life.at[0], main)})" if life.at else ""
    if life.state is State.TRAINS:
        curves = "It trains: " + "  ".join(_curves(life, console))
        return f"{curves}\nBut {life.reason}{at}" if life.reason else curves
    return f"{life.state.value[0].upper()}{life.state.value[1:]}: {life.reason}{at}"


def _numbers(stretch: Stretch) -> str:
    first, last = stretch.first.number, stretch.last.number
    return f"iteration {first}" if first == last else f"iterations {first}-{last}"


def _words(stretch: Stretch, main: str) -> list[str]:
    """A row for each backward call, and one for the step."""
    first, last = stretch.first, stretch.last
    rows = []
    for one, other in zip(first.arrivals, last.arrivals, strict=True):
        rows.append(_arrival(one, other, stretch.times, main))
    if first.step:
        rows.append(_step(first, last, stretch.times, main))
    elif first.arrivals:
        rows.append("no optimizer step used it")
    return rows


def _arrival(first: Arrival, last: Arrival, times: int, main: str) -> str:
    call = f"{first.root}.backward()" if first.root else "backward()"
    added = ", added to the gradient that was there" if first.accumulated else ""
    return f"{call} {_at(first.stack, main)}  gradient {_range(first.norm, last.norm, times)}{added}"


def _step(first: StepInterval, last: StepInterval, times: int, main: str) -> str:
    if first.gradient is None:
        return f"{first.optimizer}.step() {_at(first.step, main)}  .grad is None: the step skips it"
    update = _range(first.update or 0.0, last.update or 0.0, times)
    return f"{first.optimizer}.step() {_at(first.step, main)}  update {update} of its norm"


def _origin(life: Life, main: str) -> str:
    created = f"created at {wording.place(life.created[0], main)}" if life.created else ""
    place = f" ({wording.place(life.held[0], main)})" if life.held else ""
    held = f"held by {life.optimizer}{place}" if life.optimizer else "held by no optimizer"
    return ", ".join(filter(None, (created, held)))


def _holder(life: Life, main: str) -> str:
    """The optimizer that holds it, and the steps that this made: `SGD at line 12, 60 steps`."""
    if not life.optimizer:
        return "no optimizer"
    place = f" at {wording.place(life.held[0], main)}" if life.held else ""
    return f"{life.optimizer}{place}, {wording.count(life.steps, 'step')}"


def _curves(life: Life, console: Console) -> list[str]:
    facts = []
    for name, series in (("gradient", life.gradients), ("update", life.updates)):
        if series and any(series):
            facts.append(f"{name} {_range(series[0], series[-1], len(series))} {_spark(series, console)}".rstrip())
    if facts and life.placement and not life.placement.startswith("Replicate of"):
        facts.append(f"of the local shard ({life.placement})")
    return facts


def _main_file(lives: Sequence[Life]) -> str:
    """The file that needs no naming: the one in which most optimizers are made."""
    files = [life.held[0].path for life in lives if life.held]
    return max(files, key=files.count, default="")


def _range(first: float, last: float, times: int) -> str:
    return f"{first:.3g}" if times == 1 else f"{first:.3g} → {last:.3g}"


def _spark(series: Sequence[float], console: Console) -> str:
    """The series as a row of bars; nothing where the stream cannot show them."""
    finite = [value for value in series if value - value == 0]
    if len(finite) < 2 or not _can_show(console, _BARS):
        return ""
    step = max(len(finite) / _WIDTH, 1)
    shown = [finite[int(at * step)] for at in range(min(_WIDTH, len(finite)))]
    low, high = min(shown), max(shown)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0
    return "".join(_BARS[round((value - low) * scale)] for value in shown)


def _can_show(console: Console, text: str) -> bool:
    try:
        text.encode(console.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _shape(life: Life) -> str:
    return str(list(life.shape)) if life.shape else "scalar"


def _at(stack: Stack, main: str) -> str:
    return f"({wording.place(stack[0], main)})" if stack else ""


def _line(console: Console, text: Text) -> None:
    console.print(text, soft_wrap=True)
