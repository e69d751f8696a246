"""What the watchers share: numbers, names, the trail, the gradients, and the one place where our own errors end."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

import torch

from gradtrace.host import recursion
from gradtrace.host.ranks import Colleagues
from gradtrace.host.tracebacks import is_ours, without_our_frames
from gradtrace.model.events import Cut, Event
from gradtrace.watcher.code import names
from gradtrace.watcher.code.frames import Frames
from gradtrace.watcher.compat import (
    DisableTorchDispatch,
    DisableTorchFunction,
    dispatch_height,
    func_transform,
    next_number,
)
from gradtrace.watcher.core import compiled
from gradtrace.watcher.core.book import Book, Leaf
from gradtrace.watcher.core.failures import Failures
from gradtrace.watcher.core.identity import Identities, TensorId
from gradtrace.watcher.core.trail import Trail
from gradtrace.watcher.graph.walk import Mark

T = TypeVar("T")
#: fruitless searches for names after which the running frames are searched no more
_SEARCHES = 8
#: calls whose kept graphs, or graphs of gradients, are remembered
_RECENT = 256
#: more nodes than there will ever be
_NEVER = sys.maxsize


@compiled.ours
def out_of_reach() -> bool:
    """Whether torch.compile or a transform of torch.func is at work: what passes then only stands for tensors."""
    return torch.compiler.is_compiling() or func_transform() is not None


class Session:
    """One watch over one run. Events go to `listener`."""

    def __init__(self, listener: Callable[[Event], None], frames: Frames, debug: bool = False) -> None:
        self._listener = listener
        self.frames = frames
        #: graphs made by create_graph calls: call number and the range of node numbers
        self.created: deque[tuple[int, int, int]] = deque(maxlen=_RECENT)
        self.trail = Trail()
        self.ids = Identities()
        self.book = Book(self.ids, self.owned_by)
        self.sequence: Callable[[], int] = next_number
        self.backward_calls = 0
        #: what runs is ours
        self.aside = False
        #: those in other threads, which are not watched
        self.calls_elsewhere = 0
        self.steps = 0
        #: leaves that the user's code updated by hand so far
        self.manual_updates = 0
        self.failures = Failures(debug)
        #: the other ranks of the job, where there are any
        self.colleagues: Colleagues | None = None
        #: an internal error ended all watching
        self.over = False
        self._thread = self._first_thread = threading.get_ident()
        self._owners = self.ids.table(dict[TensorId, set[TensorId]]())
        #: marks of the retaining calls, which live as long as a node of their graphs
        self._retaining: deque[weakref.ref[Mark]] = deque(maxlen=_RECENT)
        #: tensors given to an optimizer that did not require grad
        self.unasked: deque[tuple[weakref.ref[torch.Tensor], Cut]] = deque(maxlen=_RECENT)
        #: after which backward call each optimizer made its last step
        self._stepped: dict[TensorId, int] = {}
        #: class and life of each optimizer met that still lives
        self._optimizers = self.ids.table(dict[TensorId, tuple[str, weakref.ref[Any]]]())
        #: whether an optimizer was made so far
        self.has_optimizer = False
        #: living owners by leaf, until these change
        self._groups: dict[TensorId, frozenset[TensorId]] = {}
        self._searches_left = _SEARCHES
        #: node numbers: where the stretch since the last backward call began, how long such a stretch was at most, and
        #: the one that sleepers wait for
        self.phase = self.sequence()
        self.longest = 0
        self.wake_at = _NEVER

    def begin(self) -> None:
        """From here on this thread's nodes are ours to follow."""
        self._thread = self._first_thread = threading.get_ident()
        self.trail.end = self.phase = self.sequence()

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
        self._thread = self._first_thread = 0

    @compiled.ours
    def in_watched_thread(self) -> bool:
        return threading.get_ident() == self._thread and not self.aside

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """While open, backward calls and steps are ours, and none of the script's."""
        self.aside = True
        try:
            yield
        finally:
            self.aside = False

    @property
    def watching(self) -> bool:
        """Whether anything is watched, in whatever thread."""
        return self._thread != 0

    def in_first_thread(self) -> bool:
        """Whether this is the thread that was watched from the beginning, even if watching has ended."""
        return threading.get_ident() == self._first_thread

    @compiled.around
    def sees_this(self) -> bool:
        """Whether a backward call that begins now is to be watched: not on what only stands for tensors, nor in another
        thread, where it is counted."""
        try:
            if self.aside or self.over or out_of_reach():
                return False
            watched = self.in_watched_thread()
            self.calls_elsewhere += not watched
            return watched
        except Exception as error:  # noqa: BLE001 - whatever it is, the script must go on
            self.fail(error, self)
            return False

    def next_call(self) -> int:
        self.backward_calls += 1
        return self.backward_calls

    @compiled.ours
    def guarded(self, work: Callable[..., T], *args: Any) -> T | None:
        """Does a piece of watching, unseen by modes and tensors of the user's; an error of ours must never reach the
        user's run."""
        if self.failures.found and self.failures.has_stopped(work):
            return None
        try:
            with DisableTorchFunction():
                if not dispatch_height():
                    return work(*args)
                with DisableTorchDispatch():
                    return work(*args)
        except Exception as error:  # noqa: BLE001 - whatever it is, the script must go on
            self.fail(error, work)
            return None

    def dispatch(self, handlers: Iterable[Callable[..., None]], *args: Any) -> None:
        """Calls several handlers, within `guarded`: an error of one does not keep the others from running."""
        failures = self.failures
        for one in handlers:
            if failures.found and failures.has_stopped(one):
                continue
            try:
                one(*args)
            except Exception as error:  # noqa: BLE001 - as above
                self.fail(error, one)

    def emit(self, event: Event) -> None:
        """Hands the listener what happened."""
        if self.failures.over:
            return
        try:
            self._listener(event)
        except Exception as error:  # noqa: BLE001 - as above
            self.fail(error, self._listener)

    def fail(self, error: Exception, work: object) -> None:
        """An internal error: whatever `work`, a callable or an observer, belongs to stops, and rules learn of it.

        Where the script itself has used up the stack the error is not ours.
        """
        if isinstance(error, RecursionError) and recursion.is_exhausted():
            return
        unseen = self.failures.add(error, work)
        if self.failures.over:
            self.over = True
            self._thread = 0
        if unseen is not None:
            with suppress(Exception):  # it may be the listener that failed
                self._listener(unseen)

    @compiled.ours
    def tidy(self, error: BaseException) -> None:
        """Takes our frames out of the traceback that the user's own `except` would see."""
        with suppress(Exception):
            # not by assignment, which a frozen dataclass that is an exception forbids
            BaseException.with_traceback(error, without_our_frames(error.__traceback__))

    def beyond(self, more: int) -> int:
        """The number of the node that makes this stretch longer than usual, by half and some `more` nodes."""
        return self.phase + self.longest * 3 // 2 + more

    def wake(self, number: int = 0) -> None:
        """Those who sleep get, once, the first call that makes node `number` or a later one."""
        self.wake_at = min(self.wake_at, number)

    def sleep(self) -> None:
        """They have been woken, or are about to be."""
        self.wake_at = _NEVER

    def own(self, parameters: Iterable[Any], optimizer: Any) -> None:
        """These parameters belong to this optimizer."""
        key = self.ids.of(optimizer)
        self.has_optimizer = True
        if key not in self._optimizers:
            self._optimizers[key] = type(optimizer).__name__, weakref.ref(optimizer, self._forget_groups)
        for parameter in parameters:
            self._owners.setdefault(self.ids.of(parameter), set()).add(key)
        self._groups.clear()

    def _forget_groups(self, dead: Any) -> None:
        self._groups.clear()

    def meet(self, optimizer: Any) -> None:
        """Owns what the optimizer holds where it was not seen when it was made: unpickled, for one."""
        if self.ids.known(optimizer) not in self._optimizers:
            self.own((one for group in optimizer.param_groups for one in group["params"]), optimizer)

    def optimizers(self) -> list[Any]:
        """The living optimizers."""
        return [optimizer for _, ref in self._optimizers.values() if (optimizer := ref()) is not None]

    @property
    def has_several_optimizers(self) -> bool:
        """Whether more than one was made, or seen to step."""
        return len(self._optimizers) > 1

    def optimizer_name(self, key: TensorId) -> str:
        """The optimizer's class."""
        return self._optimizers.get(key, ("", None))[0]

    def owned_by(self, leaf: torch.Tensor) -> frozenset[TensorId]:
        """Keys of the living optimizers that own the leaf."""
        number = self.ids.known(leaf)
        found = self._groups.get(number)
        if found is None:
            keys = self._owners.get(number)
            if not keys:
                return frozenset()
            found = self._groups[number] = frozenset(key for key in keys if self.is_alive(key))
        return found

    def is_alive(self, optimizer: TensorId) -> bool:
        """Whether the optimizer with this number still exists."""
        _, ref = self._optimizers.get(optimizer, ("", None))
        return ref is not None and ref() is not None

    def owned(self, leaf: torch.Tensor) -> bool:
        """Whether an optimizer holds, or held, the leaf."""
        return self.is_owned(self.ids.known(leaf))

    def is_owned(self, key: TensorId) -> bool:
        """Whether an optimizer holds, or held, the leaf of this number."""
        return bool(self._owners.get(key))

    def owners_of(self, key: TensorId) -> frozenset[TensorId]:
        """Keys of the optimizers that hold, or held, this leaf."""
        return frozenset(self._owners.get(key, ()))

    def owners(self, leaves: Iterable[torch.Tensor]) -> frozenset[TensorId]:
        found: set[TensorId] = set()
        for leaf in leaves:
            found.update(self._owners.get(self.ids.known(leaf), ()))
        return frozenset(found)

    def retains(self, mark: Mark) -> None:
        """The graph of this backward call is kept by an option."""
        self._retaining.append(weakref.ref(mark))

    def held(self) -> tuple[int, ...]:
        """Numbers of retaining calls whose graph is alive now."""
        if not self._retaining:
            return ()
        alive = [(ref, mark.call) for ref in self._retaining if (mark := ref()) is not None]
        if len(alive) < len(self._retaining):
            self._retaining = deque((ref for ref, _ in alive), maxlen=_RECENT)
        return tuple(call for _, call in alive)

    def stepped(self, optimizer: TensorId) -> None:
        """This optimizer made a step."""
        self._stepped[optimizer] = self.backward_calls

    def stepped_since(self, call: int) -> frozenset[TensorId]:
        """The optimizers that made a step after backward call number `call`."""
        return frozenset(optimizer for optimizer, last in self._stepped.items() if last >= call)

    def leaves(self, tensors: Sequence[torch.Tensor], frame: FrameType | None) -> list[tuple[torch.Tensor, Leaf]]:
        """The state of each leaf; leaves met for the first time get their names from the running frames."""
        known = self.book.known
        found = [(tensor, leaf) for tensor in tensors if (leaf := known(tensor)) is not None]
        if len(found) == len(tensors):
            return found
        self._meet([tensor for tensor in tensors if known(tensor) is None], frame)
        return [(tensor, leaf) for tensor in tensors if (leaf := known(tensor)) is not None]

    def _meet(self, fresh: Sequence[torch.Tensor], frame: FrameType | None) -> None:
        found = names.find(frame, self.frames) if self._searches_left > 0 else {}
        for tensor in fresh:
            self.book.add(tensor, found.get(id(tensor)))
        if any(id(tensor) not in found for tensor in fresh):
            self._searches_left -= 1
