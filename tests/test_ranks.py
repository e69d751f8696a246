"""Jobs of several ranks give one report, whoever of them dies, and whatever has started them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gradtrace.host.boards import DirectoryBoard
from gradtrace.host.ranks import Colleagues
from gradtrace.model.finding import Ended, Finding, Level
from gradtrace.model.ranks import Account, LastSeen
from gradtrace.model.site import Site
from gradtrace.report.accounts import judged_together, packed, remarks, unpacked
from gradtrace.rules import Judge, in_words
from tests.jobs import PREAMBLE, Jobs

ROOT = Path(__file__).parents[1]
#: rank 1 forgets to clear its gradients
TRAINING = """
model = DDP(nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.manual_seed(rank)
for i in range(6):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    moment(f"before backward {i}")
    loss.backward()  # STALE
    moment(f"after backward {i}")
    optimizer.step()
    if rank == 0:
        optimizer.zero_grad()
moment("after the loop")
dist.destroy_process_group()
moment("at the end")
"""
#: a rank kills itself at a moment that the command line names
MOMENTS = """
import atexit, os, signal, sys
RANK, MOMENT = int(os.environ.get("RANK", 0)), (sys.argv[1:] or ["none"])[0]
def moment(name):
    if f"{name} on rank {RANK}" == MOMENT:
        os.kill(os.getpid(), signal.SIGKILL)
moment("before joining")
"""
SCRIPT = MOMENTS + PREAMBLE.replace("seconds=20", "seconds=4") + 'moment("after joining")\n' + TRAINING


def stale(report: dict[str, object]) -> list[dict[str, object]]:
    return [one for one in report["findings"] if one["rule"] == "stale-grad"]  # type: ignore[attr-defined]


def test_rank_0_reports_for_all(jobs: Jobs) -> None:
    done = jobs.run(SCRIPT)
    (finding,) = stale(done.report)
    assert finding["ranks"] == [1]
    assert str(finding["message"]).endswith("(on rank 1)")
    assert done.statuses == (1, 0)
    assert done.report["remarks"] == []
    assert done.report["run"]["backward_calls"] == 6
    assert [path.name for path in done.folder.glob("report*")] == ["report.json"]


def test_four_ranks_name_those_that_found_it(jobs: Jobs) -> None:
    done = jobs.run(SCRIPT, size=4)
    (finding,) = stale(done.report)
    assert finding["ranks"] == [1, 2, 3]
    assert str(finding["message"]).endswith("(on ranks 1 to 3)")


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    "moment",
    ["before joining", "after joining", "before backward 0", "after backward 3", "after the loop", "at the end"],
)
def test_a_killed_rank_leaves_a_report(moment: str, rank: int, jobs: Jobs) -> None:
    done = jobs.run(SCRIPT, arguments=[f"{moment} on rank {rank}"])
    report = done.report
    assert done.statuses[rank] == -9
    assert f"rank {rank} of 2 is missing from this report" in report["remarks"]
    assert any(one.startswith(f"rank {rank} has died: it was last seen") for one in report["remarks"]), report[
        "remarks"
    ]
    assert report["exit_code"] == done.statuses[1 - rank] == 3
    if moment in ("after backward 3", "after the loop", "at the end"):
        assert stale(report)[0]["ranks"] == [1], "what a rank had found before it died is known"


@pytest.mark.parametrize("rank", [0, 1])
def test_an_internal_error_on_any_rank_is_never_health(rank: int, jobs: Jobs) -> None:
    broken = f"""
from gradtrace.rules.stale_grad import StaleGrad
def broken(self, event):
    raise KeyError("ours")
if rank == {rank}:
    StaleGrad.see = broken
"""
    healthy = TRAINING.replace("    if rank == 0:\n        optimizer.zero_grad()", "    optimizer.zero_grad()")
    done = jobs.run(SCRIPT.replace(TRAINING, broken + healthy))
    assert not done.report["findings"]
    assert done.report["exit_code"] == done.statuses[0] == 4
    assert any("internal error" in remark for remark in done.report["remarks"])


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_fails_says_how(rank: int, jobs: Jobs) -> None:
    script = SCRIPT.replace('    moment(f"after backward {i}")\n', f"    assert i < 3 or rank != {rank}, 'no more'\n")
    done = jobs.run(script)
    assert done.report["exit_code"] == 3
    told = " ".join(done.report["remarks"]) + done.outputs[0]
    assert "AssertionError: no more" in told


def test_a_launcher_that_only_numbers_the_ranks(jobs: Jobs) -> None:
    done = jobs.run(SCRIPT, environment={"LOCAL_RANK": None, "LOCAL_WORLD_SIZE": None})
    assert stale(done.report)[0]["ranks"] == [1]


def test_without_a_store_each_rank_has_its_files_and_merge_joins_them(jobs: Jobs) -> None:
    """No process group and no address: the ranks cannot know of each other."""
    script = """
        import os, torch
        weight = torch.ones(2, requires_grad=True)
        for step in range(1 + 3 * (os.environ["RANK"] == "1")):
            weight.square().sum().backward()
            with torch.no_grad():
                weight.sub_(0.1 * weight.grad)
    """
    environment = dict.fromkeys(("LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))
    done = jobs.run(script, "--record", "run.jsonl", environment=environment)
    assert sorted(path.name for path in done.folder.glob("r*.json*")) == [
        *("report.json", "report.rank1.json", "run.jsonl", "run.rank1.jsonl")
    ]
    assert not stale(done.report)
    merged = gradtrace("merge", "run.rank1.jsonl", "run.jsonl", "--format", "json", folder=done.folder)
    (finding,) = stale(json.loads(merged.stdout))
    assert finding["ranks"] == [1]
    assert merged.returncode == 1


def test_merged_recordings_give_the_report_of_the_job(jobs: Jobs) -> None:
    done = jobs.run(SCRIPT, "--record", "run.jsonl")
    merged = gradtrace("merge", "run.jsonl", "run.rank1.jsonl", "--format", "json", folder=done.folder)
    assert json.loads(merged.stdout) == done.report


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["run.jsonl"], "merge takes the recordings of two or more ranks"),
        (["run.jsonl", "run.jsonl"], "is a second recording of rank 0"),
        (["run.jsonl", "missing.jsonl"], "cannot read the recording missing.jsonl"),
    ],
)
def test_what_cannot_be_merged(files: list[str], message: str, jobs: Jobs, tmp_path: Path) -> None:
    head = {"format": "gradtrace.events", "version": 2, "torch": "2", "script": "x.py", "directory": "/"}
    (tmp_path / "run.jsonl").write_text(json.dumps(head | {"rank": 0, "ranks": 2}) + "\n", encoding="utf-8")
    done = gradtrace("merge", *files, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


SPAWNED = """
import os, sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

def work(rank, port):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    model = DDP(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for i in range(4):
        if (rank, i) == (1, 2) and sys.argv[1:] == ["die"]:
            os.kill(os.getpid(), 9)
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
        if rank == 0:
            optimizer.zero_grad()
    print("done", rank)

if __name__ == "__main__":
    mp.spawn(work, args=(PORT,), nprocs=2)
"""


@pytest.mark.parametrize("dies", [False, True])
def test_ranks_that_the_script_spawns_are_watched(dies: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SPAWNED.replace("PORT", str(free_port())), encoding="utf-8")
    words = ["train.py", *(["die"] if dies else [])]
    done = gradtrace("check", "-o", "report.json", *words, folder=tmp_path)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    if dies:
        assert "rank 1 of 2 is missing from this report" in report["remarks"]
        assert done.returncode == 3
        return
    assert stale(report)[0]["ranks"] == [1]
    assert report["run"]["backward_calls"] == 4
    assert sorted(done.stdout.split("\n")) == ["", "done 0", "done 1"]
    assert done.returncode == 1


def test_two_agents_of_torchrun_give_one_report(tmp_path: Path) -> None:
    """They stand for two machines."""
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    port = free_port()
    agents = []
    for node in range(2):
        words = ["--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(node), "--master-port", str(port)]
        command = [sys.executable, "-m", "torch.distributed.run", *words, "-m", "gradtrace", "check"]
        agents.append(start(*command, "-o", f"report{node}.json", "--fail-on", "error", "train.py", folder=tmp_path))
    outputs = [agent.communicate(timeout=240) for agent in agents]
    (written,) = tmp_path.glob("report*.json")
    assert written.name == "report0.json", outputs
    report = json.loads(written.read_text(encoding="utf-8"))
    assert stale(report)[0]["ranks"] == [1]
    assert report["remarks"] == []


# --- many ranks ------------------------------------------------------------------------------------------------------


def account_of(rank: int) -> Account:
    """An account as large as accounts get."""
    findings = tuple(
        Finding("stale-grad", Level.ERROR, "m" * 200, "h" * 100, Site("/home/me/train.py", line, "train"))
        for line in range(1, 60)
    )
    return Account(rank, "host", Ended("finished"), 1000, 1000, findings)


def test_an_account_is_bounded_and_comes_back() -> None:
    account = account_of(3)
    message = packed(account)
    assert len(message) < 4096
    found = unpacked(message)
    assert found.rank == 3
    assert found.findings == account.findings[:50]


def test_a_thousand_ranks_are_joined_with_work_and_memory_that_are_bounded() -> None:
    size = 1024
    messages = [packed(account_of(rank)) for rank in range(1, size)]
    judge, calls = Judge(), 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        others = [unpacked(message) for message in messages]
        judged_together(judge, size, account_of(0), others, {})
    finally:
        sys.setprofile(None)
    # rank 0 has its findings from its own judge
    assert [len(finding.ranks) for finding in judge.findings] == [size - 1] * 50
    print(calls / size)
    assert calls < 1_500 * size


def test_ranks_in_words() -> None:
    assert in_words([3]) == "rank 3"
    assert in_words([5, 1, 0, 2]) == "ranks 0 to 2, 5"
    assert in_words([1, 2]) == "ranks 1, 2"
    assert in_words(range(0, 100, 2)) == "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 42 more"


def test_missing_ranks_are_named_with_what_was_last_seen() -> None:
    sign = LastSeen(1, "elsewhere", 1, 0.0, "running backward", 40, 39, "train.py", 31)
    found = remarks(3, 0, [], {1: sign, 2: None})
    assert found[0] == "ranks 1, 2 of 3 are missing from this report"
    assert "running backward at train.py:31 after 40 backward calls and 39 steps" in found[1]
    assert found[2] == "rank 2 was never seen"


def test_a_rank_that_hangs_is_waited_for_no_longer_than_it_gives_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is ours: each look takes a second."""
    now = iter(range(10_000))
    monkeypatch.setattr("gradtrace.host.ranks.time.monotonic", lambda: float(next(now)))
    monkeypatch.setattr("gradtrace.host.ranks.time.sleep", lambda seconds: None)
    monkeypatch.setattr("gradtrace.host.ranks.is_alive", lambda sign: None)
    first = Colleagues.of_starter(0, 2, str(tmp_path))
    first.collected_elsewhere = False
    gathered = first.settle(b"mine", orderly=True, hurried=False)
    assert gathered is not None
    assert gathered.missing == {1: None}
    assert next(now) < 100


@pytest.mark.parametrize("removed", [False, True])
def test_a_rank_that_comes_late_does_not_stay(removed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is written, or another rank has claimed it and gives no sign of life."""
    now = iter(range(10_000))
    monkeypatch.setattr("gradtrace.host.ranks.time.monotonic", lambda: float(next(now)))
    monkeypatch.setattr("gradtrace.host.ranks.time.sleep", lambda seconds: None)
    meeting = tmp_path / "meeting"
    late = Colleagues.of_starter(1, 2, str(meeting))
    late.collected_elsewhere = False
    if removed:
        DirectoryBoard(meeting).remove()
    else:
        for number in range(10):
            assert DirectoryBoard(meeting).claim(f"writer-{number}")
    assert late.settle(b"mine", orderly=False, hurried=False) is None
    assert next(now) < 1_000


# --- distributed tensors ---------------------------------------------------------------------------------------------

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))

model = Net()
"""
TENSOR_PARALLEL = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
parallelize_module(model, init_device_mesh("cpu", (2,)), plan)
"""
SHARDED = "from torch.distributed.fsdp import fully_shard\nfully_shard(model)\n"
STEPS = """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for i in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).square().mean().backward()
    optimizer.step()
"""


def test_a_distributed_parameter_has_its_whole_shape_and_its_placement(jobs: Jobs) -> None:
    script = PREAMBLE + NET + TENSOR_PARALLEL + STEPS
    shown = jobs.run(script, "--grad", command="show").outputs[1]
    (up,) = re.findall("◆ up.weight.*", shown)
    assert "[16, 8]" in up
    assert "of the local shard" in up
    assert up.endswith("(Shard(0) of 2 ranks)")
    (bias,) = re.findall("◆ down.bias.*", shown)
    assert "local shard" not in bias
    assert bias.endswith("(Replicate of 2 ranks)")
    drawn = jobs.run(script, command="dot").outputs[0]
    assert "up.weight\\n[16, 8]   grad None\\nShard(0) of 2 ranks" in drawn


def test_a_sharded_parameter_has_one_life_under_its_name(jobs: Jobs) -> None:
    done = jobs.run(PREAMBLE + NET + SHARDED + STEPS, command="why")
    assert done.statuses == (0, 0)
    # the only row of the last layer lies on rank 0
    for output, number in zip(done.outputs, (4, 2), strict=True):
        assert f"trains: {number} parameters, SGD" in output
        assert f"{number} of {number} parameters train" in output
        assert "of the local shard (Shard(0) of 2 ranks)" in output


@pytest.mark.parametrize("parallel", [TENSOR_PARALLEL, SHARDED], ids=["tensor parallel", "FSDP2"])
def test_distributed_parameters_are_no_fault(parallel: str, jobs: Jobs) -> None:
    seed = "torch.manual_seed(rank)" if parallel == SHARDED else ""
    done = jobs.run(PREAMBLE + NET + parallel + seed + STEPS)
    assert done.report["findings"] == []
    assert done.report["remarks"] == []


# --- running things --------------------------------------------------------------------------------------------------


def start(*command: str, folder: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not re.match("RANK|WORLD|LOCAL_|MASTER_", name)}
    environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


def gradtrace(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    process = start(sys.executable, "-m", "gradtrace", *words, folder=folder)
    out, err = process.communicate(timeout=240)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
