"""The moments of a run at which it can be stopped."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Moment(Enum):
    """The value is what the user types."""

    BACKWARD = "backward"
    STEP = "step"
    #: a value that is not finite appears
    NAN = "nan"
    #: a rule finds something that is more than a note
    FINDING = "finding"


@dataclass(frozen=True, slots=True)
class Halt:
    """What is about to happen, or has just happened."""

    moment: Moment
    #: in the user's names: "before `loss.backward()`"
    text: str
