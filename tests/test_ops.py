"""The tables of names of torch's operations hold what torch of this version calls them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gradtrace.watcher.faults import flaws
from gradtrace.watcher.graph import ops

Tensor = torch.Tensor


def name_of(compute: Callable[[Tensor], Tensor]) -> str:
    """The name of the node that this makes of a [2, 2] tensor with a graph."""
    return type(compute(torch.full((2, 2), 0.5, requires_grad=True).clone()).grad_fn).__name__


@pytest.mark.parametrize(
    "function", [*"t t_ transpose transpose_ unsqueeze unsqueeze_ squeeze squeeze_ view select expand exp".split()]
)
def test_views_are_told_from_what_computes(function: str) -> None:
    arguments = {"transpose": (0, 1), "unsqueeze": (0,), "view": (4,), "select": (0, 0), "expand": (3, 2, 2)}
    node = name_of(lambda x: getattr(x, function)(*arguments.get(function.strip("_"), ())))
    assert (node in ops.VIEWS) == (function != "exp")


@pytest.mark.parametrize(
    ("compute", "table"),
    [
        (lambda x: torch.stack([x, x]), ops.JOINS),
        (lambda x: torch.cat([x, x]), ops.JOINS),
        (lambda x: x.to(torch.float64), ops.SAME_VALUES),
        (lambda x: torch.dropout(x, 0.5, True), ops.SAME_WEIGHTS | ops.FACTORS),
        (lambda x: x.masked_fill(x > 0, 1.0), ops.FILLS),
        (lambda x: x / 2, ops.FACTORS),
        (lambda x: x @ x, ops.PRODUCTS.keys() & ops.MATMULS & ops.LINEAR_LAYERS),
        (lambda x: x.mean(), ops.FULL_REDUCTIONS & ops.MEANS),
        (lambda x: x.mean(0), ops.POOLINGS.keys() & ops.MEANS),
        (lambda x: x.softmax(0), ops.SOFTMAXES & ops.PROBABILITIES.keys()),
        (lambda x: x.log_softmax(0), ops.SOFTMAXES & ops.NORMALIZED.keys()),
        (lambda x: x.sign(), ops.ZERO_SLOPE),
        (lambda x: x.relu(), ops.SIGN_SAVED),
        (lambda x: torch.layer_norm(x, (2,)), ops.NORMALIZATIONS & ops.SINGULAR.keys()),
        (lambda x: torch.linalg.det(x), ops.FRAGILE.keys()),
        (lambda x: x.norm(), ops.OVERFLOWING),
        (lambda x: x - x, ops.AT_REST.keys()),
    ],
)
def test_an_operation_is_in_its_table(compute: Callable[[Tensor], Tensor], table: frozenset[str]) -> None:
    assert name_of(compute) in table


def test_every_kind_of_singular_operation_has_a_check() -> None:
    assert set(ops.SINGULAR.values()) == set(flaws._LOOKS)


@pytest.mark.parametrize(
    ("function", "writes"),
    [
        *(("add_", True), ("__iadd__", True), ("__setitem__", True), ("zero_", True)),
        *(("add", False), ("__add__", False), ("__invert__", False), ("__init__", False), ("requires_grad_", False)),
    ],
)
def test_what_writes_in_place(function: str, writes: bool) -> None:
    assert ops.writes_in_place(function) is writes


@pytest.mark.parametrize(
    ("node", "name"),
    [("MulBackward0", "mul"), ("LogSoftmaxBackward0", "logsoftmax"), ("SelectBackward0", "indexing"), ("Mine", "mine")],
)
def test_operations_have_names_that_users_know(node: str, name: str) -> None:
    assert ops.spoken(node) == name


def test_a_mean_a_sum_and_a_loss_reduce_and_a_difference_compares() -> None:
    assert all(map(ops.is_reduction, ("MeanBackward1", "SumBackward0", "MseLossBackward0", "MyLossBackward")))
    assert not any(map(ops.is_reduction, ("SubBackward0", "StdMeanBackward0")))
    assert all(map(ops.is_comparison, ("SubBackward0", "RsubBackward1", "MseLossBackward0", "DistBackward0")))


def test_a_weight_computes_in_products_of_matrices_and_not_in_a_lookup() -> None:
    assert all(map(ops.computes_with_weight, ("AddmmBackward0", "MmBackward0", "ConvolutionBackward0")))
    assert not ops.computes_with_weight("EmbeddingBackward0")
