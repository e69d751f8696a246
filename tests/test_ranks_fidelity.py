"""Jobs of several ranks cannot notice that they are watched: the same losses bit for bit, the same collectives in the same
order, the same random numbers, and no further thread."""

from __future__ import annotations

import re
from textwrap import dedent, indent

import pytest

from tests.jobs import PREAMBLE, JobRun, Jobs

DATA = """
import hashlib, threading
from torch.distributed.algorithms.join import Join
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint
made = torch.Generator().manual_seed(rank)
data = [(torch.randn(8, 8, generator=made), torch.randn(8, 1, generator=made)) for _ in range(6)]
losses = []
net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Tanh(), nn.Linear(16, 1))
"""
SHOW = """
print([loss.item().hex() for loss in losses])
names = [event.name for event in profile.function_events]
print([name for name in names if name.startswith("c10d::")])
print(sorted(name for name in names if name.startswith("gloo:")))  # in threads of gloo's own
values = [getattr(one, "to_local", lambda one=one: one)().detach() for one in net.parameters()]
print(hashlib.sha256(b"".join(one.numpy().tobytes() for one in values)).hexdigest())
print(hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest(), threading.active_count())
"""
STEP = """
    optimizer.zero_grad()
    losses.append(F.mse_loss(model(x), y))
    losses[-1].backward()
    optimizer.step()
"""
PROGRAMS = {
    "DDP": "model = DDP(net)\noptimizer = torch.optim.AdamW(model.parameters())\nfor x, y in data:" + STEP,
    "DDP that searches for unused parameters": (
        "model = DDP(net, find_unused_parameters=True)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for x, y in data:" + STEP
    ),
    "FSDP2": "fully_shard(net)\nmodel = net\noptimizer = torch.optim.AdamW(model.parameters())\nfor x, y in data:"
    + STEP,
    "Join": (
        "model = DDP(net)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\nwith Join([model]):\n"
        "    for x, y in data[:6 - 2 * rank]:" + indent(STEP, "    ")
    ),
    "no_sync, clipping and a logged mean": """
model = DDP(net)
optimizer = torch.optim.AdamW(model.parameters())
for i, (x, y) in enumerate(data):
    with contextlib.nullcontext() if i % 2 else model.no_sync():
        losses.append(F.mse_loss(checkpoint(model, x, use_reentrant=False), y))
        losses[-1].backward()
    if i % 2:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        shown = losses[-1].detach().clone()
        dist.all_reduce(shown)
        losses.append(shown)
""",
}


def shown(done: JobRun) -> list[str]:
    """What each rank printed, without the lines of torch's log, which carry the time."""
    return [re.sub(r"^(USDT:|\[rank\d\]:\[W).*\n", "", output, flags=re.MULTILINE) for output in done.outputs]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_job_runs_as_it_runs_unwatched(name: str, jobs: Jobs) -> None:
    profiled = "with torch.autograd.profiler.profile() as profile:\n" + indent(dedent(PROGRAMS[name]), "    ")
    script = PREAMBLE + DATA + profiled + SHOW
    bare, watched = jobs.run(script, bare=True), jobs.run(script)
    assert bare.statuses == (0, 0), bare.outputs
    assert shown(watched) == shown(bare)
    assert "gloo:" in bare.outputs[0], "collectives are seen"
    assert watched.report["remarks"] == []
    assert watched.report["findings"] == [] or name.startswith("DDP that"), watched.report["findings"]
