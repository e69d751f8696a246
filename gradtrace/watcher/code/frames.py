"""Which frames are the user's, and where in the source each of them is."""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import TypeAlias

import torch

import gradtrace
from gradtrace.host.script import Program
from gradtrace.host.tracebacks import entries
from gradtrace.model.site import Site, Stack
from gradtrace.source import texts
from gradtrace.watcher.compat import MODULE_CALL

#: below this frame lies our own start: the launcher in a user's `bin` directory is no code of theirs
START = Program._attempt.__code__
_PACKAGE = os.path.dirname(gradtrace.__file__)
_PACKAGE_DIRECTORIES = tuple(os.sep + name + os.sep for name in ("site-packages", "dist-packages"))
#: line, end line, column and end column of an instruction
_Position: TypeAlias = tuple[int | None, int | None, int | None, int | None]
#: code objects with the places of their instructions, and how many of them are kept
_decoded: dict[int, tuple[CodeType, list[_Position]]] = {}
_DECODED = 64
#: distinct stacks remembered before the memory is started afresh: a run that compiles code for ever must not grow
_MOST = 50_000


def _library_roots() -> set[str]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    paths = {sysconfig.get_path(name) for name in names} | {os.path.dirname(torch.__file__), _PACKAGE}
    return {os.path.realpath(path) + os.sep for path in paths} | {path + os.sep for path in paths}


class Frames:
    """Turns a live frame into a `Stack`, quickly where the same calls come again.

    `user_roots` are directories that hold the user's code even though they lie inside a library directory; `launchers`
    are files that are none of it, though they look like it: of who runs the user's code.
    """

    def __init__(self, user_roots: Iterable[str] = (), launchers: Iterable[str] = ()) -> None:
        self._user_roots = tuple(os.path.abspath(root) + os.sep for root in user_roots)
        self._library_roots = tuple(_library_roots())
        self._users: dict[str, bool] = dict.fromkeys(launchers, False)
        self._stacks: dict[tuple[int, ...], Stack] = {}
        # whether each is the body of a custom Function; keeps the code objects alive whose ids stand in the keys
        self._codes: dict[int, tuple[CodeType, bool]] = {}

    def is_user(self, filename: str) -> bool:
        known = self._users.get(filename)
        if known is None:
            known = self._users[filename] = self._decide(filename)
        return known

    def user_files(self) -> list[str]:
        """The user's files in which code was seen to run."""
        return [os.path.abspath(name) for name, user in self._users.items() if user and not name.startswith("<")]

    def _decide(self, filename: str) -> bool:
        if filename.startswith("<"):
            return filename == "<stdin>" or filename.startswith("<ipython")
        path = os.path.abspath(filename)

        def longest(roots: Iterable[str]) -> int:
            return max((len(root) for root in roots if path.startswith(root)), default=0)

        return longest(self._user_roots) >= max(longest(self._library_roots), _installed(path))

    def stack(self, frame: FrameType | None) -> Stack:
        """The user's frames from `frame` outwards, innermost first.

        What runs inside a custom Function counts as the line that applied it: that is where its node belongs.
        """
        users = self._users
        key: list[int] = []
        at = frame
        while at is not None:
            code = at.f_code
            user = users.get(code.co_filename)
            if user is None:
                user = self.is_user(code.co_filename)
            if user:
                key += (id(code), at.f_lasti)
            elif code is MODULE_CALL:
                key.append(-1)
            elif code is START:
                break
            at = at.f_back
        found = self._stacks.get(tuple(key))
        return self._learn(tuple(key), frame) if found is None else found

    def forget(self) -> None:
        """The watch is over: lets go of the code objects."""
        self._stacks.clear()
        self._codes.clear()
        _decoded.clear()

    def raised_at(self, error: BaseException) -> Stack:
        """The user's frames in which an exception was raised, innermost first."""
        users = [at for at in entries(error.__traceback__) if self.is_user(at.tb_frame.f_code.co_filename)]
        return tuple(site_of(at.tb_frame, at.tb_lasti) for at in reversed(users))

    def _learn(self, key: tuple[int, ...], frame: FrameType | None) -> Stack:
        sites: list[Site] = []
        while frame is not None:
            code = frame.f_code
            if self._is_function_body(code):
                sites.clear()
            elif self.is_user(code.co_filename):
                sites.append(site_of(frame))
            elif code is MODULE_CALL and sites:
                sites[-1] = _as_module_call(sites[-1])
            elif code is START:
                break
            frame = frame.f_back
        if len(self._stacks) >= _MOST:
            self._stacks.clear()
            self._codes.clear()
            return tuple(sites)
        return self._stacks.setdefault(key, tuple(sites))

    def _is_function_body(self, code: CodeType) -> bool:
        """Whether this is `forward` or `setup_context` of a custom Function. Since PyTorch 2.14 no Python frame of
        `Function.apply` stands between it and the line that applied the Function."""
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = code, code in _function_bodies()
        return known[1]


def _installed(path: str) -> int:
    """How much of a path leads to a directory of installed packages, of whichever environment: PYTHONPATH and .pth files
    bring in those of others."""
    ends = [path.rfind(name) + len(name) for name in _PACKAGE_DIRECTORIES if name in path]
    return max(ends, default=0)


def _function_bodies() -> set[CodeType]:
    """The code of `forward` and `setup_context` of every custom Function, that of its decorators included."""
    found = set()
    kinds: list[type] = [torch.autograd.Function]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        for name in ("forward", "setup_context"):
            function = inspect.getattr_static(kind, name, None)
            while function is not None:
                code = getattr(function, "__code__", None)
                if isinstance(code, CodeType):
                    found.add(code)
                function = getattr(function, "__wrapped__", None)
    return found


def path_of(code: CodeType) -> str:
    """The file of some code, as sites name it."""
    return code.co_filename if code.co_filename.startswith("<") else os.path.abspath(code.co_filename)


def site_of(frame: FrameType, at: int | None = None) -> Site:
    """Where a frame is, or was at its instruction `at`."""
    code, at = frame.f_code, frame.f_lasti if at is None else at
    function = getattr(code, "co_qualname", code.co_name)
    path = path_of(code)
    if sys.version_info >= (3, 11):
        found, end_line, column, end_column = _positions(code)[at // 2]
        line = found or frame.f_lineno
        column = texts.characters(path, line, column)
        end_column = texts.characters(path, end_line or line, end_column)
        return Site(path, line, function, column, end_line, end_column)
    return Site(path, frame.f_lineno, function)


def _positions(code: CodeType) -> list[_Position]:
    """The place in the source of each instruction. Kept for the code met last: to find one, Python decodes all before
    it, which a module of thousands of lines would pay again at each of them."""
    # by identity: to compare code objects, Python compares all that is in them
    known = _decoded.get(id(code))
    if known is None:
        if len(_decoded) >= _DECODED:
            del _decoded[next(iter(_decoded))]
        known = _decoded[id(code)] = code, list(code.co_positions())
    return known[1]


def _as_module_call(site: Site) -> Site:
    return site._replace(in_module_call=True)
