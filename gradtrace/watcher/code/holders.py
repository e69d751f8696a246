"""Who holds the user's parameters: names, the modules on the way to each, and what these were made as."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from gradtrace.model.site import Site, Stack
from gradtrace.watcher.code import names
from gradtrace.watcher.code.frames import Frames

#: how deep objects are opened: a trainer's model's list of layers
_DEPTH = 5
_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict, torch.nn.ParameterList, torch.nn.ParameterDict)


@dataclass(frozen=True, slots=True)
class Holder:
    """A module that the user's running code can name, as plain values."""

    kind: str
    #: names of the constructors of its class and of the classes above, `Net.__init__`
    constructors: tuple[str, ...]
    #: the file of its class, if it is the user's
    path: str
    training: bool
    container: bool


@dataclass(slots=True)
class Holders:
    """What can be named at one moment: parameters by identity, modules by name. Holds no tensors and no modules."""

    names: dict[int, str] = field(default_factory=dict)
    modules: dict[str, Holder] = field(default_factory=dict)
    #: the outermost module in which a parameter is registered, by the parameter's identity
    roots: dict[int, str] = field(default_factory=dict)
    #: names of the outermost modules and of all that are registered in them
    registered: set[str] = field(default_factory=set)

    def above(self, name: str) -> list[str]:
        """The named modules on the way to a parameter, the outermost first."""
        cuts = [at for at, letter in enumerate(name) if letter in ".["]
        return [name[:at] for at in cuts if name[:at] in self.modules]

    def born(self, stack: Stack, name: str) -> Stack:
        """The frames of a birth from outside of the constructors of these modules: where the first of them was made."""
        inner = [one for key, one in self.modules.items() if key == name or key.startswith((f"{name}.", f"{name}["))]
        constructors = {text for one in inner for text in one.constructors}
        depth = max((at for at, site in enumerate(stack) if site.function in constructors), default=-1)
        return stack[depth + 1 :]


def look(frames: Frames, number_of: Callable[[torch.Tensor], int]) -> Holders:
    """Searches the user's running frames for modules, and for the tensors that have a number."""
    frame: FrameType | None = sys._getframe(1)
    found = Holders()
    for name, value in names.everything(frame, frames, _DEPTH):
        if isinstance(value, torch.nn.Module):
            if name not in found.modules:
                found.modules[name] = _holder(value, frames)
                if not found.above(name):
                    for one in value.parameters():
                        number = number_of(one)
                        if number:
                            found.roots.setdefault(number, name)
                    found.registered |= {f"{name}.{path}" if path else name for path, _ in value.named_modules()}
        elif isinstance(value, torch.Tensor):
            number = number_of(value)
            if number:
                found.names.setdefault(number, name)
    return found


_KINDS: dict[type, tuple[tuple[str, ...], str]] = {}


def _holder(module: torch.nn.Module, frames: Frames) -> Holder:
    kind = type(module)
    if kind not in _KINDS:
        classes = [one for one in kind.__mro__ if one not in (torch.nn.Module, object)]
        # Python 3.10 gives only the bare names of functions, which fit any class
        constructors = tuple(f"{one.__qualname__}.__init__" for one in classes)
        _KINDS[kind] = constructors, _file(kind, frames)
    constructors, path = _KINDS[kind]
    return Holder(kind.__name__, constructors, path, module.training, isinstance(module, _CONTAINERS))


def _file(kind: type, frames: Frames) -> str:
    code: Any = getattr(getattr(kind, "__init__", None), "__code__", None)
    path = code.co_filename if inspect.iscode(code) else ""
    return os.path.abspath(path) if path and frames.is_user(path) else ""


def at_line(path: str, line: int, end: int | None, function: str) -> Stack:
    """A place known from the source alone."""
    return (Site(path, line, function, None, end),)
