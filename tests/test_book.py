"""The book of gradients, below the watch: what leaves hold, and what became of it."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

from gradtrace.model.events import Contribution
from gradtrace.model.site import Site, Stack
from gradtrace.watcher.core.book import Act, Book, CallRecord, state
from gradtrace.watcher.core.identity import Identities

KEY = 7
OTHER = 8
STEP: Stack = (Site("/nowhere/train.py", 9, "train"),)


class Desk:
    """A book, and parameters of one or two optimizers."""

    def __init__(self) -> None:
        self.first, self.second = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
        self.owners = {id(self.first): frozenset({KEY}), id(self.second): frozenset({KEY})}
        self.book = Book(Identities(), lambda tensor: self.owners.get(id(tensor), frozenset()))
        self.calls = 0
        for name, one in (("first", self.first), ("second", self.second)):
            self.book.add(one, name)

    def backward(self, *leaves: torch.Tensor) -> CallRecord:
        self.calls += 1
        record = CallRecord(Contribution(self.calls, (Site("/nowhere/train.py", 8, "train"),), "loss", self.calls))
        before = []
        for one in leaves:
            leaf = self.book.known(one)
            assert leaf is not None
            self.book.before_backward([(one, leaf)])
            before.append((one, leaf, state(one.grad)))
        torch.stack([one.sum() for one in leaves]).sum().backward()  # type: ignore[no-untyped-call]
        self.book.after_backward(before, record)
        return record

    def step(self, key: int = KEY) -> list[tuple[int, int]]:
        """Of each group of leaves with one history: how many calls it sums, and how many of them had been used."""
        found = self.book.step([self.first, self.second], key, STEP, self.calls)
        return [(len(use.contributions), use.used) for use in found.uses]


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_leaves_with_one_history_share_it(desk: Desk) -> None:
    desk.backward(desk.first, desk.second)
    desk.backward(desk.first, desk.second)
    one, other = desk.book.known(desk.first), desk.book.known(desk.second)
    assert one is not None
    assert other is not None
    assert one.shares is other.shares
    assert desk.step() == [(2, 0)]


def test_what_a_step_has_used_is_known_at_the_next_one(desk: Desk) -> None:
    desk.backward(desk.first, desk.second)
    assert desk.step() == [(1, 0)]
    desk.backward(desk.first, desk.second)
    assert desk.step() == [(2, 1)]
    assert desk.book.stepped.stale


@pytest.mark.parametrize("how", ["none", "zero", "another"])
def test_a_clearing_that_was_not_seen_is_noticed(desk: Desk, how: str) -> None:
    desk.backward(desk.first, desk.second)
    desk.step()
    for one in (desk.first, desk.second):
        if how == "none":
            one.grad = None
        elif how == "zero":
            assert one.grad is not None
            one.grad.data.mul_(0)
        else:
            one.grad = torch.zeros_like(one)
    desk.backward(desk.first, desk.second)
    assert desk.step() == [(1, 0)]


def test_a_partly_cleared_group_is_split(desk: Desk) -> None:
    desk.backward(desk.first, desk.second)
    desk.step()
    desk.first.grad = None
    desk.backward(desk.first, desk.second)
    assert sorted(desk.step()) == [(1, 0), (2, 1)]


def test_what_is_cleared_unused_is_lost_to_the_next_step(desk: Desk) -> None:
    lost = desk.backward(desk.first, desk.second)
    for one in (desk.first, desk.second):
        leaf = desk.book.known(one)
        assert leaf is not None
        one.grad = None
        desk.book.clear(leaf, STEP)
    desk.backward(desk.first, desk.second)
    desk.step()
    (found,) = desk.book.stepped.lost
    assert (found.share.call, found.stack, found.elsewhere) == (lost, STEP, False)
    assert not desk.book.lost_by(KEY)


def test_what_another_optimizer_used_is_new_to_this_one(desk: Desk) -> None:
    desk.owners[id(desk.first)] = desk.owners[id(desk.second)] = frozenset({KEY, OTHER})
    call = desk.backward(desk.first, desk.second)
    desk.step(OTHER)
    assert call.users() == {OTHER: 1}
    desk.step(KEY)
    assert list(desk.book.stepped.new.values()) == [call]


def test_a_share_remembers_what_happened_to_it(desk: Desk) -> None:
    call = desk.backward(desk.first, desk.second)
    (share,) = call.portions.values()
    assert (share.names, share.count) == (["first", "second"], 2)
    share.note(Act.READ)
    share.note(Act.READ)
    assert len(share.fates) == 1
    assert call.had(Act.READ)
    assert not call.had(Act.CHECKED)


def test_inputs_have_a_share_of_their_own(desk: Desk) -> None:
    x = torch.ones(2, requires_grad=True)
    desk.book.add(x, "x")
    call = desk.backward(desk.first, x)
    assert [share.names for share in call.portions.values()] == [["first"]]
    assert call.inputs.names == ["x"]
    assert desk.book.kept(x) is None


def test_no_cycle_keeps_what_is_cleared(desk: Desk) -> None:
    gc.collect()
    gc.disable()
    try:
        call = weakref.ref(desk.backward(desk.first))
        leaf = desk.book.known(desk.first)
        assert leaf is not None
        leaf.empty()
        assert call() is None
    finally:
        gc.enable()
