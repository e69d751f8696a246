"""Holds the layout: who may import whom, what loads torch, and which names are public."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import gradtrace
from gradtrace.rules import all_rules

PACKAGE = Path(gradtrace.__file__).parent
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
#: The packages, from the top down: a module imports from its own package and from lower layers.
LAYERS = (
    {"__main__"},
    {"cli"},
    {"integrations"},
    {"commands"},
    {"fixes", "debugger"},
    {"report"},
    {
        "renderers.findings",
        "renderers.graph",
        "renderers.story",
        "renderers.lives",
        "renderers.fixes",
        "renderers.output",
    },
    {"renderers.edits"},
    {"renderers.wording", "renderers.paper"},
    {"rules"},
    {"rules.judging"},
    {"watcher.watch"},
    {"watcher.stops"},
    {"watcher.observers"},
    {"watcher.truths", "watcher.ranks"},
    {"watcher.faults", "watcher.gradients", "watcher.story"},
    {"watcher.parameters", "watcher.pictures"},
    {"watcher.core"},
    {"watcher.code", "watcher.graph"},
    {"watcher.compat"},
    {"host", "graphs", "stories"},
    {"source"},
    {"model"},
    {"errors", "escapes", ""},
)
LAYER_OF = {package: len(LAYERS) - at for at, layer in enumerate(LAYERS) for package in layer}
#: packages whose parts have layers of their own
SPLIT = {"watcher", "renderers"}
#: who may import what is not ours: the beginnings of module names
OUTSIDE = {
    "torch": ("gradtrace.watcher", "gradtrace.integrations.interactive"),  # there for types alone
    "rich": (
        "gradtrace.renderers.paper",
        *(f"gradtrace.renderers.findings.{name}" for name in ("text", "rules")),
        *(f"gradtrace.renderers.graph.{name}" for name in ("tree", "diff", "cuts")),
        "gradtrace.renderers.lives.text",
        "gradtrace.renderers.story.text",
    ),
    "tomli": ("gradtrace.report.config",),
    "tomllib": ("gradtrace.report.config",),  # of the standard library from 3.11 on
    "graphviz": ("gradtrace.renderers.graph.dot",),
    "typer": ("gradtrace.cli",),
    "pytest": ("gradtrace.integrations.pytest_plugin",),
}


#: names that look private and are documented, as old as what they belong to, or that nothing could be put around
STABLE = {
    *("_getframe", "_current_frames"),  # sys: what is put around them is one more frame
    *("_replace", "_asdict", "_fields", "_field_defaults"),  # named tuples: documented
    *("_version", "_base", "_is_view", "_values"),  # tensors
    *("_parameters", "_buffers", "_modules"),  # modules
    *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),  # modules
    *("_foreach_add_", "_foreach_sub_", "_foreach_addcdiv_", "_foreach_addcmul_", "_foreach_zero_"),  # keys of tables
    *("_foreach", "_amp_foreach_non_finite_check_and_unscale_"),
}

#: what the public face imports for itself
_BY_THE_WAY = (TYPE_CHECKING, Any)


def package(module: str) -> str:
    """`rules` for `gradtrace.rules.freed_graph`, `rules.judging` for `gradtrace.rules.judging.blame`."""
    _, *names = module.split(".")
    inner = ".".join(names[:2])
    split = inner in LAYER_OF or not SPLIT.isdisjoint(names[:1])
    return inner if split else ".".join(names[:1])


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


@pytest.mark.parametrize("module", [module for module in MODULES if package(module) not in SPLIT])
def test_a_module_imports_only_from_lower_layers(module: str) -> None:
    here = package(module)
    for name in ours(module, for_types=module != "gradtrace"):
        there = package(name)
        assert here == there or LAYER_OF[there] < LAYER_OF[here], f"{module} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_what_is_not_ours_stays_in_its_modules(module: str) -> None:
    for name in imported(module):
        outside = name.split(".")[0]
        if outside != "gradtrace" and outside not in sys.stdlib_module_names:
            assert module.startswith(OUTSIDE.get(outside, ())), f"{module} imports {name}"


RULES = [name for name in MODULES if name.startswith("gradtrace.rules")]


@pytest.mark.parametrize("module", RULES)
def test_rules_are_judged_by_facts_alone(module: str) -> None:
    assert {package(name) for name in ours(module)} <= {"rules", "rules.judging", "source", "graphs", "model", "errors"}


@pytest.mark.parametrize("module", [name for name in RULES if name.count(".") == 2])
def test_a_rule_knows_no_other_rule(module: str) -> None:
    assert {name for name in ours(module) if package(name) == "rules"} <= {"gradtrace.rules.base"}


@pytest.mark.parametrize("module", [name for name in RULES if name != "gradtrace.rules.nonfinite_grad"])
def test_no_rule_looks_for_patterns_in_names(module: str) -> None:
    assert "re" not in imported(module)  # that one spells the names of torch's operations


def test_every_file_in_rules_is_one_rule() -> None:
    files = {name for name in RULES if package(name) == "rules"} - {"gradtrace.rules", "gradtrace.rules.base"}
    assert sorted(rule.__module__ for rule in all_rules()) == sorted(files)


@pytest.mark.parametrize("module", [name for name in MODULES if package(name) != "watcher.compat"])
def test_private_names_of_others_are_read_in_one_module(module: str) -> None:
    assert set(private_names(module)) <= STABLE | OWN_NAMES


def private_names(module: str) -> Iterator[str]:
    """Every private name that a module reads of an object, imports, or holds as text."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [*str(node.module).split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [part for part in node.value.split(".") if part.isidentifier() and len(part) > 2]
        yield from (name for name in names if name.startswith("_") and not name.startswith("__"))


def own_names() -> Iterator[str]:
    """The names that gradtrace itself gives to functions, classes, attributes and variables."""
    for path in MODULES.values():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.attr if isinstance(node, ast.Attribute) else node.id


OWN_NAMES = set(own_names())


WATCHER = [name for name in MODULES if name.startswith("gradtrace.watcher")]


@pytest.mark.parametrize("module", [name for name in WATCHER if name.split(".")[-2:] != ["graph", "ops"]])
def test_tables_of_operations_lie_in_one_module(module: str) -> None:
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Set | ast.Tuple | ast.List):
            names = [part.value for part in node.elts if isinstance(part, ast.Constant)]
        elif isinstance(node, ast.Dict):
            names = [part.value for part in node.keys if isinstance(part, ast.Constant)]
        else:
            continue
        assert sum(map(is_node_name, names)) < 2, f"{module}, line {node.lineno}: belongs into watcher/graph/ops.py"


@pytest.mark.parametrize("module", [name for name in WATCHER if name.split(".")[-2:] != ["graph", "ops"]])
def test_names_of_nodes_are_put_together_in_one_module(module: str) -> None:
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr | ast.BinOp):
            parts = [part.value for part in ast.iter_child_nodes(node) if isinstance(part, ast.Constant)]
            assert not any(map(is_node_name, parts)), f"{module}, line {node.lineno}: belongs into watcher/graph/ops.py"


def is_node_name(value: object) -> bool:
    """`MulBackward0`, and what is put behind `Mul` to make it."""
    return isinstance(value, str) and re.search(r"Backward\d*$", value) is not None


def test_graphs_are_walked_in_two_modules() -> None:
    walking = {name for name in MODULES if "next_functions" in words(name)}
    assert walking == {"gradtrace.watcher.graph.walk", "gradtrace.watcher.graph.query"}


def words(module: str) -> Iterator[str]:
    """Every attribute that a module reads, and every word that it holds as text."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


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
    assert public - {package(module).partition(".")[0] for module in MODULES} == set()


def test_the_version_is_the_one_of_the_package() -> None:
    assert gradtrace.__version__ == version("gradtrace")
    with pytest.raises(AttributeError, match="no attribute 'loss'"):
        gradtrace.loss
