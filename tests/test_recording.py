"""A recorded run is judged again as it was the first time, without the script and without torch."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import pytest

from gradtrace.errors import DocumentError
from gradtrace.model import events
from gradtrace.model.events import End, Recorded
from gradtrace.model.finding import Ended
from gradtrace.model.site import Site
from gradtrace.report.recording import RecordedRun, Recorder, Recording
from gradtrace.rules import manuals
from tests.conftest import ENVIRONMENT
from tests.rules.conftest import DRIVER, PREAMBLE
from tests.rules.test_manuals import BETWEEN_RANKS, script

if TYPE_CHECKING:
    from tests.conftest import Runner

TRAIN = """
import torch
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(4):
    loss = weight.square().sum()
    loss.backward(retain_graph=True)  # gradtrace: ignore[unneeded-retain] -- why
    optimizer.step()
"""
KINDS = get_args(Recorded)


def sample(hint: Any, full: bool) -> Any:
    """Some value of a type; `full`: nothing is empty, and nothing is what it is by default."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        hints = get_type_hints(hint, {**vars(events), "Site": Site})
        wanted = [one for one in fields(hint) if full or one.default is MISSING]
        return hint(**{one.name: sample(hints[one.name], full) for one in wanted})
    if hint is Site:
        return Site("é.py", 7, "f", *((3, 8, 4, True) if full else ()))
    if origin in (Union, UnionType):
        return sample(next(one for one in arguments if one is not NoneType), full) if full else None
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(sample(one, full) for one in arguments)
    if origin in (tuple, frozenset):
        return origin([sample(arguments[0], full)] if full else [])
    return {int: 7, str: "é\n", bool: full}[hint]


@pytest.mark.parametrize("full", [True, False], ids=["full", "sparse"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_comes_back_as_it_was(kind: type, full: bool, tmp_path: Path) -> None:
    event = sample(kind, full)
    run = RecordedRun("train.py", "2.13.0", os.getcwd(), Ended("exit", 2, "a\nb"), ("a remark",), ("/train.py",))
    recorder = Recorder(tmp_path / "run.jsonl", run.script, run.torch)
    recorder.see(event)
    recorder.see(event)
    recorder.close(run)
    recording = Recording(tmp_path / "run.jsonl")
    assert list(recording.events()) == [event, event]
    assert recording.run == run


def outputs(gradtrace: Runner, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = gradtrace.here("check", "-o", "report.json", *arguments)
    return done.status, json.loads((gradtrace.directory / "report.json").read_text())


@pytest.mark.parametrize("options", [(), ("--select", "stale-grad"), ("--level", "stale-grad=note")])
def test_a_recording_is_judged_as_the_run_was(options: tuple[str, ...], gradtrace: Runner) -> None:
    first = outputs(gradtrace, *options, "--record", "run.jsonl", gradtrace.write(TRAIN))
    assert outputs(gradtrace, *options, "run.jsonl") == first
    assert first[1]["run"]["optimizer_steps"] == 4


def test_a_recording_of_a_crash_is_judged_as_the_run_was(gradtrace: Runner) -> None:
    source = gradtrace.write("import torch\nx = torch.ones(2, requires_grad=True).exp()\nx.backward()\n")
    first = outputs(gradtrace, "--record", "run.jsonl", source)
    assert first[0] == 1
    assert outputs(gradtrace, "run.jsonl") == first


def test_a_recording_needs_neither_torch_nor_the_script(gradtrace: Runner) -> None:
    gradtrace.here("check", "--record", "run.jsonl", gradtrace.write(TRAIN))
    (gradtrace.directory / "train.py").unlink()
    gradtrace.write("raise SystemExit('torch was loaded')", "torch.py")
    gradtrace.environment["PYTHONPATH"] += f"{os.pathsep}{gradtrace.directory}"
    done = gradtrace.alone("check", "run.jsonl")
    assert done.out.startswith("error[stale-grad]: ")
    assert (done.err, done.status) == ("", 1)


JUDGE_AGAIN = """
import sys
sys.modules["torch"] = None
from pathlib import Path
from gradtrace.commands.check import CheckOptions, check
from gradtrace.commands.run import Options
for path in sorted(Path(sys.argv[1]).glob("*.jsonl")):
    outputs = [path.with_name(f"again-{path.stem}{ending}") for ending in (".json", ".sarif", ".txt")]
    check(Options([str(path)], None), CheckOptions(outputs=outputs))
"""


def test_every_fault_is_reported_the_same_when_the_files_are_gone(tmp_path: Path) -> None:
    places = []
    for found in [one for one in manuals() if one.rule not in BETWEEN_RANKS]:
        (tmp_path / f"{found.rule}.py").write_text(PREAMBLE + "# 中文 é\n" + script(found.rule, found.bad))
        places.append(tmp_path / found.rule)
    subprocess.run([sys.executable, str(DRIVER), str(tmp_path), "--record", "--gradcheck"], check=True, env=ENVIRONMENT)
    for place in places:
        place.with_suffix(".py").unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [sys.executable, "-c", JUDGE_AGAIN, str(tmp_path)]
    subprocess.run(command, check=True, cwd=elsewhere, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    for place in places:
        for ending in (".json", ".sarif", ".txt"):
            again = place.with_name(f"again-{place.name}{ending}").read_text()
            # the arguments of the script are not recorded, so what would try edits is not known
            assert again == re.sub(r"`gradtrace fix .*\n$", "", place.with_suffix(ending).read_text())
        assert place.name in again, f"{place.name} was not found at all"


def test_a_file_that_changed_since_is_named_and_shown_as_it_was(gradtrace: Runner) -> None:
    first = outputs(gradtrace, "--record", "run.jsonl", gradtrace.write(TRAIN))[1]
    before = gradtrace.here("check", "run.jsonl").out
    gradtrace.write("a = 1\nb = 2\n" + TRAIN)
    again = outputs(gradtrace, "run.jsonl")[1]
    assert again["remarks"] == ["train.py has changed since the recording; the report shows the recorded text"]
    assert again["findings"] == first["findings"]
    remark = f"remark: {again['remarks'][0]}\n\n"
    assert gradtrace.here("check", "run.jsonl").out.replace(remark, "") == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no named pipes")
@pytest.mark.parametrize("named", ["/dev/zero", "pipe", "/etc/passwd"])
def test_a_recording_names_no_file_to_read(named: str, gradtrace: Runner) -> None:
    os.mkfifo("pipe")
    gradtrace.here("check", "--record", "run.jsonl", gradtrace.write(TRAIN))
    path = os.path.abspath(named)
    text = Path("run.jsonl").read_text().replace(str(gradtrace.directory / "train.py"), path)
    kept = [line for line in text.splitlines(keepends=True) if not line.startswith('{"text"')]
    Path("run.jsonl").write_text("".join(kept))
    done = gradtrace.here("check", "run.jsonl")
    assert "error[stale-grad]: " in done.out
    assert f"--> {named if named == 'pipe' else path}:7:" in done.out
    assert not re.search(r"^ *\d+ │", done.out, re.MULTILINE), "no line is quoted"


def test_a_run_that_was_killed_is_judged_up_to_there(gradtrace: Runner) -> None:
    gradtrace.write(TRAIN + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert gradtrace.alone("check", "--record", "run.jsonl", "train.py").status == -9
    with open("run.jsonl", "a") as file:
        file.write('{"event":"Backw')
    done = gradtrace.here("check", "run.jsonl")
    assert "error[stale-grad]: " in done.out
    assert "remark: the recording has no end: the run was killed" in done.out
    assert re.search("the script was killed by a signal: [12] error", done.out)
    assert done.status == 3


def test_settings_are_those_of_the_script(gradtrace: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    (gradtrace.directory / "sub").mkdir()
    (gradtrace.directory / "sub" / "pyproject.toml").write_text("[tool.gradtrace]\nignore = ['stale-grad']")
    status, _ = outputs(gradtrace, "--record", "run.jsonl", gradtrace.write(TRAIN, "sub/train.py"))
    assert status == 0
    assert outputs(gradtrace, "run.jsonl")[0] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the recording run.jsonl: No such file or directory"),
        (b"\xff\xfe", "cannot read the recording run.jsonl: it is not text"),
        (b"", "run.jsonl is not a gradtrace recording; make one with check --record"),
        (b"[]\n", "run.jsonl is not a gradtrace recording"),
        (b'{"format": "gradtrace.check"}\n', "run.jsonl is not a gradtrace recording"),
        (b'{"format": "gradtrace.events", "version": 2}\n', "line 1 of run.jsonl is damaged: script is missing"),
    ],
)
def test_what_is_no_recording_is_told(content: bytes | None, message: str, gradtrace: Runner) -> None:
    if content is not None:
        (gradtrace.directory / "run.jsonl").write_bytes(content)
    done = gradtrace.here("check", "run.jsonl")
    assert done.err.startswith(f"gradtrace: {message}")
    assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "{}",
        '{"event":"Nonsense"}',
        '{"event":"End","colour":1}',
        '{"event":"Backward"}',
        '{"event":"End","held":1}',
        '{"event":"End","held":["one"]}',
        '{"event":"HooksGrew","holder":"x","kind":"y","hooks":1,"stack":9,"files":[]}',
        '{"stack":1,"sites":[{"path":"x"}]}',
        '{"end":{"how":3},"remarks":[],"files":[]}',
    ],
)
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Recorder(path, "train.py", "2.13.0").see(End())
    with path.open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DocumentError, match=r"line 3 of .*run.jsonl is damaged"):
        list(Recording(path).events())


def test_another_version_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Recorder(path, "train.py", "2.13.0")
    path.write_text(path.read_text().replace('"version":2', '"version":1'))
    with pytest.raises(DocumentError, match="is a recording of another version, and this gradtrace reads version 2"):
        Recording(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--record", "missing/run.jsonl", "train.py"], "cannot write missing/run.jsonl: name a file in a directory"),
        (["--steps", "2", "run.jsonl"], "run.jsonl is a recording, which does not run: it takes no --steps"),
        (["--record", "b.jsonl", "run.jsonl"], "run.jsonl is a recording, which does not run: it takes no --record"),
        (["run.jsonl", "--epochs"], "run.jsonl is a recording, which does not run: it takes no arguments"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], message: str, gradtrace: Runner) -> None:
    gradtrace.write("print('never reached')")
    done = gradtrace.here("check", *arguments)
    assert done.err.startswith(f"gradtrace: {message}")
    assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
def test_a_full_disk_ends_the_recording_and_not_the_run(gradtrace: Runner) -> None:
    done = gradtrace.here("check", "--record", "/dev/full", gradtrace.write(TRAIN))
    assert done.out.startswith("error[stale-grad]: ")
    assert done.err == "gradtrace: cannot write the recording /dev/full: No space left on device; name another place\n"
    assert done.status == 2
