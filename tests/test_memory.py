"""How much memory a graph keeps: each once, parameters apart, and in sum what torch really keeps alive."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from gradtrace.graphs import document, memory
from gradtrace.model.graph import Edge, Graph, Kind, Node, Saved, SavedState, TensorFact

LIVE = """\
import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

class Live(TorchDispatchMode):
    '''Remembers the memory of every tensor that is made.'''
    def __init__(self, net):
        super().__init__()
        self.made = {}
        self.own = {one.untyped_storage()._cdata for one in net.state_dict().values()}
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for one in tree_leaves(out):
            if isinstance(one, torch.Tensor) and one.untyped_storage()._cdata not in self.own:
                storage = one.untyped_storage()
                self.made[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        return out
    def alive(self):
        return sum(size for ref, size in self.made.values() if not ref.expired())

torch.manual_seed(0)

net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(), nn.LayerNorm(32), nn.Linear(32, 1))
with Live(net) as live:
    loss = net(torch.randn(16, 8)).square().mean()
print("kept", live.alive())
loss.backward()

net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten())
with Live(net) as live:
    loss = net(torch.randn(2, 3, 16, 16)).exp().sum()
print("kept", live.alive())
loss.backward()

net = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
with Live(net) as live:
    loss = net(torch.randn(2, 5, 16)).mean()
print("kept", live.alive())
loss.backward()

net = nn.ParameterList([torch.randn(64)])
def views(big):
    return (big[:8] * big[8:16]).sum() + (big.view(8, 8).t() @ big[:8]).sum()
with Live(net) as live:
    loss = views(net[0].exp())
print("kept", live.alive())
loss.backward()

net = nn.LSTMCell(4, 8)
with Live(net) as live:
    loss = net(torch.randn(3, 4))[0].square().sum()
print("kept", live.alive())
loss.backward()
"""
#: the loss itself, which no operation saved
LOSS = 4


def test_the_sum_is_what_torch_keeps_alive(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LIVE)
    command = [sys.executable, "-m", "gradtrace", "show", "-o", "graph.json", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kept = [int(number) - LOSS for number in re.findall(r"kept (\d+)", done.stdout)]
    graphs = document.read((tmp_path / "graph.json").read_text(), "graph.json")
    assert [memory.total(graph.nodes) for graph in graphs] == kept
    assert [sum(memory.owned(graph).values()) for graph in graphs] == kept
    assert len(kept) == 5
    assert min(kept) > 0


def saving(*sets: tuple[Saved, ...]) -> Graph:
    """A chain, the loss first, whose nodes saved these."""
    nodes = tuple(
        Node(number, Kind.OP, "SinBackward0", module=f"m{number}", saved=saved, made=len(sets) + 1 - number)
        for number, saved in enumerate(sets, 1)
    )
    return Graph((1,), nodes, tuple(Edge(number, number + 1, 0) for number in range(1, len(sets))))


def one(size: int, storage: int = 0, whole: int = 0, parameter: bool = False, freed: bool = False) -> Saved:
    state = SavedState.FREED if freed else SavedState.HELD
    return Saved("self", TensorFact((size // 4,)), size, state, storage, whole, parameter)


def test_shared_memory_counts_once_and_for_the_node_that_was_first() -> None:
    graph = saving((one(8, 1, 64),), (one(16, 1, 64), one(4, 2, 4)), (one(40),), ())
    assert memory.total(graph.nodes) == 108
    assert memory.owned(graph) == {3: 40, 2: 68, 1: 0}
    assert memory.by(graph, lambda node: node.module) == [("m2", 68, 1), ("m3", 40, 1), ("m1", 0, 1)]


def test_parameters_are_apart_and_what_is_freed_is_gone() -> None:
    graph = saving((one(8, 1, 64, parameter=True),), (one(16, freed=True),), (one(12, 3, 12),))
    assert memory.total(graph.nodes) == 12
    assert memory.total(graph.nodes, parameters=True) == 64
    assert memory.owned(graph) == {3: 12}
