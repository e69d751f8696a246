"""Runs a script as `__main__` so that it finds everything as under plain `python`.

    program = load("train.py", ["--epochs", "3"])
    ended = program.run(watching, at_exit)

The script runs in a fresh module, with the `sys.argv` and the `sys.path` that `python` would have given it. How it
ended comes back as an `Ended`; an uncaught exception has then been printed as python prints it, without our frames.
"""

from __future__ import annotations

import builtins
import io
import linecache
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader, SourcelessFileLoader
from importlib.util import MAGIC_NUMBER, decode_source, find_spec
from pkgutil import get_importer
from traceback import format_exception_only
from types import CodeType, ModuleType
from typing import Any

from gradtrace.errors import GradtraceError, ScriptError
from gradtrace.host import heap
from gradtrace.host.leaving import Leaving
from gradtrace.host.recursion import own_limit
from gradtrace.host.tracebacks import chain, hide_our_frames
from gradtrace.model.finding import Ended

#: python puts no directory of the script on the path (`-P`, `-I`); 3.10 knows only `-I`
_SAFE_PATH = bool(getattr(sys.flags, "safe_path", sys.flags.isolated))


class StopRun(BaseException):
    """Raised inside the script to end the run early; no error of the script's."""


class Terminated(BaseException):
    """Raised inside the script by SIGTERM, which would end it without a report."""


@dataclass(frozen=True)
class Program:
    """A script that was found and is ready to run."""

    #: for people: the path as they gave it, `-m package.module` or `<stdin>`
    name: str
    #: where the user's code lies even if that is inside a library: directories, or the file of a lone `-m` module
    roots: tuple[str, ...]
    argv: tuple[str, ...]
    #: what python puts first on `sys.path`, if anything
    path_entry: str | None
    #: names the module's file, loader and so on, and gives its code
    _prepare: Callable[[ModuleType], CodeType]

    def run(
        self,
        watching: AbstractContextManager[object],
        at_exit: Callable[[Ended], int],
        on_error: Callable[[BaseException], None] = lambda error: None,
        used: Callable[[], bool] = lambda: False,
    ) -> Ended:
        """Runs the script; `watching` is entered just around its code, and `on_error` called, within it, with the
        exception by which it ends.

        `os._exit` in this process first calls `at_exit` and then leaves with the status that it returns; `os.exec*`
        calls it where the new program is not watched, or where the run was `used`: has shown something. In a child that
        the script forked, this does not return: it raises `SystemExit` with the child's status, so that the child ends
        as under python and without a report.

        `sys.argv`, `sys.path` and `__main__` stay the script's afterwards: its threads and atexit handlers still run,
        and what they pickle is looked up in `__main__`. A further run in this process replaces them by its own.

        Raises `ScriptError` where only importing the parent packages of `-m a.b` shows that it cannot start.
        """
        process = os.getpid()
        main = self._enter()
        with Leaving(at_exit, self.argv, used).announced():
            with watching, heap.frozen():
                with own_limit():
                    error = self._attempt(main)
                if error is not None:
                    on_error(error)
            ended = Ended("finished") if error is None else _ended_by(error)
        if os.getpid() != process:
            raise SystemExit(ended.status)
        return ended

    def _enter(self) -> ModuleType:
        main = ModuleType("__main__")
        vars(main)["__loader__"] = BuiltinImporter
        if sys.version_info < (3, 14):
            vars(main)["__annotations__"] = {}
        vars(main)["__builtins__"] = builtins
        sys.modules["__main__"] = main
        sys.argv[:] = self.argv
        _put_first(self.path_entry)
        return main

    def _attempt(self, main: ModuleType) -> BaseException | None:
        try:
            exec(self._prepare(main), vars(main))
        except GradtraceError:
            raise
        except BaseException as error:  # noqa: BLE001 - the script may end by anything
            return error
        return None


def load(what: str, arguments: Sequence[str], module: bool = False, text: str | None = None) -> Program:
    """Finds the script at the path `what` (`-` for stdin), or the module of that name, without running anything of it.
    `text` runs in the place of what the file says.

    Raises `ScriptError` where there is nothing that python could run.
    """
    if not module and (not what or "\0" in what):
        raise ScriptError(f"{what!r} is not the name of a script; name one, as in train.py")
    try:
        if module:
            return _load_module(what, arguments)
        if what == "-":
            return _load_stdin(arguments)
        if get_importer(what):
            return _load_directory(what, arguments)
        return _load_file(what, arguments, text)
    except FileNotFoundError as error:
        raise ScriptError(f"no script at {_absolute(what)}; check the path, or name a module after -m") from error
    except OSError as error:
        raise ScriptError(f"cannot read {what}: {error.strerror}; make it readable or name another script") from error


def package_roots(name: str) -> tuple[str, ...]:
    """The directories of an installed package, or the file of a module. Raises `ScriptError` where there is none."""
    spec = _find_top(name.partition(".")[0], _unless_safe(os.getcwd()))
    if spec is None:
        raise _no_module(name)
    return tuple(spec.submodule_search_locations or [spec.origin or ""])


def _load_file(path: str, arguments: Sequence[str], text: str | None = None) -> Program:
    with open(path, "rb") as file:
        source = file.read() if text is None else text.encode()
    filename = _absolute(path)
    if source.startswith(MAGIC_NUMBER):
        prepare: Callable[[ModuleType], CodeType] = partial(_prepare_compiled, filename=filename)
    else:
        prepare = _from_source(source, filename, SourceFileLoader("__main__", filename))
    # a link's neighbours are found beside its target
    roots = os.path.dirname(os.path.abspath(path)), os.path.dirname(os.path.realpath(path))
    return Program(path, roots, (path, *arguments), _unless_safe(roots[1]), prepare)


def _load_stdin(arguments: Sequence[str]) -> Program:
    if sys.stdin is None:
        raise ScriptError("cannot read the script from stdin, it is closed; name a script instead of -")
    prepare = _from_source(sys.stdin.buffer.read(), "<stdin>", BuiltinImporter)
    return Program("<stdin>", (), ("-", *arguments), _unless_safe(""), prepare)


def _load_directory(path: str, arguments: Sequence[str]) -> Program:
    """A directory, or a zip file, with a `__main__.py`."""
    directory = _absolute(path)
    spec = PathFinder.find_spec("__main__", [directory])
    if spec is None:
        raise ScriptError(f"{path} has no __main__.py that could be run; name a script in it")
    return Program(path, (directory,), (path, *arguments), directory, partial(_take_place, spec=spec))


def _load_module(name: str, arguments: Sequence[str]) -> Program:
    if "" in name.split("."):
        raise ScriptError(f"{name!r} is not the name of a module; name one as in -m package.module")
    path_entry = _unless_safe(os.getcwd())
    top = _find_top(name.partition(".")[0], path_entry)
    if top is None or ("." in name and top.submodule_search_locations is None):
        raise _no_module(name)
    roots = top.submodule_search_locations or [top.origin or ""]
    return Program(f"-m {name}", tuple(roots), ("-m", *arguments), path_entry, partial(_prepare_module, name=name))


def _find_top(name: str, path_entry: str | None) -> ModuleSpec | None:
    before = sys.path[:]
    _put_first(path_entry)
    try:
        return _find(name)
    finally:
        sys.path[:] = before


def _find(name: str) -> ModuleSpec | None:
    with suppress(ImportError, AttributeError, TypeError, ValueError):  # as runpy: all of them mean "not importable"
        return find_spec(name)
    return None


def _prepare_module(main: ModuleType, name: str) -> CodeType:
    spec = _locate(name)
    code = _take_place(main, spec)
    sys.argv[0] = spec.origin or ""
    return code


def _locate(name: str) -> ModuleSpec:
    """The module to run for `-m name`; imports the packages around it, as python does."""
    package, _, last = name.rpartition(".")
    if package:
        _import_parent(package, name)
    spec = _find(name)
    if spec is None and package and last == "__main__":
        raise ScriptError(f"{package} is a package without __main__.py; name a module in it, as in -m {package}.train")
    if spec is None:
        raise _no_module(name)
    return spec if spec.submodule_search_locations is None else _locate(f"{name}.__main__")


def _import_parent(package: str, name: str) -> None:
    try:
        __import__(package)
    except ImportError as error:
        if error.name and f"{package}.".startswith(f"{error.name}."):
            raise _no_module(name) from error
        raise  # the package was found; what it imports was not


def _no_module(name: str) -> ScriptError:
    if name.endswith(".py"):
        return ScriptError(f"no module named {name}; leave out -m to run a file, or .py to run a module")
    return ScriptError(f"no module named {name}; run in the directory that holds it, or install it")


def _take_place(main: ModuleType, spec: ModuleSpec) -> CodeType:
    """Makes `main` the module of `spec`, under its own name, and gives its code."""
    loader: Any = spec.loader
    with _must_parse(spec.origin or spec.name):
        code: CodeType | None = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        raise ScriptError(f"{spec.name} has no Python code that could be run; name a module written in Python")
    _remember(code.co_filename, loader.get_source(spec.name) or "")
    vars(main).update(__file__=spec.origin, __cached__=spec.cached, __loader__=loader)
    vars(main).update(__package__=spec.parent, __spec__=spec)
    return code


def _prepare_compiled(main: ModuleType, filename: str) -> CodeType:
    """For a .pyc file, which names the source that it was made from."""
    loader = SourcelessFileLoader("__main__", filename)
    try:
        code = loader.get_code("__main__")
    except (ImportError, EOFError, ValueError) as error:
        raise ScriptError(f"cannot run {filename}: {error}; name the .py file") from error
    assert code is not None
    vars(main).update(__file__=filename, __cached__=None, __loader__=loader)
    return code


def _from_source(source: bytes, filename: str, loader: object) -> Callable[[ModuleType], CodeType]:
    with _must_parse(filename):
        code = compile(source, filename, "exec", dont_inherit=True)
        _remember(filename, decode_source(source))

    def prepare(main: ModuleType) -> CodeType:
        vars(main).update(__file__=filename, __cached__=None, __loader__=loader)
        return code

    return prepare


def _remember(filename: str, source: str) -> None:
    """Keeps the source lines for reports, also of a script from stdin and of one that deletes itself."""
    if source:
        lines = io.StringIO(f"{source}\n" if not source.endswith("\n") else source).readlines()
        # no modification time: linecache then never looks whether the file is still there
        linecache.cache[filename] = (len(source), None, lines, filename)


@contextmanager
def _must_parse(filename: str) -> Iterator[None]:
    try:
        yield
    except SyntaxError as error:
        raise ScriptError(_syntax_message(error, filename)) from error
    except (ValueError, MemoryError, RecursionError) as error:
        reason = str(error) or "it is nested too deeply"
        raise ScriptError(f"{filename} is not Python that can be compiled: {reason}; fix it first") from error


def _syntax_message(error: SyntaxError, filename: str) -> str:
    place = f"{filename}:{error.lineno}" if error.lineno else filename
    if "codec" in error.msg or "encoding" in error.msg:
        return f"{place}: {error.msg}; save it as UTF-8, or declare its encoding as in `# -*- coding: latin-1 -*-`"
    text = (error.text or "").strip()
    if len(text) > 80:
        text = f"{text[:80]}…"
    return f"{place} is not Python: {error.msg}{f': `{text}`' if text else ''}; fix it first"


def _absolute(path: str) -> str:
    """As python makes `__file__`: nothing is normalised."""
    return os.path.join(os.getcwd(), path)


def _unless_safe(directory: str) -> str | None:
    return None if _SAFE_PATH else directory


def _put_first(path_entry: str | None) -> None:
    """Puts the entry where python put the one for our own start, if it did."""
    sys.path[: 0 if _SAFE_PATH else 1] = [] if path_entry is None else [path_entry]


def _ended_by(error: BaseException) -> Ended:
    """What python would make of an uncaught exception."""
    hide_our_frames(error)
    if any(isinstance(link, StopRun) for link in chain(error)):
        return Ended("stopped")
    if any(isinstance(link, Terminated) for link in chain(error)):
        return Ended("killed", 128 + signal.SIGTERM)
    if isinstance(error, SystemExit):
        return Ended("exit", _exit_status(error))
    status = _print_uncaught(error)
    if isinstance(error, KeyboardInterrupt):
        return Ended("interrupted", 130)
    return Ended("exception", status, _summary(error))


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    with suppress(AttributeError):  # stderr may be None
        sys.stderr.write(f"{error.code}\n")
    return 1


def _print_uncaught(error: BaseException) -> int:
    """Calls `sys.excepthook`, which may be the script's own; returns the exit status."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, "excepthook", None)
    if hook is None:  # the script deleted it
        sys.stderr.write("sys.excepthook is missing\n")
        hook = sys.__excepthook__
    try:
        hook(type(error), error, error.__traceback__)
    except SystemExit as leaving:
        return _exit_status(leaving)
    except BaseException as failure:  # noqa: BLE001 - python survives any failure of the hook
        hide_our_frames(failure)
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(failure), failure, failure.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(type(error), error, error.__traceback__)
    return 1


def _summary(error: BaseException) -> str:
    """`RuntimeError: message`; a syntax error's place, which is printed before, is left out."""
    return next(line for line in format_exception_only(error) if not line.startswith(" ")).strip()
