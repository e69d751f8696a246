"""repeated-backward, on events written by hand."""

from __future__ import annotations

from gradtrace.model.events import Backward
from gradtrace.model.site import Site
from gradtrace.rules.repeated_backward import RepeatedBackward


def test_at_most_two_leaves_are_named() -> None:
    stack, earlier = (Site("/nowhere/train.py", 9, "train"),), (Site("/nowhere/train.py", 8, "train"),)
    event = Backward(2, "backward", stack, "loss", 5, False, False, 3, repeated=("a", "b", "c"), repeated_stack=earlier)
    (finding,) = RepeatedBackward().see(event)
    assert (finding.site.line, finding.related[0].site.line) == (9, 8)
    assert "`a`, `b` and 1 more" in finding.message


def test_a_call_that_repeats_nothing() -> None:
    assert not list(RepeatedBackward().see(Backward(2, "backward", (), "loss", 5, False, False, 3)))
