"""What the watchers share: numbers, names, the trail, the gradients, and the one place where our own errors end."""

from __future__ import annotations

import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any, TypeVar

import torch
from torch.autograd import _get_sequence_nr  # type: ignore[attr-defined]

from gradtrace.model.events import Event
from gradtrace.script import StopRun
from gradtrace.tracebacks import is_ours, without_our_frames
from gradtrace.watch import names
from gradtrace.watch.frames import Frames
from gradtrace.watch.gradients import Gradients, Leaf
from gradtrace.watch.trail import Trail

T = TypeVar("T")
#: fruitless searches for names after which the running frames are searched no more
_SEARCHES = 8
#: create_graph calls whose graphs are remembered
_RECENT = 256


class Session:
    """One watch over one run. Events go to `listener`."""

    def __init__(self, listener: Callable[[Event], None], frames: Frames, debug: bool = False) -> None:
        self.emit = listener
        self.frames = frames
        #: graphs made by create_graph calls: call number and the range of node numbers
        self.created: deque[tuple[int, int, int]] = deque(maxlen=_RECENT)
        self.trail = Trail()
        self.gradients = Gradients()
        self.sequence: Callable[[], int] = _get_sequence_nr
        self.remarks: list[str] = []
        self.backward_calls = 0
        self.steps = 0
        self._debug = debug
        self._thread = threading.get_ident()
        self._owners: dict[int, set[int]] = {}
        self._searches_left = _SEARCHES

    def begin(self) -> None:
        """From here on this thread's nodes are ours to follow."""
        self._thread = threading.get_ident()
        self.trail.end = self.sequence()

    def is_created(self, number: int) -> bool:
        """Whether a create_graph call made this node: it belongs to a graph of gradients."""
        return any(start <= number < end for _, start, end in self.created)

    @staticmethod
    def running_frame() -> FrameType:
        """The innermost frame that is not ours: one of ours, held by itself, would keep all its callers' values."""
        frame = sys._getframe(1)
        while is_ours(frame) and frame.f_back is not None:
            frame = frame.f_back
        return frame

    def abandon(self) -> None:
        """Nothing is watched any more."""
        self._thread = 0

    def in_watched_thread(self) -> bool:
        return threading.get_ident() == self._thread

    def next_call(self) -> int:
        self.backward_calls += 1
        return self.backward_calls

    def guarded(self, work: Callable[..., T], *args: Any) -> T | None:
        """Does a piece of watching; an error of ours must never reach the user's run."""
        try:
            return work(*args)
        except StopRun:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the script must go on
            if not self.remarks:
                where = traceback.extract_tb(error.__traceback__)[-1]
                text = f"{type(error).__name__}: {error}".splitlines()[0]
                self.remarks.append(
                    f"gradtrace itself failed while watching ({text}, at {where.name}:{where.lineno}): "
                    "what follows may be incomplete; run with --debug for the traceback"
                )
                if self._debug:
                    traceback.print_exc()
            return None

    def tidy(self, error: BaseException) -> None:
        """Takes our frames out of the traceback that the user's own `except` would see."""
        error.__traceback__ = without_our_frames(error.__traceback__)

    def own(self, parameters: Iterable[Any], optimizer: int) -> None:
        """These parameters belong to this optimizer."""
        for parameter in parameters:
            self._owners.setdefault(id(parameter), set()).add(optimizer)

    def owners(self, leaves: Iterable[torch.Tensor]) -> frozenset[int]:
        return frozenset(key for leaf in leaves for key in self._owners.get(id(leaf), ()))

    def leaves(self, tensors: Sequence[torch.Tensor], frame: FrameType | None) -> list[tuple[torch.Tensor, Leaf]]:
        """The state of each leaf; leaves met for the first time get their names from the running frames."""
        fresh = [tensor for tensor in tensors if self.gradients.known(tensor) is None]
        if fresh:
            found = self._search(frame)
            for tensor in fresh:
                self.gradients.add(tensor, found.get(id(tensor)))
            if any(id(tensor) not in found for tensor in fresh):
                self._searches_left -= 1
        return [(tensor, leaf) for tensor in tensors if (leaf := self.gradients.known(tensor)) is not None]

    def _search(self, frame: FrameType | None) -> dict[int, str]:
        return names.find(frame, self.frames) if self._searches_left > 0 else {}
