"""Runs many small scripts under the real check at the price of one import of torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

DRIVER = Path(__file__).parent.parent / "fixtures" / "batch.py"


@pytest.fixture(scope="session")
def check_all(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, str]], dict[str, Any]]:
    """The reports of scripts, by their names."""

    def check(scripts: dict[str, str]) -> dict[str, Any]:
        directory = tmp_path_factory.mktemp("scripts")
        for name, text in scripts.items():
            (directory / f"{name}.py").write_text(dedent(text), encoding="utf-8")
        done = subprocess.run([sys.executable, str(DRIVER), str(directory)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return {name: json.loads((directory / f"{name}.json").read_text(encoding="utf-8")) for name in scripts}

    return check
