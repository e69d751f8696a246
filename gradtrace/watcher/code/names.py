"""The user's names for tensors: which variable, attribute or container of the running frames holds them."""

from __future__ import annotations

import dis
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from inspect import CO_OPTIMIZED
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import torch

from gradtrace.watcher.code.frames import Frames

#: objects looked at in one search, and how deep attributes and containers are opened
_BUDGET = 20_000
_DEPTH = 3
#: what is looked at of the attributes of a class
_SHARED = (list, dict, deque, torch.Tensor)
#: a container longer than this is data, not a list of parameters
_LONG = 1_000


def variables(frame: FrameType) -> dict[str, Any]:
    """The frame's variables. Before Python 3.13 the interpreter keeps the dictionary of locals that it makes, and
    with it every value, until the frame ends: it is emptied, so that nothing of the user's lives longer.

    Where the user's code may hold that dictionary too, it can be neither emptied nor filled: nothing is known then.
    """
    code = frame.f_code
    if sys.version_info >= (3, 13) or not code.co_flags & CO_OPTIMIZED:
        return dict(frame.f_locals)
    if hands_out_locals(code):
        return {}
    found = dict(frame.f_locals)
    frame.f_locals.clear()
    return found


@lru_cache(maxsize=4_096)
def hands_out_locals(code: CodeType) -> bool:
    """Whether it calls `locals()` or `vars()`, `eval` or `exec`; methods of these names, `model.eval()`, do not."""
    if not {"locals", "vars", "eval", "exec"} & set(code.co_names):
        return False
    steps = list(dis.get_instructions(code))
    return any(
        step.argval in ("eval", "exec")
        or (step.argval in ("locals", "vars") and "CALL" in then.opname and not then.arg)
        for step, then in pairwise(steps)
        if step.opname == "LOAD_GLOBAL"
    )


def find(frame: FrameType | None, frames: Frames) -> dict[int, str]:
    """Names by `id()` of every tensor and module that the user's running code can name, the shortest road first.

    Outer frames come first: a model's parameters are called as the function that made it calls them.
    """
    return {id(value): name for name, value in reversed(list(search(_roots(frame, frames))))}


def tensors(frame: FrameType | None, frames: Frames) -> list[tuple[str, torch.Tensor]]:
    """Every tensor that the user's running code and its script can name."""
    return [(name, value) for name, value in everything(frame, frames) if isinstance(value, torch.Tensor)]


def value_of(text: str, scope: Mapping[str, Any], outer: Mapping[str, Any]) -> Any:
    """The value of a name or a chain of attributes, without running any code of the user's; None where there is
    none."""
    first, *attributes = text.split(".")
    value = scope.get(first, outer.get(first))
    for attribute in attributes:
        held = getattr(value, "__dict__", {})
        parts = (held, *(held.get(kind) or {} for kind in ("_parameters", "_buffers", "_modules")))
        value = next((part[attribute] for part in parts if attribute in part), None)
    return value


def around(frame: FrameType, scope: Mapping[str, Any], frames: Frames) -> Iterator[tuple[str, Any]]:
    """As `everything`, for a frame whose variables are known: from within a trace function they must not be emptied."""
    main = vars(sys.modules["__main__"])
    module = [] if frame.f_globals is main else _public(frame.f_globals)
    return search([*_public(main), *_roots(frame.f_back, frames), *module, *_public(scope)])


def _roots(frame: FrameType | None, frames: Frames) -> list[tuple[str, Any]]:
    roots: list[tuple[str, Any]] = []
    while frame is not None:
        if frames.is_user(frame.f_code.co_filename):
            roots[:0] = _public(variables(frame))
        frame = frame.f_back
    return roots


def _public(scope: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in scope.items() if not name.startswith("__")]


def everything(frame: FrameType | None, frames: Frames, depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """Every tensor and module that the user's running code can name, and that its script can, opened `depth` deep."""
    return search([*_public(vars(sys.modules["__main__"])), *_roots(frame, frames)], depth)


def search(roots: list[tuple[str, Any]], depth: int = _DEPTH) -> Iterator[tuple[str, Any]]:
    """Every tensor and module to be found from `roots`, breadth first, modules before all else.

    Ids are only compared while the objects are alive.
    """
    opened: set[int] = set()
    level = roots
    for _ in range(depth):
        deeper: list[tuple[str, Any]] = []
        for name, value in sorted(level, key=lambda pair: not isinstance(pair[1], torch.nn.Module)):
            if len(opened) > _BUDGET:
                return
            if isinstance(value, torch.Tensor):
                yield name, value
            elif id(value) not in opened:
                opened.add(id(value))
                if isinstance(value, torch.nn.Module):
                    yield from _of_module(name, value)
                deeper += _parts(name, value)
        level = deeper


def _of_module(name: str, module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    if "_modules" not in vars(module):  # its constructor has not called that of nn.Module yet
        return
    for path, child in module.named_modules():
        prefix = f"{name}.{path}" if path else name
        yield prefix, child
        # a plain attribute may hold a tensor as well, which is not registered
        for kind in (child._parameters, child._buffers, vars(child)):
            yield from ((f"{prefix}.{key}", one) for key, one in kind.items() if isinstance(one, torch.Tensor))


def _parts(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, type):
        shared = vars(value).items() if value.__module__ == "__main__" else ()
        return [(f"{name}.{key}", part) for key, part in shared if isinstance(part, _SHARED)]
    if isinstance(value, (str, bytes, int, float)) or value is None:
        return []
    if isinstance(value, dict) and len(value) <= _LONG:
        return [(f"{name}[{key!r}]", part) for key, part in value.items() if isinstance(key, (str, int))]
    if isinstance(value, (list, tuple, deque)) and len(value) <= _LONG:
        return [(f"{name}[{index}]", part) for index, part in enumerate(value)]
    if isinstance(value, partial):
        given = [(f"{name}.args[{index}]", part) for index, part in enumerate(value.args)]
        return [*given, *((f"{name}.{key}", part) for key, part in value.keywords.items())]
    held = getattr(value, "__dict__", None)
    if type(held) is dict and len(held) <= _LONG and not isinstance(value, type(sys)):
        return [(f"{name}.{key}", part) for key, part in held.items() if not key.startswith("_")]
    return []
