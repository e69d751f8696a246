"""How much of the script torch.compile took out of sight: what runs compiled calls no function that could be seen."""

from __future__ import annotations

import sys


def pieces() -> int:
    """How many pieces of code were compiled so far in this process, as torch itself counts them."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return int(counters["frames"]["ok"]) if counters else 0


def remark(number: int) -> str:
    """What to say of a run in which so many were compiled."""
    what = "1 piece of code" if number == 1 else f"{number} pieces of code"
    return f"torch.compile compiled {what}: what goes on inside was not seen, and no rule has judged it"
