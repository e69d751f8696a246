"""unoptimized-parameter: what its message and its help say of each kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from casefiles import case


def test_one_and_several_are_spoken_of_as_such(check: Callable[..., Any]) -> None:
    values = case("unoptimized-parameter/bad/the_values_of_a_state_dict_in_place_of_the_parameters")
    several = check(values).alarms[0]
    assert "get a gradient in every step, but SGD was passed only their values" in several["message"]
    kept = check(case("unoptimized-parameter/bad/layers_made_in_forward_and_kept_for_the_next_one")).alarms[0]
    assert "created after Adam" in kept["message"]


def test_the_class_that_is_no_module_and_the_list_of_what_is_optimized(check: Callable[..., Any]) -> None:
    script = case("unoptimized-parameter/bad/a_class_that_is_no_module_and_a_list_of_what_is_optimized")
    hidden, left_out = sorted(check(script).alarms, key=lambda one: one["line"])
    assert hidden["help"].startswith("make the class of `m.scale` a subclass of nn.Module")
    assert "the parameters for Adam are collected here" in [text for _, text in left_out["related"]]
