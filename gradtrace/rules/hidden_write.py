"""A tensor that was saved for backward is modified in a way that torch does not notice.

Why it matters
    A write through `.data`, or by NumPy to an array that shares its memory with a tensor (torch.from_numpy, .numpy()),
    does not increase the version counter: no error is raised, and backward computes the gradient from the new values.

Bad
    stage, losses = np.empty((16, 8), dtype=np.float32), []
    for window, y in windows:
        np.copyto(stage, window)
        losses.append(loss_fn(model(torch.from_numpy(stage)), y))
    torch.stack(losses).mean().backward()  # all windows have the last one's values

Good
    losses = []
    for window, y in windows:
        losses.append(loss_fn(model(torch.from_numpy(window.copy())), y))
    torch.stack(losses).mean().backward()

A write before the forward pass or after the backward call (a clamp of the weights after each step, an update by hand)
is fine. The finding is at the write; where the write by NumPy is not known, at the line that shares the memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, Overwritten
from gradtrace.model.finding import SAVED_VALUES, Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.blame import carrier
from gradtrace.rules.judging.naming import evaluated, request, what_was_saved, writing
from gradtrace.source.buffers import Buffer, shared_buffer


class HiddenWrite(Rule):
    id = "hidden-write"
    level = Level.ERROR
    events = (Overwritten,)
    needs = Needs(abilities=(SAVED_VALUES,))

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, Overwritten) or event.error is not None:
            return []
        return self._by_numpy(event) if event.how == "numpy" else self._through_data(event)

    def _through_data(self, event: Overwritten) -> list[Finding]:
        carried = carrier(event.entry, event.built) if event.entry else None
        return self.finding(
            event.written,
            f"{writing(event.written)} changes {what_was_saved(event)}: {request(event)} silently computes with the "
            "new values",
            f"detach what is carried over from before the write: {carried.detached()}"
            if carried
            else "write before the forward pass or after the backward call, under torch.no_grad() instead of through "
            ".data, so that torch notices; or pass the operation a copy (`.clone()`)",
            (
                (carried.stack if carried else (), "this line carries the old graph into the next iteration"),
                (event.built, "this operation saved the tensor"),
                (event.stack, f"{request(event)} needs the original values"),
                (event.written[1:], "called from here"),
            ),
        )

    def _by_numpy(self, event: Overwritten) -> list[Finding]:
        near = dict.fromkeys(site.path for site in (*event.built, *event.stack))
        buffer = shared_buffer([*near, *(path for path in event.files if path not in near)])
        if event.lent and (buffer is None or buffer.shared.place not in [site.place for site in event.lent]):
            return self._lent(event)
        where = (buffer.filled or buffer.shared,) if buffer else event.built
        name = f"`{buffer.name}`" if buffer else "an array"
        cause = writing(where) if buffer and buffer.filled else "NumPy"
        return self.finding(
            where,
            f"{cause} changes {name}, which shares its memory with a tensor that {evaluated(event.built)} saved for "
            f"backward: {request(event)} silently computes with the new values",
            _fix(buffer),
            (
                ((buffer.shared,) if buffer else (), "the tensor shares the array's memory from here on"),
                (event.built, "this operation saved the tensor"),
                (event.stack, f"{request(event)} needs the original values"),
            ),
        )

    def _lent(self, event: Overwritten) -> list[Finding]:
        """The memory was handed out here; which line writes to the array the source does not say."""
        array = evaluated(event.lent)
        return self.finding(
            event.lent,
            f"NumPy changes the array that {array} gives, which shares its memory with a tensor that "
            f"{evaluated(event.built)} saved for backward: {request(event)} silently computes with the new values",
            "pass NumPy a copy: `.numpy().copy()`",
            (
                (event.built, "this operation saved the tensor"),
                (event.stack, f"{request(event)} needs the original values"),
            ),
        )


def _fix(buffer: Buffer | None) -> str:
    if buffer is None:
        return "make the tensor from a copy of the array: `torch.tensor(array)`"
    if buffer.lent:
        return f"write to a copy of the array: `{buffer.name} = {buffer.name}.copy()` first"
    return f"make the tensor from a copy: `torch.from_numpy({buffer.name}.copy())`"
