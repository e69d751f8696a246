"""What must hold of every training run, on random programs: correct ones are silent, and one broken truth never is."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.rules.conftest import Checker

PROGRAMS = 20
WIDTH = 6


@dataclass
class Program:
    """A training program, as lines that a fault can be put into."""

    layers: list[str]
    loss: str
    target: str
    optimizer: str
    steps: int
    #: gradients are cleared at the end of an iteration, else before the backward call
    clears_last: bool
    #: the iteration is a function of its own
    in_function: bool
    rate: str = "1e-2"
    before: list[str] = field(default_factory=list)
    forward: str = "out = model(x)"
    after_loss: list[str] = field(default_factory=list)
    after_backward: list[str] = field(default_factory=list)
    step: str = "optimizer.step()"
    parameters: str = "model.parameters()"

    def text(self) -> str:
        clear = ["optimizer.zero_grad()"]
        body = [
            f"x = torch.randn(16, {WIDTH})",
            self.forward,
            f"loss = {self.loss}(out, {self.target})",
            *self.after_loss,
            *([] if self.clears_last else clear),
            "loss.backward()",
            *self.after_backward,
            self.step,
            *(clear if self.clears_last else []),
        ]
        make = [f"model = nn.Sequential({', '.join(self.layers)})", *self.before]
        make += [f"optimizer = torch.optim.{self.optimizer}({self.parameters}, lr={self.rate})"]
        if self.in_function:
            run = ["def iteration():", *indented(body), f"for _ in range({self.steps}):", "    iteration()"]
        else:
            run = [f"for _ in range({self.steps}):", *indented(body)]
        return "\n".join([*make, *run, ""])


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def program(seed: int) -> Program:
    """A correct program, other for each seed."""
    chance = random.Random(seed)
    width, layers = WIDTH, []
    for _ in range(chance.randint(1, 3)):
        wider = chance.choice((8, 12, 16))
        layers.append(f"nn.Linear({width}, {wider})")
        layers += chance.choice(([], [f"nn.LayerNorm({wider})"]))
        layers += [f"nn.{chance.choice(('Tanh', 'GELU', 'SiLU', 'Softplus'))}()"]
        layers += chance.choice(([], [], ["nn.Dropout(0.1)"]))
        width = wider
    losses = ("F.mse_loss", "x[:, :2]"), ("F.smooth_l1_loss", "x[:, 1:3]"), ("F.cross_entropy", "x.argmax(1) % 2")
    loss, target = chance.choice(losses)
    return Program(
        [*layers, f"nn.Linear({width}, 2)"],
        loss,
        target,
        chance.choice(("SGD", "Adam", "AdamW", "RMSprop")),
        chance.randint(10, 16),
        chance.random() < 0.5,
        chance.random() < 0.5,
    )


def infinite_loss(one: Program) -> None:
    one.after_loss = ["loss = loss + torch.zeros(()).log()"]


def gradient_that_is_nan(one: Program) -> None:
    one.after_backward = ["next(model.parameters()).grad.mul_(float('nan'))"]


def optimizer_that_never_steps(one: Program) -> None:
    one.before = [f"extra = nn.Linear({WIDTH}, 2)", "second = torch.optim.SGD(extra.parameters(), lr=0.1)"]
    one.forward = "out = model(x) + extra(x)"


def steps_without_gradients(one: Program) -> None:
    one.after_backward = ["optimizer.zero_grad()"]


def steps_without_effect(one: Program) -> None:
    one.rate = "0.0"
    one.parameters = "model.parameters()"


def gradient_that_is_zero(one: Program) -> None:
    one.before = [f"extra = nn.Linear({WIDTH}, 2)"]
    one.forward = "out = model(x) + 0 * extra(x)"
    one.parameters = "[*model.parameters(), *extra.parameters()]"


def script_that_dies_over_a_gradient(one: Program) -> None:
    one.after_loss = ["loss = loss.detach()"]


FAULTS: tuple[Callable[[Program], None], ...] = (
    infinite_loss,
    gradient_that_is_nan,
    optimizer_that_never_steps,
    steps_without_gradients,
    steps_without_effect,
    gradient_that_is_zero,
    script_that_dies_over_a_gradient,
)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_correct_program_is_silent(seed: int, checker: Checker) -> None:
    checked = checker.check(program(seed).text())
    assert not checked.findings, checked.text
    assert checked.exception is None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_a_broken_truth_is_never_silent(seed: int, fault: Callable[[Program], None], checker: Checker) -> None:
    one = program(seed)
    fault(one)
    checked = checker.check(one.text())
    assert checked.findings, checked.text
