"""`gradtrace debug` and `check --pdb`, in a terminal: keys go in, and what is shown comes out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Runner
from terminal import Terminal

CUT = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        z = torch.tanh(self.encoder(x)).detach()
        return self.head(z)

def train(model, optimizer):
    for step in range(6):
        x = torch.randn(6, 4)
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train(model, optimizer)
print("the script is done")
"""
#: a fault that is an error at the second step, in line 11
STALE = """\
import torch

def train(w, optimizer):
    scale = 1.0
    for step in range(4):
        loss = (w * scale).pow(2).sum()
        print("step", step, "scale", scale)
        if step == 0:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return scale

w = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
print("scale at the end", train(w, optimizer))
"""

Start = Callable[..., Terminal]


@pytest.fixture
def start(gradtrace: Runner) -> Iterator[Start]:
    opened: list[Terminal] = []

    def run(*arguments: str, command: tuple[str, ...] = ()) -> Terminal:
        words = [sys.executable, *(command or ("-m", "gradtrace")), *arguments]
        opened.append(Terminal(words, gradtrace.directory, gradtrace.environment))
        return opened[-1]

    yield run
    for one in opened:
        one.close()


def test_it_stops_at_the_first_error_in_the_users_frame(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", gradtrace.write(STALE))
    shown = terminal.wait_for("(Pdb) ")
    assert "stopped: error[stale-grad] at train.py:" in shown
    assert "train.py(11)train()\n-> optimizer.step()" in shown
    where = terminal.ask("w")
    assert "train.py(16)<module>()" in where
    assert "gradtrace" not in where
    assert "torch" not in where
    assert terminal.ask("p step").endswith("1\n(Pdb) ")
    assert "error[stale-grad]" in terminal.ask("findings")
    terminal.type("q")
    status, report = terminal.end()
    assert status == 1
    assert "error[stale-grad]" in report
    assert "the script was stopped early" in report
    assert "scale at the end" not in report
    assert terminal.is_as_it_was


def test_what_is_typed_changes_the_variables_and_the_run_goes_on(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", gradtrace.write(STALE))
    terminal.wait_for("(Pdb) ")
    terminal.ask("scale = 3.0")
    assert "`scale` is not a tensor but of type float" in terminal.ask("graph scale")
    terminal.type("c")
    status, shown = terminal.end()
    assert status == 1
    assert "step 3 scale 3.0" in shown
    assert "scale at the end 3.0" in shown
    assert "the script finished" in shown


def test_the_commands_tell_of_gradients(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "unreached-parameter", gradtrace.write(CUT))
    assert "stopped: error[unreached-parameter] at train.py:11" in terminal.wait_for("(Pdb) ")
    assert "model.encoder.weight  [8, 4]  grad None" in terminal.ask("grads")
    assert "cuts the path to the loss" in terminal.ask("why encoder.weight")
    assert "detach() at train.py:11" in terminal.ask("path encoder.weight")
    shown = terminal.ask("cuts")
    assert "detach() at line 11, cuts off TanhBackward0: z = torch.tanh(self.encoder(x)).detach()" in shown
    assert "no path to encoder.weight, encoder.bias" in shown
    assert "◆ head.weight" in terminal.ask("graph")
    assert "TanhBackward0" in terminal.ask("graph torch.tanh(model.encoder(x))")
    assert "saved for backward" in terminal.ask("saved")
    assert "no difference between the previous iteration and this one" in terminal.ask("diff")
    assert "diff takes no name" in terminal.ask("diff x")
    assert "NameError" in terminal.ask("graph nothing")
    assert "did you mean head.weight" in terminal.ask("path head.wieght")
    assert "the paths from the loss to a parameter" in terminal.ask("help")
    assert "help explains them" not in terminal.ask("help path")
    terminal.type("q")
    assert terminal.end()[0] == 1


def test_a_variable_that_is_called_like_a_command_can_be_assigned(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "step", gradtrace.write(STALE))
    terminal.wait_for("(Pdb) ")
    terminal.ask("path = [5, 6]")
    assert terminal.ask("path[1]").endswith("6\n(Pdb) ")
    assert terminal.ask("!path").endswith("[5, 6]\n(Pdb) ")
    terminal.type("q")
    terminal.end()


def test_it_stops_before_backward_calls_and_steps_into_the_users_code(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "backward", gradtrace.write(CUT))
    shown = terminal.wait_for("(Pdb) ")
    assert "stopped: before `loss.backward()`, backward call 1" in shown
    assert "-> loss.backward()" in shown
    assert "grad None" in terminal.ask("p 'grad', model.head.weight.grad").replace("'grad', ", "grad ")
    assert "saves self [6, 2]" in terminal.ask("graph loss")
    assert "-> optimizer.step()" in terminal.ask("n")
    assert "grad None" in terminal.ask("grads encoder")
    assert "no optimizer has made a step yet" in terminal.ask("why head.bias")
    assert "-> for step in range(6)" in terminal.ask("n")
    terminal.ask("n")
    terminal.ask("n")
    assert "forward()" in terminal.ask("s")
    assert "-> z = torch.tanh" in terminal.ask("n")
    assert "train()" in terminal.ask("u")
    assert "backward call 2" in terminal.ask("c")
    terminal.type("until step")
    assert "stopped: before the step of SGD, step 2" in terminal.wait_for("(Pdb) ")
    assert "backward call 3" in terminal.ask("c")
    terminal.type("q")
    assert terminal.end()[0] in (0, 1)


def test_a_line_and_a_rule_are_reasons_to_stop(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "train.py:12", "--at", "stale-grad", gradtrace.write(STALE))
    assert "stale-grad" in terminal.wait_for("(Pdb) ")
    assert "-> return scale" in terminal.ask("c")
    terminal.type("c")
    assert "scale at the end 1.0" in terminal.end()[1]


@pytest.mark.parametrize(
    ("at", "complaint"),
    [
        ("backwards", "did you mean backward?"),
        ("train.py:x", "give a file and a line"),
        ("other.py:3", "there is no file other.py"),
        ("train.py:900", "train.py has 16 lines"),
    ],
)
def test_what_cannot_be_stopped_at_is_said(gradtrace: Runner, at: str, complaint: str) -> None:
    done = gradtrace.alone("debug", "--at", at, gradtrace.write(STALE))
    assert (done.status, done.out) == (2, "")
    assert complaint in done.err


def test_it_says_how_to_get_to_the_line_to_blame(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "unreached-parameter", gradtrace.write(CUT))
    shown = terminal.wait_for("(Pdb) ")
    assert (
        "train.py:11 has already run: to look around there, type `tbreak train.py:11` and `c` if it runs again" in shown
    )
    assert "-> optimizer.step()" in shown
    terminal.ask("tbreak train.py:11")
    assert "-> z = torch.tanh(self.encoder(x)).detach()" in terminal.ask("c")
    assert "AddmmBackward0" in terminal.ask("graph self.encoder(x)")
    terminal.type("q")
    terminal.end()
    terminal = start("debug", gradtrace.write(STALE))
    assert "has already run" not in terminal.wait_for("(Pdb) ")
    terminal.type("q")
    terminal.end()


NEVER = """\
import sys
import torch

def train(w, optimizer, window):
    for i in range(6):
        (w * w).sum().backward()
        if (i + 1) % window == 0:
            optimizer.step()
            optimizer.zero_grad()

w = torch.ones(2, requires_grad=True)
train(w, torch.optim.SGD([w], lr=0.1), window=8)
print("done")
"""


@pytest.mark.parametrize("ending", ["", "sys.exit(0)"])
def test_what_is_known_at_the_end_alone_stops_there(gradtrace: Runner, start: Start, ending: str) -> None:
    terminal = start("debug", gradtrace.write(NEVER + ending))
    shown = terminal.wait_for("(Pdb) ")
    assert "done" in shown
    assert "stopped: at the end of the script, error[never-stepped] at train.py:7" in shown
    assert "train.py:7 has already run: to look around there, start with `--at train.py:7`" in shown
    assert "<module>()" in terminal.ask("w")
    assert "grad 17, 12 of the weight" in terminal.ask("grads")
    shown = terminal.ask("why w")
    assert "w  [2]  held by SGD" in shown
    assert "no step of `SGD` ever ran" in shown
    assert "error[never-stepped]" in terminal.ask("findings")
    assert "AccumulateGrad" in terminal.ask("p (w * 2).grad_fn.next_functions[0][0]")
    assert "NameError" in terminal.ask("call")
    terminal.type("q")
    status, report = terminal.end()
    assert status == 1
    assert report.count("error[never-stepped]") == 1
    assert "the script finished" in report or "exit" in report
    assert "(Pdb)" not in report
    assert terminal.is_as_it_was


def test_a_script_that_fails_has_no_end_to_stop_at(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", gradtrace.write(NEVER + "raise ValueError('no')\n"))
    assert "stopped: ValueError: no" in terminal.wait_for("(Pdb) ")
    terminal.type("c")
    assert "stopped:" not in terminal.end()[1]


CHANGES = """\
import torch

def loss_of(w, x):
    return (x * w).pow(2).sum()

class Trainer:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.losses = []
        self.parts = {"cut": None}

    def step(self, x):
        self.losses.append(self.model(x).pow(2).mean())
        self.parts["cut"] = self.losses[-1].detach() + 1
        self.optimizer.zero_grad()
        self.losses[-1].backward()
        self.optimizer.step()

trainer = Trainer()
for size in (4, 4, 3):
    trainer.step(torch.ones(size, 2))
"""


def test_the_last_graph_is_that_of_the_last_call(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "step", gradtrace.write(CHANGES))
    terminal.wait_for("(Pdb) ")
    assert "leaf, grad None" in terminal.ask("graph")
    terminal.ask("c")
    assert "self.losses[-1] = " in terminal.ask("path 0.weight")
    assert "no difference" in terminal.ask("diff")
    terminal.ask("c")
    assert "[3, 1]" in terminal.ask("graph")
    assert "[4, 1]" in terminal.ask("diff")
    terminal.type("q")
    terminal.end()


def test_a_backward_call_that_finds_a_freed_graph_shows_it(gradtrace: Runner, start: Start) -> None:
    script = "import torch\nw = torch.ones(2, requires_grad=True)\nloss = (w * w).sum()\nfor i in range(2):\n    loss.backward()\n"
    terminal = start("debug", gradtrace.write(script))
    assert "error[freed-graph]" in terminal.wait_for("(Pdb) ")
    assert "already freed" in terminal.ask("graph")
    terminal.type("q")
    terminal.end()


def test_expressions_name_tensors_parameters_and_modules(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "train.py:16", gradtrace.write(CHANGES))
    terminal.wait_for("(Pdb) ")
    assert "as in `path 0.weight from loss`" in terminal.ask("path 0.weight")
    assert "◆ trainer.model.0.weight" in terminal.ask("path 0.weight from self.losses[-1]")
    assert "as in `cuts loss`" in terminal.ask("cuts")
    assert "this graph has no cut in it" in terminal.ask("cuts self.losses[-1]")
    assert "no graph: it does not require grad; cut off by detach()" in terminal.ask("graph self.parts['cut']")
    assert "as in `graph self.losses[-1]`" in terminal.ask("graph self.losses")
    assert "as in `graph self.parts['cut']`" in terminal.ask("graph self.parts")
    terminal.ask("c")
    for name in (
        "self.model[0].weight",
        "model[0].weight",
        "0.weight",
        "0.*",
        "self.model[0]",
        "next(self.model.parameters())",
    ):
        shown = terminal.ask(f"why {name}")
        assert "model.0.weight  [2, 2]" in shown, name
        assert "model.1.weight  [" not in shown, name
    assert "trainer.model.1.bias  [1]" in terminal.ask("why self.model")
    assert "is computed, not a parameter; `graph self.losses[-1]` shows" in terminal.ask("why self.losses[-1]")
    assert "cut off by detach()" in terminal.ask("path self.parts['cut']")
    assert "no parameter of this run is called 'nothing'" in terminal.ask("why nothing")
    assert "no parameter in sight is called 'nothing'" in terminal.ask("grads nothing")
    for name in ("model[0]", "self.model[0]", "model.0.*"):
        shown = terminal.ask(f"grads {name}")
        assert "trainer.model.0.weight" in shown, name
        assert "trainer.model.1.weight" not in shown, name
    terminal.type("q")
    terminal.end()


def test_folded_graphs_can_be_opened(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "step", gradtrace.write(CUT))
    terminal.wait_for("(Pdb) ")
    assert "▣" in terminal.ask("graph --depth 0")
    assert "▣" not in terminal.ask("path head.weight --open head")
    assert "no module of the graph is called 'tail'" in terminal.ask("graph --open tail")
    assert "give a number after --depth" in terminal.ask("saved --depth")
    terminal.type("q")
    terminal.end()


NAN = """\
import torch

w = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    masked = torch.where(torch.ones(3) > 0, w, torch.full((3,), float("-inf")))
    loss = (masked * 2).sqrt().sum() if step == 0 else ((w - 5).sqrt()).sum()
    loss.backward()
"""


def test_it_stops_where_nan_appears(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "nan", gradtrace.write(NAN))
    shown = terminal.wait_for("(Pdb) ")
    assert "stopped: `loss.backward()` made the gradient of `w` not finite; `until finding` runs on" in shown
    assert "3 values that are not finite" in terminal.ask("grads")
    shown = terminal.ask("c")
    assert "stopped: `sqrt` made NaN out of values that had none: input 1 from -5 to -5" in shown
    assert "-> loss = (masked" in shown
    terminal.type("q")
    terminal.end()


KEEPS = """\
import gc, weakref
import torch

def step(w):
    activation = w * 2
    loss = activation.pow(2).sum()
    loss.backward()
    alive = weakref.ref(activation), weakref.ref(loss)
    del activation, loss
    print("alive:", [one() is not None for one in alive])

w = torch.ones(2, requires_grad=True)
step(w)
"""


def test_no_command_keeps_a_tensor_alive(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "backward", gradtrace.write(KEEPS))
    terminal.wait_for("(Pdb) ")
    for line in ("p loss", "activation", "graph activation", "saved loss", "grads", "why", "cuts", "u", "d"):
        terminal.ask(line)
    terminal.type("c")
    assert "alive: [False, False]" in terminal.end()[1]


CRASH = """\
import torch

def inner(model, x):
    width = 7
    return model(x)

model = torch.nn.Linear(4, 2)
inner(model, torch.ones(3, 4)).sum().backward()
inner(model, torch.ones(3, 5)).sum().backward()
"""


def test_it_stops_at_an_uncaught_exception(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", gradtrace.write(CRASH))
    shown = terminal.wait_for("(Pdb) ")
    assert "stopped: RuntimeError: mat1 and mat2 shapes cannot be multiplied" in shown
    assert "-> return model(x)" in shown
    assert terminal.ask("p width").endswith("7\n(Pdb) ")
    assert "gradtrace" not in terminal.ask("w").replace("(Pdb)", "")
    terminal.type("q")
    status, report = terminal.end()
    assert status == 3
    assert report.count("Traceback (most recent call last)") == 1
    assert terminal.is_as_it_was


def test_an_error_that_a_finding_explains_stops_once(gradtrace: Runner, start: Start) -> None:
    script = gradtrace.write("import torch\nw = torch.ones(2, requires_grad=True)\nloss = w.sum()\n"
                             "loss = (w * w).sum()\nloss.backward()\nloss.backward()\n")  # fmt: skip
    terminal = start("debug", script)
    shown = terminal.wait_for("(Pdb) ")
    assert "error[freed-graph]" in shown
    assert "this line raises RuntimeError: Trying to backward through the graph a second time" in shown
    terminal.type("c")
    status, report = terminal.end()
    assert status == 1
    assert "stopped:" not in report


INTERRUPTED = """\
import torch

def work():
    rounds = 0
    print("working")
    while rounds >= 0:
        rounds += 1
    print("rounds", rounds)

answer = input("your name? ")
print("hello", answer)
work()
"""


def test_input_and_ctrl_c(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", gradtrace.write(INTERRUPTED))
    terminal.wait_for("your name? ")
    terminal.type("Ada")
    terminal.wait_for("hello Ada")
    terminal.wait_for("working")
    terminal.interrupt()
    shown = terminal.wait_for("(Pdb) ")
    assert "stopped: interrupted by Ctrl-C" in shown
    assert "work()" in shown
    terminal.interrupt_until("KeyboardInterrupt")
    terminal.wait_for("(Pdb) ")
    terminal.ask("rounds = -5")
    terminal.type("c")
    status, report = terminal.end()
    assert "rounds -" in report
    assert status == 4
    assert terminal.is_as_it_was


WORKERS = """\
import threading
import torch
from torch.utils.data import DataLoader

def counting(done):
    total = 0
    while not done.is_set():
        total += 1
    print("the thread has ended")

def main():
    done = threading.Event()
    thread = threading.Thread(target=counting, args=(done,))
    thread.start()
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 3)), batch_size=4, num_workers=2):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
    done.set()
    thread.join()

if __name__ == "__main__":
    main()
"""


def test_threads_and_workers_run_on(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "train.py:20", gradtrace.write(WORKERS))
    assert "-> optimizer.step()" in terminal.wait_for("(Pdb) ")
    assert "-> optimizer.step()" in terminal.ask("c")
    assert "[1, 3]" in terminal.ask("grads")
    terminal.type("c")
    status, report = terminal.end()
    assert "the thread has ended" in report
    assert status == 1


RANKS = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = model(torch.ones(2, 3)).sum()
    loss.backward()
    optimizer.step()
print(f"rank {dist.get_rank()} is done\\n", end="", flush=True)
dist.destroy_process_group()
"""


def test_one_rank_stops(gradtrace: Runner, start: Start) -> None:
    launcher = "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "gradtrace"
    terminal = start("debug", "--rank", "0", gradtrace.write(RANKS), command=launcher)
    assert "error[stale-grad]" in terminal.wait_for("(Pdb) ")
    terminal.type("p dist.get_rank()")
    assert "0\n" in terminal.wait_for("(Pdb) ")
    terminal.type("c")
    report = terminal.end()[1]
    assert "rank 0 is done" in report
    assert "rank 1 is done" in report
    assert report.count("error[stale-grad]") == 1


def test_without_a_terminal_it_runs_as_check(gradtrace: Runner) -> None:
    script = gradtrace.write(STALE)
    checked = gradtrace.alone("check", script)
    done = gradtrace.alone("debug", script, stdin=-3)
    assert (done.status, done.out) == (checked.status, checked.out)
    assert done.err == "gradtrace: stdin is not a terminal: the run is checked without stopping\n" + checked.err


def test_the_report_is_that_of_a_check(gradtrace: Runner, start: Start) -> None:
    script = gradtrace.write(STALE)
    terminal = start("check", "--pdb", "-o", "stopped.json", script)
    terminal.wait_for("(Pdb) ")
    terminal.type("c")
    assert terminal.end()[0] == 1
    gradtrace.alone("check", "-o", "plain.json", script)
    stopped, plain = (
        json.loads(Path(gradtrace.directory, name).read_text()) for name in ("stopped.json", "plain.json")
    )
    assert stopped["findings"]
    assert stopped == plain


def test_a_recording_cannot_be_stopped(gradtrace: Runner) -> None:
    gradtrace.alone("check", "--record", "run.jsonl", gradtrace.write(STALE))
    done = gradtrace.alone("check", "--pdb", "run.jsonl")
    assert done.status == 2
    assert "it takes no --pdb" in done.err


WARNED = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    loss = nn.functional.mse_loss(model(torch.ones(6, 4)), torch.ones(6))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_run_without_errors_does_not_stop_and_says_how_it_would(gradtrace: Runner, start: Start) -> None:
    script = gradtrace.write(WARNED)
    status, report = start("debug", script).end()
    assert status == 1
    assert "warning[broadcast-loss]" in report
    assert "nothing was a reason to stop" in report
    terminal = start("debug", "--at", "finding", script)
    assert "stopped: warning[broadcast-loss] at train.py:7" in terminal.wait_for("(Pdb) ")
    terminal.type("q")
    assert terminal.end()[0] == 1


def test_what_is_silenced_is_no_reason_to_stop(gradtrace: Runner, start: Start) -> None:
    text = STALE.replace("loss.backward()", "loss.backward()  # gradtrace: ignore[stale-grad] -- meant")
    assert "1 silenced" in start("debug", gradtrace.write(text)).end()[1]
    gradtrace.alone("check", "--baseline", "known.json", "--write-baseline", gradtrace.write(STALE))
    status, report = start("check", "--pdb", "--baseline", "known.json", "train.py").end()
    assert (status, "stopped: " in report) == (0, False)


LEAVES = """\
import torch

w = torch.ones(2, requires_grad=True)
try:
    w.sum().backward()
finally:
    w.sum().backward()
    print("on the way out")
"""


def test_what_runs_on_the_way_out_is_not_stopped(gradtrace: Runner, start: Start) -> None:
    terminal = start("debug", "--at", "backward", gradtrace.write(LEAVES))
    terminal.wait_for("(Pdb) ")
    terminal.type("q")
    report = terminal.end()[1]
    assert "on the way out" in report
    assert "(Pdb)" not in report
    assert terminal.is_as_it_was
