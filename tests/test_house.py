"""Holds the house in order: who may import whom, what loads torch, and which names are public."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gradtrace

PACKAGE = Path(gradtrace.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
#: the floor of each room; a room may import from its own modules and from lower floors
FLOORS = {
    "__main__": 9,
    "cli": 8,
    "interactive": 7,
    "notebook": 7,
    "check": 6,
    "pytest_plugin": 6,
    "follow": 6,
    "pictures": 6,
    "compare": 6,
    "run": 5,
    "verdict": 5,
    "output": 4,
    "rules": 3,
    "renderers": 3,
    "watch": 2,
    "script": 1,
    "streams": 1,
    "tracebacks": 1,
    "config": 1,
    "silence": 1,
    "baseline": 1,
    "progress": 1,
    "ranks": 1,
    "limits": 2,
    "neighbours": 1,
    "recording": 1,
    "model": 0,
    "heap": 0,
    "errors": -1,
    "": 0,
}
#: rooms of one floor that may see each other
NEIGHBOURS = {"script", "streams", "tracebacks"}
#: who may import what is not ours: the beginnings of module names
OUTSIDE = {
    "torch": ("gradtrace.watch", "gradtrace.interactive"),  # there for types alone
    "rich": tuple(f"gradtrace.renderers.{name}" for name in ("paper", "text", "tree", "rules", "story", "diff")),
    "tomli": ("gradtrace.config",),
    "tomllib": ("gradtrace.config",),  # of the standard library from 3.11 on
    "graphviz": ("gradtrace.renderers.dot",),
    "typer": ("gradtrace.cli",),
    "pytest": ("gradtrace.pytest_plugin",),
}


#: what the public face imports for itself
_BY_THE_WAY = (TYPE_CHECKING, Any)


def room(module: str) -> str:
    """`rules` for `gradtrace.rules.freed_graph`."""
    return [*module.split("."), ""][1]


def imported(module: str, for_types: bool = True) -> Iterator[str]:
    """Every module that a module of ours imports, anywhere in its file; `for_types`: also for type checkers only."""
    waiting: list[ast.AST] = [ast.parse(MODULES[module].read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        if for_types or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively: line {node.lineno}"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else str(node.module) for name in names)


def ours(module: str, for_types: bool = True) -> set[str]:
    return {name for name in imported(module, for_types) if name.split(".")[0] == "gradtrace"}


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_from_lower_floors(module: str) -> None:
    here = room(module)
    for name in ours(module, for_types=module != "gradtrace"):
        there = room(name)
        allowed = here == there or FLOORS[there] < FLOORS[here] or {here, there} <= NEIGHBOURS
        assert allowed, f"{module} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_what_is_not_ours_stays_in_its_rooms(module: str) -> None:
    for name in imported(module):
        outside = name.split(".")[0]
        if outside != "gradtrace" and outside not in sys.stdlib_module_names:
            assert module.startswith(OUTSIDE.get(outside, ())), f"{module} imports {name}"


@pytest.mark.parametrize("module", [name for name in MODULES if room(name) == "rules"])
def test_rules_are_judged_by_facts_alone(module: str) -> None:
    assert {room(name) for name in ours(module)} <= {"rules", "model", "errors"}


def test_imports_form_no_circle() -> None:
    TopologicalSorter({module: ours(module, for_types=False) - {module} for module in MODULES}).prepare()


@pytest.mark.parametrize(
    "arguments",
    [["-c", "import gradtrace"], *(["-m", "gradtrace", word] for word in ("--help", "--version", "rules"))],
)
def test_torch_is_not_loaded_before_it_is_needed(arguments: list[str]) -> None:
    loaded = loaded_by(*arguments)
    assert "gradtrace" in loaded
    assert not loaded & {"torch", "numpy", "graphviz"}


def test_a_command_line_is_read_without_what_validates_it() -> None:
    command = "-m", "gradtrace", "check", "--select", "stale-grad", "-o", "report.json", "there-is-no-script.py"
    loaded = loaded_by(*command, status=2)
    assert {"gradtrace", "typer"} <= loaded
    assert not loaded & {"torch", "pydantic"}


def loaded_by(*arguments: str, status: int = 0) -> set[str]:
    process = subprocess.run([sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True)
    assert process.returncode == status, process.stderr
    return {line.rpartition("|")[2].strip().split(".")[0] for line in process.stderr.splitlines()}


def test_the_public_names_are_exactly_these() -> None:
    assert gradtrace.__all__ == ["__version__", "dot", "show", "watch"]
    assert all(hasattr(gradtrace, name) for name in gradtrace.__all__)
    # pytest, which loads a plugin of ours, puts in names that are no identifiers
    names = {name for name in vars(gradtrace) if name.isidentifier() and name[0] != "_"}
    public = {name for name in names if vars(gradtrace)[name] not in _BY_THE_WAY}
    assert public - {room(module) for module in MODULES} == set()


def test_the_version_is_the_one_of_the_package() -> None:
    assert gradtrace.__version__ == version("gradtrace")
    with pytest.raises(AttributeError, match="no attribute 'loss'"):
        gradtrace.loss
