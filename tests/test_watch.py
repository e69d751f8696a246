"""Watching puts everything back, and whatever fails in it, the run that is watched goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo  # some releases add a warnings filter at its first import
import torch.nn.modules.module as modules
import torch.optim.optimizer as optimizers
from torch import nn
from torch.overrides import BaseTorchFunctionMode, _get_current_function_mode_stack

from gradtrace.host import script
from gradtrace.model.events import Backward, End, Event, Step
from gradtrace.model.truths import Truth
from gradtrace.watcher.core import mode
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.pictures.snapshot import Snapshots
from gradtrace.watcher.watch import Watch

TRAIN = """
import sys, torch
net = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.ones(2)).sum().backward()
    optimizer.step()
"""


def facts() -> dict[str, Any]:
    """What watching touches in this process."""
    return {
        "engine": (torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward),
        "functions": (torch.optim.Optimizer.add_param_group, torch.overrides.has_torch_function),
        "hooks": (dict(optimizers._global_optimizer_pre_hooks), dict(optimizers._global_optimizer_post_hooks)),
        "warnings": (warnings._showwarnmsg, warnings.filters[:]),  # type: ignore[attr-defined]
        "modules": (torch.typename, dict(modules._global_parameter_registration_hooks)),
        "process": (sys.excepthook, os._exit),
        "modes": _get_current_function_mode_stack(),
        "enabled": (torch.is_grad_enabled(), torch._C._is_torch_function_enabled()),
        "flags": (torch.are_deterministic_algorithms_enabled(), torch.is_anomaly_enabled()),
    }


def train(steps: int = 4) -> list[str]:
    """Some of everything that is watched; gives the losses."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = torch.optim.Adam(net.parameters())
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = net(torch.randn(2, 4)).square().mean()
        loss.backward()
        with torch.no_grad():
            losses.append(net(torch.ones(4)).item().hex())
        optimizer.step()
        losses.append(loss.item().hex())
    return losses


def fit() -> str:
    """A step with a closure."""
    weight = torch.ones(3, requires_grad=True)

    def closure() -> torch.Tensor:
        weight.grad = None
        loss = weight.square().sum()
        loss.backward()
        return loss

    return torch.optim.LBFGS([weight], max_iter=3).step(closure).item().hex()


def run(source: str, tmp_path: Path, **options: Any) -> Any:
    path = tmp_path / "train.py"
    path.write_text(source)
    return script.load(str(path), []).run(Watch(lambda event: None, **options), lambda ended: 0)


@pytest.fixture
def _process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts back what the run of a script leaves behind."""
    monkeypatch.setattr(sys, "argv", sys.argv[:])
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(autouse=True)
def _nothing_stays() -> Any:
    before = facts()
    yield
    assert facts() == before


@pytest.mark.usefixtures("_process")
@pytest.mark.parametrize(
    ("ending", "options", "how"),
    [
        ("", {}, "finished"),
        ("1 / 0", {}, "exception"),
        ("torch.mm(torch.ones(1), torch.ones(1))", {}, "exception"),
        ("net(torch.ones(3))", {}, "exception"),
        ("sys.exit(3)", {}, "exit"),
        ("raise KeyboardInterrupt", {}, "interrupted"),
        ("", {"stop_after": 2}, "stopped"),
        ("optimizer.step(lambda: 1 / 0)", {}, "exception"),
        ("optimizer.step(lambda: torch.ones(2).backward())", {}, "exception"),
        ("hooked = net(torch.ones(2)); hooked.register_hook(lambda g: 1 / 0); hooked.backward()", {}, "exception"),
        ("import warnings; warnings.resetwarnings(); warnings.simplefilter('error')", {}, "finished"),
    ],
)
def test_nothing_stays_installed(ending: str, options: dict[str, Any], how: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        assert run(TRAIN + ending, tmp_path, **options).how == how


@pytest.mark.parametrize("piece", ["enter_mode", "place_warnings", "begin"])
def test_nothing_stays_installed_where_entering_fails(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no")

    if piece == "enter_mode":
        monkeypatch.setattr(mode.WatchMode, "__enter__", fail)
    elif piece == "place_warnings":
        monkeypatch.setattr("gradtrace.watcher.core.warning_sites.placed", fail)
    else:
        monkeypatch.setattr("gradtrace.watcher.core.session.Session.begin", fail)
    before = facts()
    with pytest.raises(OSError, match="no"), Watch(lambda event: None):
        pass
    assert facts() == before


def test_a_mode_that_the_script_leaves_on_the_stack_stays_there() -> None:
    below, above = BaseTorchFunctionMode(), BaseTorchFunctionMode()
    with below:
        with Watch(lambda event: None):
            above.__enter__()
        assert _get_current_function_mode_stack() == [below, above]
        above.__exit__(None, None, None)


def test_whoever_wrapped_the_engine_later_keeps_it_and_hears_no_more() -> None:
    events: list[Event] = []
    engine = torch.autograd.graph._engine_run_backward
    with Watch(events.append):
        ours = torch.autograd._engine_run_backward
        theirs = torch.autograd._engine_run_backward = lambda *given, **named: ours(*given, **named)
    try:
        assert torch.autograd._engine_run_backward is theirs
        train()
        # what holds of a run is said at its end, also of one in which nothing was seen
        assert [type(event) for event in events if not isinstance(event, Truth)] == [End]
    finally:
        torch.autograd._engine_run_backward = engine


class TestErrorsOfOurs:
    PIECES = (
        "code.frames.Frames.stack",
        "core.trail.Trail.add",
        "graph.walk.visit",
        "code.names.find",
        "core.book.Book.use",
        "core.book.Book.after_backward",
        "core.steps.Steps._judge",
        "core.steps.Steps._use",
        "core.lineage.Origins._plain",
        "faults.growth.GrowthWatcher._look",
        "core.backward.BackwardCall.__init__",
        "core.backward.BackwardCall.finish",
        "core.session.Session.own",
    )

    @pytest.mark.parametrize("piece", PIECES)
    def test_do_not_reach_the_run(self, piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> None:
            raise LookupError("broken\nfor good")

        expected = train(), fit()
        monkeypatch.setattr(f"gradtrace.watcher.{piece}", fail)
        with Watch(lambda event: None) as watch:
            assert (train(), fit()) == expected
        (remark,) = watch.remarks
        assert remark.startswith("internal error in gradtrace while watching (LookupError: broken, at fail:")

    @pytest.mark.parametrize("snapshots", [True, False])
    def test_do_not_reach_the_run_if_nothing_works(self, snapshots: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        guarded = Session.guarded
        failed = []

        def fail(*_: Any) -> None:
            failed.append(1)
            raise LookupError("broken")

        monkeypatch.setattr(Session, "guarded", lambda self, work, *given: guarded(self, fail, *given))
        expected = train(), fit()
        with Watch(lambda event: None, snapshots=Snapshots() if snapshots else None) as watch:
            assert (train(), fit()) == expected
        assert len(failed) == 1
        assert len(watch.remarks) == 1

    def test_of_the_listener_do_not_reach_the_run(self) -> None:
        def listen(event: Event) -> None:
            raise LookupError(type(event).__name__)

        with Watch(listen) as watch:
            assert train() == train()
        assert len(watch.remarks) == 1

    @pytest.mark.parametrize("debug", [True, False])
    def test_show_their_traceback_on_demand(self, debug: bool, capsys: pytest.CaptureFixture[str]) -> None:
        with Watch(lambda event: [][1], debug=debug):
            train()
        shown = capsys.readouterr().err
        assert ("IndexError: list index out of range" in shown) is debug
        assert shown.count("Traceback") == debug

    def test_are_no_excuse_for_stopping_late(self) -> None:
        with pytest.raises(script.StopRun), Watch(lambda event: [][1], stop_after=2) as watch:
            train(4)
        assert watch.optimizer_steps == 2


class TestEvents:
    def test_come_from_the_watched_thread_alone(self) -> None:
        events: list[Event] = []
        with Watch(events.append) as watch:
            others = [threading.Thread(target=train) for _ in range(2)]
            for other in others:
                other.start()
            train(3)
            for other in others:
                other.join()
        assert (watch.backward_calls, watch.optimizer_steps) == (3, 3)
        assert [type(event) for event in events if isinstance(event, (Backward, Step, End))] == [Backward, Step] * 3 + [
            End
        ]

    def test_name_the_user_s_line(self) -> None:
        events: list[Event] = []
        with Watch(events.append):
            loss = torch.ones(2, requires_grad=True).sum()
            loss.backward()
        backward = next(event for event in events if isinstance(event, Backward))
        name = "test_name_the_user_s_line"  # before Python 3.11 code does not know its class
        assert (backward.root, backward.stack[0].function.removeprefix("TestEvents.")) == ("loss", name)

    def test_of_torch_func_are_not_ours(self) -> None:
        events: list[Event] = []
        with Watch(events.append) as watch:
            torch.func.grad(lambda x: x.square().sum())(torch.ones(3))
            torch.func.vmap(torch.func.jacrev(torch.sin))(torch.ones(2, 3))
        assert (watch.backward_calls, watch.remarks) == (0, ())


def test_a_step_may_be_given_anything() -> None:
    """Not only a closure."""

    class Odd(torch.optim.SGD):
        def step(self, model: nn.Module, scale: Callable[[], float] = float) -> Any:  # type: ignore[override]
            return len(list(model.parameters())), scale(), super().step()

    net = nn.Linear(2, 1)
    with Watch(lambda event: None) as watch:
        optimizer = Odd(net.parameters(), 0.1)
        assert (
            optimizer.step(net) == optimizer.step(model=net) == optimizer.step(net, scale=lambda: 0.0) == (2, 0.0, None)
        )
    assert watch.remarks == ()


def test_what_is_compiled_is_told() -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = torch.compile(lambda: weight.square().sum(), backend="eager")
    with Watch(lambda event: None) as watch:
        loss().backward()
    assert watch.unseen == (
        "torch.compile compiled 1 piece of code: what goes on inside was not seen, and no rule has judged it",
    )
    with Watch(lambda event: None) as watch:
        pass
    assert watch.unseen == ()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="an exception that is raised again keeps its traceback there")
@pytest.mark.parametrize("wrong", [lambda: torch.mm(torch.ones(1), torch.ones(1)), lambda: torch.ones(1)[3]])
@pytest.mark.parametrize("watching", [nullcontext, lambda: Watch(lambda event: None)])
def test_a_traceback_that_the_script_catches_has_no_frame_of_ours(wrong: Any, watching: Any) -> None:
    with watching():
        try:
            wrong()
        except (RuntimeError, IndexError) as error:
            functions = [entry.name for entry in traceback.extract_tb(error.__traceback__)]
    assert functions == ["test_a_traceback_that_the_script_catches_has_no_frame_of_ours", "<lambda>"]


LETS_GO = """\
import gc, weakref
import torch
from gradtrace.watcher.watch import Watch

def train():
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    @torch.compile(backend="eager")
    def step():
        optimizer.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()

    step()
    return step

watch = Watch(lambda event: None)
with watch:
    kept = train()
gone = weakref.ref(watch)
del watch
gc.collect()
print(gone() is None)
"""


def test_nothing_that_torch_loaded_meanwhile_keeps_the_watch_alive() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", LETS_GO], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr
