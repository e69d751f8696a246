"""Which tensor is this: numbers that outlive addresses, and weak references that swapping does not notice."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from gradtrace.watcher.core.identity import Identities


@pytest.fixture
def ids() -> Identities:
    return Identities()


@pytest.fixture
def swapping() -> Iterator[None]:
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_a_tensor_keeps_its_number(ids: Identities) -> None:
    one, other = torch.ones(2), nn.Parameter(torch.ones(2))
    assert ids.of(one) == ids.of(one) != ids.of(other) == ids.of(other)


def test_a_number_is_never_given_twice(ids: Identities) -> None:
    numbers, addresses = set(), set()
    for _ in range(20):
        tensor = torch.ones(2, requires_grad=True)
        numbers.add(ids.of(tensor))
        addresses.add(id(tensor))
        del tensor
    assert len(numbers) == 20 > len(addresses)


def test_what_was_never_met_has_no_number(ids: Identities) -> None:
    assert not ids.known(torch.ones(2))


def test_a_tensor_that_only_its_graph_holds_is_alive(ids: Identities) -> None:
    leaf = torch.ones(2, requires_grad=True)
    number, root = ids.of(leaf), leaf.sum()
    del leaf
    gc.collect()
    assert root.grad_fn is not None
    assert ids.known(root.grad_fn.next_functions[0][0].variable) == number  # type: ignore[union-attr]


def test_tables_forget_the_dead(ids: Identities) -> None:
    table = ids.table(dict[int, str]())
    one, other = torch.ones(2), torch.ones(2)
    table[ids.of(one)], table[ids.of(other)] = "one", "other"
    del one
    ids.forget_dead()
    assert list(table.values()) == ["other"]


@pytest.mark.usefixtures("swapping")
def test_a_parameter_that_was_met_can_be_swapped(ids: Identities) -> None:
    model = nn.Linear(2, 2)
    number = ids.of(model.weight)
    swap = torch.utils.swap_tensors
    with ids.watched():
        model.to(torch.float64)
    assert model.weight.dtype == torch.float64
    assert ids.known(model.weight) == number
    assert torch.utils.swap_tensors is swap


def test_a_swap_of_the_script_own_stays(ids: Identities) -> None:
    swap = torch.utils.swap_tensors
    try:
        with ids.watched():
            torch.utils.swap_tensors = print  # type: ignore[assignment]
        assert torch.utils.swap_tensors is print
    finally:
        torch.utils.swap_tensors = swap
