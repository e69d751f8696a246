"""grad-before-backward explains the error that ends the script, and no other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from casefiles import case, cases


@pytest.mark.parametrize("name", cases("bad", "grad-before-backward"))
def test_the_crash_is_explained(check: Callable[..., Any], name: str) -> None:
    checked = check(case(name.replace("/", "/bad/")))
    assert checked.explained, checked.text


def test_an_error_over_another_none_is_not_explained(gradtrace: Any) -> None:
    report = gradtrace.document(
        gradtrace.write("""
            import torch
            w = torch.zeros(3, requires_grad=True)
            logger = None
            for _ in range(3):
                if w.grad is not None:
                    w.grad.zero_()
                logger.info("a step")
                (w - 1).square().sum().backward()
        """)
    )
    assert not report["findings"]
