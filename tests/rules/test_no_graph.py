"""no-graph, on events written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from gradtrace.model.events import Backward, Cut, Step, Use
from gradtrace.model.site import Site, Stack
from gradtrace.rules.no_graph import NoGraph

NO_GRAPH = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"


def at(line: int) -> Stack:
    return (Site("/nowhere/train.py", line, "train"),)


def call(error: str | None = NO_GRAPH, **facts: Any) -> Backward:
    return Backward(1, "backward", at(9), "loss", -1, False, False, 0, error=error, **facts)


@pytest.mark.parametrize("why", ["detached", "copied", "no_grad", "not differentiable", "frozen", "unasked"])
def test_the_line_of_the_cut(why: str) -> None:
    (finding,) = NoGraph().see(call(cuts=(Cut("argmax()", why, at(4)),)))
    assert finding.site.line == 4
    assert finding.message.startswith("`loss` has no graph")
    assert [related.site.line for related in finding.related] == [9]


def test_gradients_switched_off_by_a_call() -> None:
    (finding,) = NoGraph().see(call(cuts=(Cut("linear()", "no_grad", at(4), switched=at(2)),)))
    assert finding.site.line == 2


def test_what_is_known_comes_before_what_is_suspected() -> None:
    (finding,) = NoGraph().see(
        call(cuts=(Cut(">", "not differentiable", at(4)),), suspects=(Cut("item()", "detached", at(5)),))
    )
    assert finding.site.line == 4
    (finding,) = NoGraph().see(call(suspects=(Cut("item()", "detached", at(5)),)))
    assert finding.site.line == 5


def test_nothing_is_known() -> None:
    (finding,) = NoGraph().see(call())
    assert finding.site.line == 9


def test_other_errors() -> None:
    assert not list(NoGraph().see(call("RuntimeError: grad can be implicitly created only for scalar outputs")))
    assert not list(NoGraph().see(call(cuts=(Cut("autograd.grad()", "constant gradient", at(4)),))))


def test_a_loss_that_was_made_a_leaf_again() -> None:
    idle = call(error=None, rewrapped=(Cut("torch.tensor()", "copied", at(4)),))
    use = Use((), 0, (), ("model.weight",), 1)

    def found(*events: Backward | Step) -> list[int]:
        rule = NoGraph()
        return [finding.site.line for event in events for finding in rule.see(event)]

    assert found(idle, Step(1, "Adam", 7, at(10), ())) == [4]
    assert found(idle, Step(1, "Adam", 7, at(10), (use,))) == []
    assert found(idle, Step(1, "Adam", 7, at(10), (), unknown=True)) == []
    assert found(idle, Step(1, "", 7, at(10), ())) == []
    assert found(idle, call(error=None), Step(1, "Adam", 7, at(10), ())) == []
