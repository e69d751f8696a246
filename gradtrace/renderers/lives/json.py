"""The lives of parameters as one JSON document, for programs. Lines count from 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradtrace.model.lives import Life, StepInterval
from gradtrace.model.site import Stack
from gradtrace.renderers.wording import file


def document(lives: Sequence[Life], script: str) -> dict[str, Any]:
    """The document: norms are floats, NaN and infinity are the strings "nan" and "inf"."""
    return {
        "format": "gradtrace.why",
        "version": 1,
        "script": script,
        "parameters": [_life(life) for life in lives],
    }


def _life(life: Life) -> dict[str, Any]:
    return {
        "name": life.name,
        "shape": list(life.shape),
        **({"placement": life.placement} if life.placement else {}),
        "state": life.state.value,
        "reason": life.reason,
        "at": _place(life.at),
        "path": life.path,
        "created": _place(life.created),
        "optimizer": life.optimizer,
        "held": _place(life.held),
        "steps": life.steps,
        "gradients": [_number(value) for value in life.gradients],
        "updates": [_number(value) for value in life.updates],
        "iterations": [
            {"first": _iteration(one.first), "last": _iteration(one.last), "times": one.times} for one in life.stretches
        ],
    }


def _iteration(one: StepInterval) -> dict[str, Any]:
    calls = []
    for arrival in one.arrivals:
        place = _place(arrival.stack)
        calls.append(
            {"at": place, "root": arrival.root, "accumulated": arrival.accumulated, "norm": _number(arrival.norm)}
        )
    return {
        "number": one.number,
        "backward_calls": calls,
        "step": _place(one.step),
        "gradient": _number(one.gradient),
        "update": _number(one.update),
    }


def _place(stack: Stack) -> dict[str, Any] | None:
    return {"file": file(stack[0].path), "line": stack[0].line} if stack else None


def _number(value: float | None) -> float | str | None:
    if value is None or value - value == 0:
        return value
    return str(value)
