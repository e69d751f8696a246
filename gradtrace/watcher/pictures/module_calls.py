"""Which calls of modules are running: each call of an `nn.Module` gets a number, and the path of the module."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import FrameType, MethodType
from typing import Any

import torch

from gradtrace.model.graph import Call
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import MODULE_CALL

#: calls remembered for the pictures
_KEEP = 200_000


@dataclass(frozen=True, slots=True)
class _Seen:
    """A call, by the identity of the outermost module that was running and the path below that."""

    outermost: int
    path: str
    kind: str
    inside: int


@dataclass(frozen=True, slots=True)
class _RunningCall:
    """A call that may still run."""

    number: int
    outermost: weakref.ref[torch.nn.Module]
    module: weakref.ref[torch.nn.Module]
    #: the bound `forward`, which nothing but the frame of the call holds; None where it is another kind of callable
    forward: weakref.ref[Any] | None

    def is_of(self, frame: FrameType) -> bool:
        """Whether a frame at the address of ours is ours."""
        if self.forward is not None:
            return self.forward() is not None
        return self.module() is names.variables(frame)["self"]


class ModuleCalls:
    """Numbers the calls of modules, without a hook and without keeping a module or a frame alive."""

    def __init__(self) -> None:
        #: by the identity of the frame
        self._running: dict[int, _RunningCall] = {}
        self._seen: dict[int, _Seen] = {}
        self._last = 0
        self._paths: dict[int, dict[int, str]] = {}

    def innermost(self, frame: FrameType | None) -> int:
        """The number of the innermost call in `frame` and its callers; 0 where no module is running."""
        entered: list[FrameType] = []
        running = None
        while frame is not None and running is None:
            if frame.f_code is MODULE_CALL:
                known = self._running.get(id(frame))
                running = known if known is not None and known.is_of(frame) else None
                if running is None:
                    entered.append(frame)
            frame = frame.f_back
        for one in reversed(entered):
            running = self._enter(one, running)
        return running.number if running is not None else 0

    def _enter(self, frame: FrameType, around: _RunningCall | None) -> _RunningCall:
        held = names.variables(frame)
        module, forward = held["self"], held.get("forward_call")
        outermost = (around.outermost() if around is not None else None) or module
        self._last += 1
        self._seen[self._last] = self._about(module, outermost, around.number if around is not None else 0)
        if len(self._seen) >= 2 * _KEEP:
            self._seen = {number: seen for number, seen in self._seen.items() if number > self._last - _KEEP}
        bound = weakref.ref(forward) if isinstance(forward, MethodType) else None
        running = _RunningCall(self._last, weakref.ref(outermost), weakref.ref(module), bound)
        self._running = {key: one for key, one in self._running.items() if one.forward is None or one.forward()}
        self._running[id(frame)] = running
        return running

    def _about(self, module: torch.nn.Module, outermost: torch.nn.Module, inside: int) -> _Seen:
        known = self._paths.get(id(outermost), {})
        if id(module) not in known:
            known = self._paths[id(outermost)] = {id(one): path for path, one in outermost.named_modules()}
        kind = type(module).__name__
        return _Seen(id(outermost), known.get(id(module), kind), kind, inside)

    def common(self, one: int, other: int) -> int:
        """The innermost call that both are, or ran in."""
        while one != other:
            one, other = (self._around(one), other) if one > other else (one, self._around(other))
        return one

    def _around(self, number: int) -> int:
        return self._seen[number].inside if number in self._seen else 0

    def described(self, numbers: Iterable[int], modules: Mapping[int, str]) -> tuple[Call, ...]:
        """These calls and those they ran in; `modules` has the user's names of modules by identity."""
        wanted: set[int] = set()
        for number in numbers:
            while number in self._seen and number not in wanted:
                wanted.add(number)
                number = self._seen[number].inside
        return tuple(self._call(number, modules) for number in sorted(wanted))

    def _call(self, number: int, modules: Mapping[int, str]) -> Call:
        seen = self._seen[number]
        path = ".".join(part for part in (modules.get(seen.outermost, ""), seen.path) if part)
        return Call(number, path, seen.kind, seen.inside)
