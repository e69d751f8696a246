"""Which class of the user's, or which variable, holds a module: there the source says where it was constructed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

import torch

from gradtrace.model.site import Held
from gradtrace.watcher.code import names
from gradtrace.watcher.code.frames import Frames

Module = torch.nn.Module


def holder(module: Module, frame: FrameType | None, frames: Frames) -> Held | None:
    """The nearest holder whose source is the user's, looked for from the running frames."""
    while frame is not None:
        if frames.is_user(frame.f_code.co_filename):
            for name, root in _roots(names.variables(frame)):
                path = next((path for path, one in root.named_modules() if one is module), None)
                if path:
                    return _nearest(root, path, frames) or _held(frame.f_code.co_filename, "", f"{name}.{path}")
        frame = frame.f_back
    return None


def only_in_sequential(kind: str, frame: FrameType | None, frames: Frames) -> Held | None:
    """What holds the only module of this class in an `nn.Sequential` that the running frames can name."""
    found: dict[int, Module] = {}
    at = frame
    while at is not None:
        if frames.is_user(at.f_code.co_filename):
            for _, root in _roots(names.variables(at)):
                rows = (one for one in root.modules() if isinstance(one, torch.nn.Sequential))
                found |= {id(one): one for row in rows for one in row if type(one).__name__ == kind}
        at = at.f_back
    return holder(found.popitem()[1], frame, frames) if len(found) == 1 else None


def _roots(scope: dict[str, Any]) -> Iterator[tuple[str, Module]]:
    """The modules among variables and among their attributes."""
    for name, value in scope.items():
        if isinstance(value, Module):
            yield name, value
        elif not isinstance(value, (type, ModuleType)):
            held = getattr(value, "__dict__", None)
            parts = held.items() if type(held) is dict else ()
            yield from ((f"{name}.{key}", part) for key, part in parts if isinstance(part, Module))


def _nearest(root: Module, path: str, frames: Frames) -> Held | None:
    """The innermost module on the way whose class is the user's."""
    found, at = None, root
    parts = path.split(".")
    for depth, part in enumerate(parts):
        code = getattr(type(at).__init__, "__code__", None)
        if code is not None and frames.is_user(code.co_filename):
            kind = type(at).__init__.__qualname__.split(".")[-2:][0]
            found = _held(code.co_filename, kind, ".".join(("self", *parts[depth:])))
        at = at._modules[part] or at
    return found


def _held(path: str, kind: str, expression: str) -> Held:
    return Held(path if path.startswith("<") else os.path.abspath(path), kind, expression)
