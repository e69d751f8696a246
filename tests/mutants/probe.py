"""Finds out what the expressions of a program are, by running a copy that looks at the value of each.

The copy runs in a process of its own. An operator then knows which call is an optimizer's, which expression has a
gradient, and how many times a statement runs, also in code that it has never seen.
"""

from __future__ import annotations

import ast
from dataclasses import asdict, dataclass, field
from typing import Any

Key = tuple[int, int, int, int]

#: after so many values of an expression, only their number and the range of integers are noted
_LOOKS = 40


def key_of(node: ast.expr) -> Key:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


@dataclass
class Fact:
    """What is known of the values of one expression."""

    kind: str = ""  # tensor, optimizer, scheduler, scaler, module, int, or the name of the type
    type: str = ""
    count: int = 0
    #: of a tensor: whether gradients flow into it at some time, with gradients on; whether that is so at every time
    live: bool = False
    always_live: bool = True
    leaf: bool = False
    scalar: bool = False
    floating: bool = False
    shape: list[int] = field(default_factory=list)
    #: of integers
    least: int = 0
    most: int = 0
    #: of a module: linear and convolutional layers in it, path and how to make one; whether it has dropout
    layers: list[list[str]] = field(default_factory=list)
    random: bool = False
    training: bool = False
    modes: int = 0


class Probe:
    """Notes the values as the copy runs."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.facts: dict[Key, Fact] = {}
        self.keys: list[Key] = []

    def note(self, number: int, value: Any) -> Any:
        fact = self.facts.setdefault(self.keys[number], Fact())
        fact.count += 1
        if type(value) is int:
            self._integer(fact, value)
        elif fact.count <= _LOOKS:
            self._look(fact, value)
        return value

    def _integer(self, fact: Fact, value: int) -> None:
        fact.least = value if fact.count == 1 else min(value, fact.least)
        fact.most = value if fact.count == 1 else max(value, fact.most)
        fact.kind = fact.type = "int"

    def _look(self, fact: Fact, value: Any) -> None:
        torch, nn = self.torch, self.torch.nn
        fact.type = fact.kind = type(value).__name__
        if isinstance(value, torch.Tensor):
            fact.kind = "tensor"
            live = value.requires_grad and torch.is_grad_enabled()
            fact.live |= live
            fact.always_live &= live
            fact.leaf = value.is_leaf
            fact.scalar = value.dim() == 0
            fact.floating = value.is_floating_point()
            fact.shape = list(value.shape) if value.layout == torch.strided else []
        elif isinstance(value, torch.optim.Optimizer):
            fact.kind = "optimizer"
        elif isinstance(value, torch.optim.lr_scheduler.LRScheduler):
            fact.kind = "scheduler"
        elif isinstance(value, torch.amp.GradScaler):
            fact.kind = "scaler"
        elif isinstance(value, nn.Module):
            fact.kind = "module"
            fact.training = value.training
            fact.modes |= 1 if value.training else 2
            fact.layers = [
                [name, f"nn.{module!r}"]
                for name, module in value.named_modules()
                if name and type(module) in (nn.Linear, nn.Conv2d, nn.Conv1d)
            ]
            noisy = (nn.Dropout, nn.BatchNorm1d, nn.BatchNorm2d, nn.Dropout2d)
            fact.random = any(isinstance(module, noisy) for module in value.modules())


class _Instrument(ast.NodeTransformer):
    """Wraps each expression whose value is read into a call of the probe."""

    def __init__(self, keys: list[Key]) -> None:
        self.keys = keys

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(s) for s in node.body]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = [self.visit(s) for s in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value:
            node.value = self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        key = key_of(node)
        if not isinstance(node.func, ast.Name) or node.func.id != "super":
            node.func = self.visit(node.func)
        node.args = [self.visit(a) for a in node.args]
        node.keywords = [self.visit(k) for k in node.keywords]
        return self._noted(node, key)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        plain = isinstance(
            node, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp | ast.UnaryOp | ast.List | ast.Tuple
        )
        key = key_of(node) if isinstance(node, ast.expr) and plain else None
        reads = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        super().generic_visit(node)
        if key and reads:
            assert isinstance(node, ast.expr)
            return self._noted(node, key)
        return node

    def _noted(self, node: ast.expr, key: Key) -> ast.expr:
        self.keys.append(key)
        number = ast.Constant(len(self.keys) - 1)
        call = ast.Call(ast.Name("__note__", ast.Load()), [number, node], [])
        return ast.copy_location(call, node)


def instrumented(text: str, name: str) -> tuple[Any, Probe]:
    """The code of the copy, which finds the probe under the name `__note__`."""
    probe = Probe()
    tree = _Instrument(probe.keys).visit(ast.parse(text))
    return compile(ast.fix_missing_locations(tree), name, "exec", dont_inherit=True), probe


def as_plain(facts: dict[Key, Fact]) -> list[list[Any]]:
    return [[list(key), asdict(fact)] for key, fact in facts.items()]


def from_plain(plain: list[list[Any]]) -> dict[Key, Fact]:
    return {(k[0], k[1], k[2], k[3]): Fact(**fact) for k, fact in plain}
