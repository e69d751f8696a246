"""`follow` on real scripts: the stories of the teaching scripts, word for word, and what each kind of code adds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden" / "follow"
TAUGHT = (
    *("sigmoid_bce", "square_chain", "detached_constant", "forgotten_zero_grad", "second_backward"),
    *("multitask_sum", "multitask_two_calls", "gan_detached", "gan_attached", "hidden_state"),
)


@pytest.fixture
def story(gradtrace, monkeypatch) -> Callable[..., str]:
    """The story of a script, as text of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")

    def follow(path: str, *options: str) -> str:
        done = gradtrace.here("follow", *options, "-o", "story.txt", path)
        assert done.status in (0, 3), done.err
        told = (gradtrace.directory / "story.txt").read_text(encoding="utf-8")
        assert "remark" not in told
        return told

    return follow


@pytest.mark.parametrize("name", TAUGHT)
def test_a_teaching_script_reads_like_this(story: Callable[..., str], name: str) -> None:
    """GRADTRACE_GOLDEN=1 writes the stories anew, to be read by a person."""
    told = story(str(ROOT / "scripts" / "examples" / f"{name}.py"))
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("GRADTRACE_GOLDEN"):
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")
