"""Faults between ranks, each with correct programs that look alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(data):
    optimizer.zero_grad()
    loss_fn(model(x), y).backward()
    optimizer.step()
"""
BAD = {
    "no wrapper": """
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()  # <- rank-divergence
    """,
    "no wrapper, logs and barriers": """
        model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for x, y in data:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()  # <- rank-divergence
            shown = loss.detach().clone()
            dist.all_reduce(shown)
            dist.barrier()
    """,
    "a seed that differs": """
        torch.manual_seed(rank)
        model = nn.Linear(8, 1)  # <- rank-divergence
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= world
            optimizer.step()
    """,
    "a step on one rank": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            if rank == 0:
                optimizer.step()  # <- rank-divergence
    """,
    "made after wrapping": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 4)
                self.head = None

            def forward(self, x):
                return self.head(self.body(x)) if self.head is not None else self.body(x)

        net = Net()
        model = DDP(net)
        net.head = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()  # <- rank-divergence
    """,
    "weights written on one rank": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data * 2):
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()  # <- rank-divergence
            if rank == 0 and i == 1:
                with torch.no_grad():
                    model.module.weight.mul_(0.5)
    """,
    "through .module": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            optimizer.zero_grad()
            loss_fn(model.module(x), y).backward()  # <- unreduced-grad
            optimizer.step()
    """,
    "no_sync around every backward": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data):
            with model.no_sync():
                loss_fn(model(x), y).backward()  # <- unreduced-grad
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
    """,
    "no_sync at the wrong micro-batch": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data):
            with model.no_sync() if i % 2 else contextlib.nullcontext():
                loss_fn(model(x), y).backward()  # <- unreduced-grad
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
    """,
    "the same loader on each rank": """
        dataset = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in DataLoader(dataset, batch_size=4, shuffle=True):
            optimizer.zero_grad()
            out = model(x)  # <- same-data
            loss_fn(out, y).backward()
            optimizer.step()
    """,
    "no set_epoch": """
        dataset = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
        loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            for x, y in loader:  # <- same-data
                optimizer.zero_grad()
                loss_fn(model(x), y).backward()
                optimizer.step()
    """,
    "a branch skips a parameter": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.gate = nn.Linear(8, 8), nn.Linear(8, 8)
                self.head = nn.Linear(8, 1)

            def forward(self, x, step):
                h = self.body(x)
                if step % 2 == 0:  # <- unfinished-reduction
                    h = h * torch.sigmoid(self.gate(x))
                return self.head(h)

        model = DDP(Net())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data):
            optimizer.zero_grad()
            loss_fn(model(x, i), y).backward()
            optimizer.step()
    """,
    "a layer that nothing uses": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 1)
                self.spare = nn.Linear(8, 1)  # <- unfinished-reduction

            def forward(self, x):
                return self.body(x)

        model = DDP(Net())
    """
    + LOOP.replace("\n", "\n        "),
    "a search for nothing": """
        model = DDP(nn.Linear(8, 1), find_unused_parameters=True)  # <- unneeded-find-unused
    """
    + LOOP.replace("\n", "\n        "),
    "a reduction in each micro-batch": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data):
            (loss_fn(model(x), y) / 2).backward()  # <- reduced-micro-batches
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
    """,
    "a head on gathered features": """
        model = DDP(nn.Linear(8, 4))
        head = DDP(nn.Linear(4, 1))
        optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
        for x, y in data:
            z = model(x)
            parts = [torch.zeros_like(z) for _ in range(world)]
            dist.all_gather(parts, z)  # <- gathered-constant
            loss = head(torch.cat(parts)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    "gathered for one side of a loss": """
        model = DDP(nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            z = F.normalize(model(x), dim=1)
            others = [torch.zeros_like(z) for _ in range(world)]
            dist.all_gather(others, z)  # <- gathered-constant
            loss = F.cross_entropy(z @ torch.cat(others).T / 0.1, torch.arange(len(z)) + rank * len(z))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    "fewer batches on one rank": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(6 - 2 * rank):
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()  # <- left-early
            optimizer.step()
    """,
}

GOOD = {
    "plain": "model = DDP(nn.Linear(8, 1))" + LOOP,
    "no_sync accumulation": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data):
            last = i % 3 == 2
            with contextlib.nullcontext() if last else model.no_sync():
                (loss_fn(model(x), y) / 3).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    """,
    "uneven inputs with Join": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with Join([model]):
            for x, y in batches(6 - 2 * rank):
                optimizer.zero_grad()
                loss_fn(model(x), y).backward()
                optimizer.step()
    """,
    "gradient checkpointing": """
        from torch.utils.checkpoint import checkpoint

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1)

            def forward(self, x):
                return self.c(checkpoint(lambda h: torch.tanh(self.b(h)), torch.tanh(self.a(x)), use_reentrant=False))

        model = DDP(Net())
    """
    + LOOP.replace("\n", "\n        "),
    "EMA on rank 0 only": """
        model = DDP(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)))
        mean = copy.deepcopy(model.module).requires_grad_(False) if rank == 0 else None
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for x, y in data:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
            if mean is not None:
                with torch.no_grad():
                    for slow, fast in zip(mean.parameters(), model.module.parameters()):
                        slow.lerp_(fast, 0.1)
    """,
    "evaluation on rank 0 only": """
        model = DDP(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 1)))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for epoch in range(3):
            model.train()
            for x, y in data:
                optimizer.zero_grad()
                loss_fn(model(x), y).backward()
                optimizer.step()
            if rank == 0:
                model.eval()
                with torch.no_grad():
                    sum(loss_fn(model.module(x), y).item() for x, y in data)
            dist.barrier()
    """,
    "gradients reduced by hand": """
        model = nn.Linear(8, 1)
        for parameter in model.parameters():
            dist.broadcast(parameter.data, 0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= world
            optimizer.step()
    """,
    "parameters averaged after each step": """
        model = nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data):
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                for parameter in model.parameters():
                    dist.all_reduce(parameter)
                    parameter /= world
    """,
    "no_sync, then reduced by hand": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            optimizer.zero_grad()
            with model.no_sync():
                loss_fn(model(x), y).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= world
            optimizer.step()
    """,
    "a sampler that is told the epoch": """
        dataset = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
        sampler = DistributedSampler(dataset)
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            sampler.set_epoch(epoch)
            for x, y in DataLoader(dataset, batch_size=4, sampler=sampler):
                optimizer.zero_grad()
                loss_fn(model(x), y).backward()
                optimizer.step()
    """,
    "a sampler of evaluation": """
        dataset = TensorDataset(torch.randn(8, 8), torch.randn(8, 1))
        loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(2):
            for x, y in batches(4, seed=2 * epoch + rank):
                optimizer.zero_grad()
                loss_fn(model(x), y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for x, y in loader:
                    loss_fn(model(x), y)
            model.train()
    """,
    "a parameter that is unused now and then": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.extra = nn.Linear(8, 1), nn.Linear(8, 1)

            def forward(self, x, wide):
                return self.body(x) + self.extra(x) if wide else self.body(x)

        model = DDP(Net(), find_unused_parameters=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data):
            optimizer.zero_grad()
            loss_fn(model(x, i % 2 == 0), y).backward()
            optimizer.step()
    """,
    "two losses of a GAN": """
        G, D = DDP(nn.Linear(4, 8)), DDP(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)))
        og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
        torch.manual_seed(rank)
        for x, _ in data:
            od.zero_grad()
            (D(torch.cat([x, G(torch.randn(8, 4)).detach()]))[:8]).mean().backward()
            od.step()
            og.zero_grad()
            with torch.no_grad():
                pass
            for parameter in D.parameters():
                parameter.requires_grad_(False)
            (-D.module(G(torch.randn(8, 4))).mean()).backward()
            for parameter in D.parameters():
                parameter.requires_grad_(True)
            og.step()
    """,
    "features put back among the gathered": """
        model = DDP(nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            z = model(x)
            parts = [torch.zeros_like(z) for _ in range(world)]
            dist.all_gather(parts, z)
            parts[rank] = z
            loss = torch.cat(parts).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    "metrics gathered": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            loss = loss_fn(model(x), y)
            shown = [torch.zeros(()) for _ in range(world)]
            dist.all_gather(shown, loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.stack(shown).mean().item()
    """,
    "a queue of keys": """
        model = DDP(nn.Linear(8, 4))
        slow = copy.deepcopy(model.module).requires_grad_(False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in data:
            q = model(x)
            with torch.no_grad():
                k = slow(x)
                keys = [torch.zeros_like(k) for _ in range(world)]
                dist.all_gather(keys, k)
            loss = (q @ torch.cat(keys).T).logsumexp(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    "stages of a pipeline": """
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.manual_seed(rank)
        nn.init.normal_(model.weight)
        for x, y in batches(seed=0):
            optimizer.zero_grad()
            if rank == 0:
                out = torch.tanh(model(x))
                dist.send(out.detach(), 1)
                back = torch.empty_like(out)
                dist.recv(back, 1)
                out.backward(back)
            else:
                got = torch.empty(8, 8)
                dist.recv(got, 0)
                got.requires_grad_()
                model(got).square().mean().backward()
                dist.send(got.grad, 0)
            optimizer.step()
    """,
    "FSDP2": """
        from torch.distributed.fsdp import fully_shard

        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
        fully_shard(model)
    """
    + LOOP.replace("\n", "\n        "),
    "a learning rate warm-up and clipping": """
        model = DDP(nn.Linear(8, 1))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=4)
        for x, y in data:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    """,
}


@pytest.mark.parametrize("name", BAD)
def test_a_fault_between_ranks(name: str, check_ranks: Callable[..., Any]) -> None:
    checked = check_ranks(BAD[name])
    (rule,) = {rule for rule, _ in checked.marked}
    assert checked.by(rule) == checked.marked, checked.text
    # others may have something to say of what follows from the fault, but no second rule between ranks has
    others = {"rank-divergence", "unreduced-grad", "same-data", "left-early"} - {rule}
    assert not {found for found, _ in checked.found} & others, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_a_correct_program_of_several_ranks(name: str, check_ranks: Callable[..., Any]) -> None:
    checked = check_ranks(GOOD[name])
    assert not checked.found, checked.text
    assert checked.explained, checked.text


@pytest.mark.parametrize("name", ["plain", "no_sync accumulation", "uneven inputs with Join"])
def test_four_ranks(name: str, check_ranks: Callable[..., Any]) -> None:
    assert not check_ranks(GOOD[name], size=4).found
    checked = check_ranks(BAD["through .module"], size=4)
    assert checked.by("unreduced-grad") == checked.marked
