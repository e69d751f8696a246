"""The events that a module gets which watches one kind of thing. To watch something new, add an `Observer` in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import torch

from gradtrace.model.site import Stack

if TYPE_CHECKING:
    from gradtrace.watcher.core.backward import BackwardCall
    from gradtrace.watcher.core.session import Session


@dataclass(slots=True)
class TorchCall:
    """One call of a torch function that has returned. Not to be kept: it holds tensors and a frame."""

    frame: FrameType
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    #: nodes numbered from `before` to `after - 1` were made by it
    before: int
    after: int

    @property
    def inputs(self) -> list[torch.Tensor]:
        """The tensors among its arguments, lists and tuples of them opened."""
        return tensors_in([*self.args, *self.kwargs.values()])


Handler: TypeAlias = Callable[[TorchCall], None]


class Observer:
    """All methods may be left out. Everything here runs guarded: an error ends up as a remark of the report, and the
    observer is not called again."""

    #: whether rules judge by what it reports
    serves_rules: ClassVar[bool] = True
    #: whether every check has it; the others are made where an option needs them
    in_every_check: ClassVar[bool] = True
    #: observers that must get the same call or step before this one
    comes_after: ClassVar[tuple[type[Observer], ...]] = ()

    def __init__(self, session: Session) -> None:
        self.session = session

    def watched(self) -> AbstractContextManager[None]:
        """What is put in place around the run, and put back after it."""
        return nullcontext()

    def functions(self) -> Mapping[Any, Handler]:
        """Who handles calls of these torch functions."""
        return {}

    def made_nodes(self) -> Handler | None:
        """Who handles every call that made nodes of a graph."""
        return None

    def woken(self) -> Handler | None:
        """Who handles a call that made nodes, if it makes the one that `session.wake` waits for."""
        return None

    def made_plain(self) -> Handler | None:
        """Who handles every call that gave a tensor without a graph."""
        return None

    def failed(self, call: TorchCall, error: BaseException) -> None:
        """A call raised an error; its `out` is None."""

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        """A backward call is about to run; the graph is whole."""

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        """The backward call ended."""

    def after_zero_grad(self, tensors: Sequence[torch.Tensor], frame: FrameType) -> None:
        """`zero_grad()` has set the gradients of these to None; what it did to each did not pass through the mode."""

    def after_group(self, optimizer: torch.optim.Optimizer, used_up: bool, frame: FrameType) -> None:
        """An optimizer was given a further group of parameters, by its constructor for one; `used_up` where that was an
        iterator that gave none."""

    def group_refused(
        self, optimizer: torch.optim.Optimizer, group: dict[str, Any], error: ValueError, frame: FrameType
    ) -> None:
        """An optimizer refused a group of parameters."""

    def after_step(self, optimizer: torch.optim.Optimizer, stack: Stack) -> None:
        """An optimizer made a step."""

    def crashed(self, error: BaseException, stack: Stack) -> None:
        """The script ends by an exception, raised at `stack`."""

    def after_unseen_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer made a step in a compiled function: of what it used and cleared there nothing is known."""

    def at_end(self) -> None:
        """The run is over."""

    def so_far(self) -> None:
        """Reports what `at_end` would report were the run over now, and changes nothing: the run goes on. A debugger asks
        for it, to stop before the end; what judges complete runs alone leaves it out."""

    def abandoned(self) -> None:
        """This is a forked child, in which nothing is watched."""


def overriding(observers: Sequence[Observer], method: str) -> list[Callable[..., None]]:
    """This method of those observers that have one of their own."""
    return [getattr(one, method) for one in observers if getattr(type(one), method) is not getattr(Observer, method)]


class Patience:
    """Which places need not be looked at any more, since so many looks in a row found nothing there."""

    def __init__(self, looks: int = 16) -> None:
        self._looks = looks
        self._vain: dict[Stack, int] = {}

    def has_ended(self, place: Stack) -> bool:
        return self._vain.get(place, 0) >= self._looks

    def looked(self, place: Stack, found: bool) -> None:
        self._vain[place] = 0 if found else self._vain.get(place, 0) + 1


def tensors_in(values: Sequence[Any], depth: int = 2) -> list[torch.Tensor]:
    """The tensors among `values`, lists and tuples of them opened."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif depth and isinstance(value, (list, tuple)):
            found += tensors_in(value, depth - 1)
    return found
