"""Sees the clipping of gradients, by `clip_grad_norm_`, `clip_grad_value_` or by hand, and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import FrameType

from torch.nn.utils import clip_grad

from gradtrace.model.events import Clipped, Given
from gradtrace.model.site import Stack
from gradtrace.watcher.code.names import variables
from gradtrace.watcher.core.book import Act, Leaf
from gradtrace.watcher.core.session import Session

#: a limit so high only measures
_MEASURES = 1e5
_NAMES = 4
#: calls that a gradient without an optimizer sums before it counts
_SUMMED = 3


@dataclass(slots=True, eq=False)
class _Clip:
    """One call, and the gradients that it clipped and whose fate is open."""

    op: str
    stack: Stack
    measures: bool
    names: list[str] = field(default_factory=list)
    count: int = 0
    open: int = 0
    #: some of the parameters have had gradients before
    known: bool = False
    fresh: bool = False
    #: a gradient that a step had used: where
    spent: Stack = ()
    #: gradients without an optimizer that many calls have added to, and what is reported of them
    strays: list[Leaf] = field(default_factory=list)
    stray: tuple[Given, int] | None = None
    reported: bool = False
    seen: set[int] = field(default_factory=set)


class Clips:
    """Learns from `Acts` what the user's code does to gradients."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running: _Clip | None = None

    def touch(self, frame: FrameType, number: int, leaf: Leaf | None, given: bool = False) -> None:
        """Clipping reads the gradient of a parameter, and finds one if it is `given`."""
        stack = self._session.frames.stack(frame)
        if self._running is None or self._running.stack != stack:
            self.close()
            self._running = _begin(frame, stack)
        clip = self._running
        if number in clip.seen:
            return
        clip.seen.add(number)
        clip.count += 1
        if given and (leaf is None or not (leaf.shares or leaf.zeroed)):
            clip.reported = True  # a gradient that the user's code has put there itself
        if leaf is None:
            return
        clip.known = True
        clip.names += [leaf.name] if len(clip.names) < _NAMES else []
        if not leaf.shares:
            return
        if leaf.clip is not None and leaf.clip is not clip:
            self._settle(leaf)
        leaf.clip = clip
        clip.open += 1
        if leaf.fresh or not leaf.owners:
            clip.fresh |= bool(leaf.owners)
        else:
            clip.spent = leaf.used_stack
        if not leaf.owners and not leaf.read and leaf.count >= _SUMMED:
            clip.strays.append(leaf)

    def nothing(self, frame: FrameType) -> None:
        """torch makes a norm of zero: no parameter has a gradient, or there are no parameters."""
        at: FrameType | None = frame
        while at is not None and at.f_code.co_filename == clip_grad.__file__:
            if at.f_code.co_name == "clip_grad_norm_" and variables(at).get("parameters") == []:
                self.close()
                stack = self._session.frames.stack(frame)
                self._session.emit(Clipped("clip_grad_norm_", stack, "none", (), (), 0))
            at = at.f_back

    def close(self) -> None:
        """No more parameters belong to the call."""
        clip, self._running = self._running, None
        if clip is None or clip.reported:
            return
        clip.seen.clear()
        if clip.count and not clip.open:
            self._report(clip, "empty" if clip.known else "never", ())
        clip.stray = _given(clip.strays) if clip.strays and clip.fresh else None
        clip.strays.clear()

    def unscale(self, frame: FrameType, leaf: Leaf | None) -> None:
        self.close()
        if leaf is not None and leaf.clip is not None and not leaf.clip.reported:
            self._report(leaf.clip, "scaled", self._session.frames.stack(frame))

    def used(self, leaf: Leaf) -> None:
        """A step, or the user's code, uses the gradient."""
        if self._running is not None and self._running.op:
            self.close()  # what the user's code clips by hand it reads one by one
        if leaf.clip is not self._running:
            self._settle(leaf)

    def _settle(self, leaf: Leaf) -> None:
        clip, leaf.clip = leaf.clip, None
        if clip is not None and not clip.reported:
            self._report(clip, "used", ())

    def cleared(self, leaf: Leaf, stack: Stack) -> None:
        self.close()
        if leaf.fresh and any(share.call.had(Act.CHECKED) for share in leaf.shares):
            self._settle(leaf)  # a GradScaler has left the step out
        clip, leaf.clip = leaf.clip, None
        if clip is None or clip.reported:
            return
        clip.open -= 1
        if not clip.open:
            self._report(clip, "cleared" if clip.fresh or not clip.spent else "spent", clip.spent or stack)

    def _report(self, clip: _Clip, fate: str, then: Stack) -> None:
        clip.reported = True
        if clip.measures:
            return
        strays, summed = clip.stray or (None, 0)
        self._session.emit(
            Clipped(clip.op, clip.stack, fate, then, tuple(clip.names), clip.count, strays=strays, summed=summed)
        )


def _begin(frame: FrameType, stack: Stack) -> _Clip:
    # before Python 3.12 a comprehension has a frame of its own
    at = frame.f_back if frame.f_code.co_name.startswith("<") and frame.f_back is not None else frame
    if at.f_code.co_filename != clip_grad.__file__:
        return _Clip("", stack, measures=False)
    given = variables(at)
    limit = given.get("max_norm", given.get("clip_value"))
    return _Clip(at.f_code.co_name, stack, isinstance(limit, (int, float)) and limit >= _MEASURES)


def _given(leaves: list[Leaf]) -> tuple[Given, int]:
    """The gradients of no optimizer's leaves among the clipped ones, with how many calls they sum at most."""
    most = max(leaves, key=lambda leaf: leaf.count)
    call = most.shares[-1].call
    entry = call.links.entry([most.owners]) if call.links is not None else ()
    names = tuple(leaf.name for leaf in leaves[:_NAMES])
    return Given(call.number, call.stack, call.origin.root, names, len(leaves), entry=entry), most.count
