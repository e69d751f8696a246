"""Who reads a `.grad`: torch's own clipping, a GradScaler, code that only clears it, or code that uses it."""

from __future__ import annotations

import ast
import os
from types import CodeType, FrameType

import torch
from torch.amp import grad_scaler
from torch.nn.utils import clip_grad

from gradtrace.model.site import Site
from gradtrace.source import syntax
from gradtrace.watcher.code.frames import Frames, site_of

_CLIP, _SCALER = clip_grad.__file__, grad_scaler.__file__
_TORCH = os.path.dirname(torch.__file__) + os.sep
#: what is called on a gradient in order to clear it
_CLEARS = frozenset({"zero_", "detach_", "requires_grad_", "data"})
#: places remembered before the memory is started afresh
_MOST = 4_096


class Readers:
    """Remembers the places, since the same ones read again and again."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        # the code object is kept, so that its id stays its own
        self._known: dict[tuple[int, int], tuple[str, CodeType]] = {}

    def at(self, frame: FrameType) -> str:
        """ "clip", "scaler", "torch" or "clearing" (the gradient is not used), or "user"."""
        key = id(frame.f_code), frame.f_lasti
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            found = self._known[key] = self._decide(frame), frame.f_code
        return found[0]

    def _decide(self, frame: FrameType) -> str:
        file = frame.f_code.co_filename
        if file in (_CLIP, _SCALER):
            return "clip" if file == _CLIP else "scaler"
        if file.startswith(_TORCH):
            return "torch"
        return "clearing" if self._frames.is_user(file) and _only_cleared(site_of(frame)) else "user"


def _only_cleared(site: Site) -> bool:
    """Whether the gradient is only compared with None, set to zero or cut from a graph at `site`."""
    found = syntax.statement(site.path, site.line, site.column)
    if found is None:
        return False
    parents = {child: node for node in ast.walk(found) for child in ast.iter_child_nodes(node)}
    grads = [node for node in parents if isinstance(node, ast.Attribute) and node.attr == "grad"]
    here = [node for node in grads if (node.lineno, node.col_offset) == (site.line, site.column)]
    own = here or [node for node in grads if node.lineno == site.line]
    return bool(own) and all(_clears(node, parents) for node in own)


def _clears(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    parent = parents.get(node)
    if isinstance(parent, ast.Compare):
        return all(isinstance(one, (ast.Is, ast.IsNot)) for one in parent.ops)
    if not isinstance(parent, ast.Attribute) or parent.attr not in _CLEARS:
        return False
    return parent.attr != "data" or _clears(parent, parents)
