"""Runs scripts in forks of one process that has loaded torch: plainly, with a probe, and under `gradtrace check`."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import runpy
import signal
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutants import probe
from mutants.probe import Fact, Key

TIMEOUT = 120.0


@dataclass(frozen=True)
class Outcome:
    """What a plain run of a script did, as far as two runs are compared."""

    error: str = ""
    #: of all parameters, buffers and leaves, bit for bit
    digest: str = ""
    #: for each parameter of an optimizer the number of steps at which it had a gradient that was not 0
    fed: list[int] = field(default_factory=list)
    #: steps with a gradient that has NaN or infinity
    nonfinite: int = 0
    #: saved tensors: all, the most that were alive at a step, those alive at the end; and the hooks registered
    saved: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Script:
    """A file to run, and the directory that it runs in and imports from."""

    path: Path
    home: Path

    def enter(self) -> None:
        """Makes the process as python would make it for the script, but for the home of a mutant that lies elsewhere."""
        os.chdir(self.home)
        sys.path[0] = str(self.path.parent)
        if self.home != self.path.parent:
            sys.path.insert(1, str(self.home))


@dataclass(frozen=True)
class Found:
    """One finding of a report."""

    level: str
    rule: str
    line: int
    message: str = ""

    @property
    def is_alarm(self) -> bool:
        return self.level in ("error", "warning")


# -- one process for each run


def load() -> None:
    """Loads what every run needs, once. Nothing is computed here: a fork of a process that has computed may hang."""
    os.environ.update(NO_COLOR="1", COLUMNS="120", OMP_NUM_THREADS="1")
    import torch

    torch.set_num_threads(1)
    for name in ("torch._dynamo", "numpy", "torch.distributions"):  # each optimizer imports the first
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "one_step.py")
        script.write_text("import torch\nw = torch.ones(1, requires_grad=True)\n(w * w).sum().backward()\n")
        names, _ = forked(lambda: _modules_after_check(script), TIMEOUT)
    for name in names or ():
        importlib.import_module(name)


def _modules_after_check(script: Path) -> list[str]:
    """What the command line imports, found out in a process of its own."""
    _silence(Path(os.devnull), Path(os.devnull))
    _check_in_this_process(Script(script, script.parent))
    return [name for name in sys.modules if name.startswith("gradtrace.") and not name.endswith("__main__")]


def forked(work: Callable[[], Any], timeout: float) -> tuple[Any, str]:
    """The result of `work`, made in a fork: (result, ""), or (None, what went wrong)."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        pid = os.fork()
        if not pid:
            _become(work, result.name)
        error = _await(pid, timeout)
        if error:
            return None, error
        text = Path(result.name).read_text()
    return (json.loads(text), "") if text else (None, "no result")


def _become(work: Callable[[], Any], path: str) -> None:
    """The rest of a fork's life."""
    status = 0
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        value = work()
        Path(path).write_text(json.dumps(value))
    except BaseException:  # noqa: BLE001 -- whatever it is, this process ends here
        traceback.print_exc()
        status = 70
    finally:
        os._exit(status)


def _await(pid: int, timeout: float) -> str:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return f"ended with status {code}" if code else ""
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "timeout"


def parallel(
    tasks: Iterable[tuple[Any, Callable[[], Any]]], jobs: int, timeout: float
) -> Iterator[tuple[Any, Any, str]]:
    """(name, result, error) of each task, each in a fork of its own, `jobs` at a time, as they end."""
    with tempfile.TemporaryDirectory() as folder:
        waiting = iter(enumerate(tasks))
        running: dict[int, tuple[Any, Path, float]] = {}
        more = True
        while more or running:
            while more and len(running) < jobs:
                number, (name, work) = next(waiting, (0, (None, None)))
                if work is None:
                    more = False
                    break
                path = Path(folder, f"{number}.json")
                pid = os.fork()
                if not pid:
                    _become(work, str(path))
                running[pid] = name, path, time.monotonic() + timeout
            for pid in [*running]:
                done, status = os.waitpid(pid, os.WNOHANG)
                name, path, end = running[pid]
                if done:
                    del running[pid]
                    code = os.waitstatus_to_exitcode(status)
                    failed = code or not path.exists()
                    yield (name, None, f"status {code}") if failed else (name, json.loads(path.read_text()), "")
                elif time.monotonic() > end:
                    os.killpg(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    del running[pid]
                    yield name, None, "timeout"
            time.sleep(0.01)


def _silence(out: Path, err: Path) -> None:
    """Standard input is empty, and both outputs go to files."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, path in ((1, out), (2, err)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(opened, number)
        os.close(opened)


# -- under gradtrace


def _check_in_this_process(script: Script) -> int:
    script.enter()
    sys.argv = ["gradtrace", "check", "--format", "json", str(script.path)]
    status = 0
    try:
        runpy.run_module("gradtrace", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    sys.stdout.flush()
    return status


def check(script: Script, timeout: float = TIMEOUT) -> tuple[list[Found], str]:
    """The findings of `gradtrace check` on a script, in the order of the report; and why there is no report, if so."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")

        def work() -> int:
            _silence(out, err)
            return _check_in_this_process(script)

        _, error = forked(work, timeout)
        text = out.read_text() if out.exists() else ""
        trouble = err.read_text()[-300:] if err.exists() else ""
    try:
        report = json.loads(text)
    except ValueError:
        return [], error or f"no report: {trouble}"
    findings = [Found(f["level"], f["rule"], f.get("line") or 0, f.get("message") or "") for f in report["findings"]]
    return findings, error


# -- plainly


def _run_as_main(code: types.CodeType, script: Script, names: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Runs code as `__main__`: what it raised, in words, and its names."""
    script.enter()
    sys.argv = [str(script.path)]
    module = types.ModuleType("__main__")
    module.__file__ = str(script.path)
    vars(module).update(names)
    sys.modules["__main__"] = module
    try:
        exec(code, vars(module))
    except SystemExit as ended:
        return (f"SystemExit: {ended.code}" if ended.code else ""), vars(module)
    except BaseException as error:  # noqa: BLE001 -- how the script ended is a fact to compare
        return f"{type(error).__name__}: {error}"[:300], vars(module)
    return "", vars(module)


def plain(script: Script, memory: bool = False, timeout: float = TIMEOUT) -> Outcome:
    """What a script does without gradtrace. With `memory` its saved tensors are counted, which turns off torch's own
    check for writes in place: compare errors and parameters of runs without it."""
    value, error = forked(lambda: _observe(script, memory), timeout)
    return Outcome(**value) if value else Outcome(error=error)


def _observe(script: Script, memory: bool) -> dict[str, Any]:
    import torch
    from torch.nn.modules import module as modules
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.utils.hooks import RemovableHandle

    _silence(Path(os.devnull), Path(os.devnull))
    kept: dict[int, Any] = {}
    fed: dict[int, int] = {}
    ledger = _Saved()
    nonfinite = 0

    def keep(_module: Any, _name: str, tensor: Any) -> None:
        if tensor is not None:
            kept[id(tensor)] = tensor

    def stepped(optimizer: Any, *_: Any) -> None:
        nonlocal nonfinite
        ledger.at_step()
        broken = False
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                kept[id(parameter)] = parameter
                grad = parameter.grad
                fed.setdefault(id(parameter), 0)
                fed[id(parameter)] += bool(grad is not None and grad.any())
                broken = broken or bool(grad is not None and not grad.isfinite().all())
        nonfinite += broken

    modules.register_module_parameter_registration_hook(keep)
    modules.register_module_buffer_registration_hook(keep)
    register_optimizer_step_post_hook(stepped)
    code = compile(script.path.read_text(), str(script.path), "exec", dont_inherit=True)
    hooks = RemovableHandle.next_id
    if memory:
        with torch.autograd.graph.saved_tensors_hooks(ledger.pack, ledger.unpack):
            error, names = _run_as_main(code, script, {})
    else:
        error, names = _run_as_main(code, script, {})
    hooks = RemovableHandle.next_id - hooks
    for value in names.values():
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, torch.Tensor) and item.requires_grad and item.is_leaf:
                kept[id(item)] = item
    digest = hashlib.sha256()
    with torch.no_grad():
        for tensor in kept.values():
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                digest.update(tensor.detach().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    saved = [ledger.total, ledger.peak, ledger.alive, hooks]
    return {
        "error": error,
        "digest": digest.hexdigest(),
        "fed": [*fed.values()],
        "nonfinite": nonfinite,
        "saved": saved,
    }


class _Saved:
    """Counts the tensors that operations save for their backward."""

    def __init__(self) -> None:
        self.total = self.alive = self.peak = 0

    def at_step(self) -> None:
        self.peak = max(self.peak, self.alive)

    def pack(self, tensor: Any) -> Any:
        self.total += 1
        return _Packed(tensor.detach(), self)

    def unpack(self, packed: Any) -> Any:
        return packed.tensor


class _Packed:
    """One saved tensor: counted as long as it lives."""

    def __init__(self, tensor: Any, ledger: _Saved) -> None:
        self.tensor, self.ledger = tensor, ledger
        ledger.alive += 1

    def __del__(self) -> None:
        self.ledger.alive -= 1


def facts(script: Script, timeout: float = TIMEOUT) -> tuple[dict[Key, Fact], str]:
    """What the expressions of a script are; and what went wrong."""

    def work() -> list[list[Any]]:
        _silence(Path(os.devnull), Path(os.devnull))
        code, observer = probe.instrumented(script.path.read_text(), str(script.path))
        assert isinstance(code, types.CodeType)
        _run_as_main(code, script, {"__note__": observer.note})
        return probe.as_plain(observer.facts)

    value, error = forked(work, timeout)
    return probe.from_plain(value or []), error
