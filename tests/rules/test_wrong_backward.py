"""wrong-backward is tried with --gradcheck alone, and the script does not notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from casefiles import case


def test_nothing_is_tried_unless_asked_for(check: Callable[..., Any]) -> None:
    checked = check(case("wrong-backward/bad/a_factor_is_missing"))
    assert not checked.found, checked.text


def test_the_script_does_not_notice(gradtrace: Any) -> None:
    script = case("wrong-backward/good/random_inside").read_text(encoding="utf-8")
    name = gradtrace.write(f"{script}print(sum(p.sum().item() for p in net.parameters()), torch.rand(1).item())\n")
    plain, tried = gradtrace.here("check", name), gradtrace.here("check", "--gradcheck", name)
    assert plain.status == tried.status == 0
    assert plain.out == tried.out
