"""The command line: exit codes, where the output goes, and what it says to bad input."""

from __future__ import annotations

import json
import os
import py_compile
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from gradtrace.commands.check import FORMATS
from gradtrace.errors import no_such
from gradtrace.model.events import Backward, Event
from gradtrace.model.finding import Finding, Level
from gradtrace.rules.base import Rule

if TYPE_CHECKING:
    from tests.conftest import Runner

ROOT = Path(__file__).parents[1]

CLEAN = """
import torch
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(4):
    optimizer.zero_grad()
    weight.square().sum().backward()
    optimizer.step()
    print("step", step)
"""
TWICE = """
import torch
loss = torch.ones(2, requires_grad=True).exp().sum()
loss.backward()
loss.backward()
"""
STALE = CLEAN.replace("    optimizer.zero_grad()\n", "")
QUIET = STALE.replace('    print("step", step)\n', "")
SUMMARY = "no gradient faults: 4 backward calls, 4 optimizer steps, torch "


class TestExitCode:
    @pytest.mark.parametrize(
        ("source", "options", "status"),
        [
            (CLEAN, (), 0),
            (CLEAN + "\nraise SystemExit(0)", (), 0),
            (CLEAN + "\nraise SystemExit", (), 0),
            (TWICE, (), 1),
            (STALE, (), 1),
            (STALE, ("--fail-on", "error"), 1),
            (CLEAN + "\nraise ValueError('mine')", (), 3),
            (STALE + "\nraise ValueError('mine')", (), 3),
            (CLEAN + "\nraise SystemExit(3)", (), 3),
            (CLEAN + "\nraise SystemExit('no data')", (), 3),
            (CLEAN + "\nraise KeyboardInterrupt", (), 3),
            ("import torch", (), 4),
            ("", (), 4),
            ("raise SystemExit(0)", (), 4),
            ("1 / 0", (), 3),
        ],
    )
    def test_of_check(self, source: str, options: Sequence[str], status: int, gradtrace: Runner) -> None:
        assert gradtrace.here("check", *options, gradtrace.write(source)).status == status

    @pytest.mark.parametrize("level", Level)
    @pytest.mark.parametrize("fail_on", [None, *Level])
    def test_depends_on_the_level_that_fails(
        self, level: Level, fail_on: Level | None, gradtrace: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Found(Rule):
            id = "found"
            level = Level.NOTE
            events = (Backward,)

            def see(self, event: Event) -> Iterable[Finding]:
                return self.finding(event.stack, "message", "help", level=level) if isinstance(event, Backward) else ()

        monkeypatch.setattr("gradtrace.rules.all_rules", lambda: (Found,))
        options = ["--fail-on", str(fail_on)] if fail_on else []
        done = gradtrace.here("check", *options, gradtrace.write(CLEAN))
        assert f"{level}[found]: message" in done.out
        assert done.status == (level >= (fail_on or Level.WARNING))

    def test_where_the_crash_is_the_finding(self, gradtrace: Runner) -> None:
        done = gradtrace.here("check", gradtrace.write(TWICE))
        assert done.status == 1
        assert done.err.count("Traceback") == 1
        assert done.err.count("RuntimeError: Trying to backward through the graph a second time") == 1
        assert "gradtrace" not in done.err.replace(str(gradtrace.directory), "")
        assert done.out.startswith("error[freed-graph]: ")
        assert "the script ended with RuntimeError" in done.out

    def test_where_the_script_fails_by_itself(self, gradtrace: Runner) -> None:
        done = gradtrace.here("check", gradtrace.write(STALE + "\nraise ValueError('mine')"))
        assert done.err.splitlines()[-1] == "ValueError: mine"
        assert "error[stale-grad]" in done.out, "findings so far"


class TestDocument:
    def test_says_all(self, gradtrace: Runner) -> None:
        document = gradtrace.document(gradtrace.write(TWICE))
        (finding,) = document.pop("findings")
        assert {"rule": "late-clip", "why": "no optimizer step was seen"} in document.pop("unjudged")
        assert document.pop("run").keys() == {"torch", "backward_calls", "optimizer_steps", "ended"}
        assert document == {
            "format": "gradtrace.check",
            "version": 1,
            "script": "train.py",
            "status": "findings",
            "exit_code": 1,
            "silenced": [],
            "remarks": [],
            "status of the process": 1,
        }
        assert (finding["rule"], finding["level"], finding["path"]) == ("freed-graph", "error", "train.py")

    @pytest.mark.parametrize(
        ("source", "options", "ended", "status"),
        [
            (CLEAN, (), "finished", "clean"),
            (CLEAN, ("--steps", "2"), "stopped", "clean"),
            (CLEAN + "\nraise SystemExit(2)", (), "exit", "failed"),
            (CLEAN + "\n1 / 0", (), "exception", "failed"),
            (CLEAN + "\nraise KeyboardInterrupt", (), "interrupted", "failed"),
            ("", (), "finished", "nothing-to-check"),
        ],
    )
    def test_says_how_the_script_ended(
        self, source: str, options: Sequence[str], ended: str, status: str, gradtrace: Runner
    ) -> None:
        document = gradtrace.document(*options, gradtrace.write(source))
        assert (document["run"]["ended"], document["status"]) == (ended, status)
        assert document["exit_code"] == document["status of the process"]

    def test_counts(self, gradtrace: Runner) -> None:
        run = gradtrace.document("--steps", "2", gradtrace.write(CLEAN))["run"]
        assert (run["backward_calls"], run["optimizer_steps"]) == (2, 2)

    def test_carries_no_text_of_the_script(self, gradtrace: Runner) -> None:
        done = gradtrace.here("check", "-o", "report.json", gradtrace.write(CLEAN))
        assert done.out == "step 0\nstep 1\nstep 2\nstep 3\n"

    @pytest.mark.parametrize(
        ("options", "written"),
        [
            ((), {"stdout": "text"}),
            (("--format", "json"), {"stdout": "json"}),
            (("-o", "a.json"), {"a.json": "json"}),
            (("-o", "a.txt"), {"a.txt": "text"}),
            (("-o", "a.log"), {"a.log": "text"}),
            (("-o", "a.json", "-o", "b.txt"), {"a.json": "json", "b.txt": "text"}),
            (("--format", "text", "-o", "a.JSON"), {"stdout": "text", "a.JSON": "json"}),
            (("--format", "json", "-o", "a.log"), {"a.log": "json"}),
            (("--format", "json", "-o", "a.txt"), {"stdout": "json", "a.txt": "text"}),
        ],
    )
    def test_goes_where_it_was_asked_for(
        self, options: Sequence[str], written: dict[str, str], gradtrace: Runner
    ) -> None:
        done = gradtrace.alone("check", *options, gradtrace.write(QUIET))
        places = {path.name: path.read_text() for path in gradtrace.directory.iterdir() if path.name != "train.py"}
        places |= {"stdout": done.out} if done.out else {}
        kinds = {name: "json" if text.startswith("{") else "text" for name, text in places.items()}
        assert (kinds, done.err, done.status) == (written, "", 1)


class TestDetail:
    TEXT = STALE.replace("backward()", "backward(retain_graph=True)  # gradtrace: ignore[unneeded-retain] -- why")

    def test_may_be_less(self, gradtrace: Runner) -> None:
        assert gradtrace.here("check", "-q", gradtrace.write(TWICE[: TWICE.rindex("loss")])).out == ""
        out = gradtrace.here("check", "-q", gradtrace.write(self.TEXT)).out
        assert "error[stale-grad]" in out
        assert "the script finished" not in out

    def test_may_be_more(self, gradtrace: Runner) -> None:
        (gradtrace.directory / "pyproject.toml").write_text("[tool.gradtrace]\n")
        out = gradtrace.here("check", "--verbose", gradtrace.write(self.TEXT)).out
        assert "\nsilenced: unneeded-retain at train.py:6 by a comment: why\n" in out
        assert "\nlacked data: it takes 6 backward calls, and 4 were seen: graph-growth, hook-growth\n" in out
        assert "\nsettings: pyproject.toml\n1 error, 1 silenced; 4 backward calls" in out


NOISE = """
import atexit, ctypes, os, subprocess, sys
atexit.register(print, "atexit")
print("print")
os.write(1, b"write\\n")
subprocess.run(["echo", "child"])
libc = ctypes.CDLL(None)
libc.puts(b"puts")
libc.fflush(None)
sys.__stdout__.write("original\\n")
"""


class TestStdout:
    @pytest.mark.parametrize("command", [["check", "--format", "json"], ["dot"]])
    def test_carries_the_document_alone(self, command: list[str], gradtrace: Runner) -> None:
        done = gradtrace.alone(*command, gradtrace.write(NOISE + CLEAN + "\nimport sys; sys.stdout.close()"))
        if command[0] == "check":
            assert json.loads(done.out)["exit_code"] == 0
        else:
            assert done.out.startswith("digraph ")
            assert done.out.rstrip().endswith("}")
            assert done.out.count("digraph") == 1
        noise = ["print", "write", "child", "puts", "original", "step 0"]
        assert [line for line in noise if line not in done.err.splitlines()] == []
        assert done.status == 0

    @pytest.mark.parametrize(
        "ending",
        [
            "sys.stdout.close(); os.close(1); sys.stderr.close()",
            "sys.stdout.flush(); sys.stdout = sys.__stdout__ = sys.stderr = None",
            "sys.stdout = open(os.devnull, 'w'); sys.stdout.close(); os.chdir('/'); os.remove(__file__)"
            "; os.environ.clear(); del sys.path[:], sys.argv[:], sys.modules['__main__']"
            "; warnings.simplefilter('error'); gc.freeze()"
            "; sys.modules['json'] = sys.modules['rich'] = sys.modules['ast'] = None",
        ],
        ids=["closed", "none", "wrecked"],
    )
    def test_is_ours_whatever_the_script_did_to_its_own(self, ending: str, gradtrace: Runner) -> None:
        ending = f"import builtins, gc, os, sys, warnings\n{ending}\n"
        done = gradtrace.alone("check", gradtrace.write(CLEAN + ending))
        assert done.out.splitlines()[-1].startswith(SUMMARY)
        assert (done.err, done.status) == ("", 0)

    @pytest.mark.parametrize("command", ["check", "dot"])
    def test_may_be_closed(self, command: str, gradtrace: Runner) -> None:
        done = gradtrace.shell(f"gradtrace {command} {gradtrace.write(QUIET)} >&-")
        assert (done.out, done.err, done.status) == ("", "", int(command == "check"))

    @pytest.mark.parametrize("command", ["check --format json", "show"])
    def test_may_end_early(self, command: str, gradtrace: Runner) -> None:
        done = gradtrace.shell(f"gradtrace {command} {gradtrace.write(QUIET)} | true")
        assert (done.out, done.err, done.status) == ("", "", int(command != "show"))

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
    def test_may_be_full(self, gradtrace: Runner) -> None:
        done = gradtrace.shell(f"gradtrace check {gradtrace.write(QUIET)} >/dev/full")
        assert done.err.startswith("gradtrace: cannot write the result to stdout: No space left on device")
        assert (done.err.count("\n"), done.status) == (1, 2)


class TestOutput:
    @pytest.mark.parametrize(
        "command", [["check", "-o", "out"], ["show", "-o", "out"], ["dot", "-o", "out.gv"], ["dot", "-oout"]]
    )
    def test_leaves_stdout_to_the_script(self, command: list[str], gradtrace: Runner) -> None:
        done = gradtrace.here(*command, gradtrace.write(CLEAN))
        # the pictures are complete when the line comes round again
        assert done.out == "".join(f"step {number}\n" for number in range(4 if command[0] == "check" else 1))
        assert (done.err, done.status) == ("", 0)
        (written,) = gradtrace.directory.glob("out*")
        assert written.read_text().rstrip()

    def test_keeps_a_link_and_what_is_no_ordinary_file(self, gradtrace: Runner) -> None:
        directory = gradtrace.directory
        (directory / "link.txt").symlink_to("target.txt")
        (directory / "target.txt").touch()
        gradtrace.here("check", "-o", "link.txt", gradtrace.write(CLEAN))
        assert (directory / "link.txt").is_symlink()
        assert (directory / "target.txt").read_text().startswith(SUMMARY)
        os.mkfifo("pipe")
        reading = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        gradtrace.here("check", "-o", "pipe", "train.py")
        assert os.read(reading, 100).startswith(SUMMARY.encode())
        os.close(reading)
        assert not (directory / "pipe").is_file()
        assert sorted(path.name for path in directory.iterdir()) == ["link.txt", "pipe", "target.txt", "train.py"]

    @pytest.mark.parametrize("place", ["directory", "missing/report.txt", "locked/report.txt", ""])
    @pytest.mark.parametrize("command", ["check", "show"])
    def test_that_cannot_be_written_is_refused_before_the_run(
        self, command: str, place: str, gradtrace: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (gradtrace.directory / "directory").mkdir()
        (gradtrace.directory / "locked").mkdir()
        access = os.access  # root may write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and access(path, mode))
        done = gradtrace.here(command, "-o", place, gradtrace.write(CLEAN))
        assert done.err.startswith("gradtrace: cannot write ")
        assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)

    def test_that_vanishes_meanwhile_is_told(self, gradtrace: Runner) -> None:
        (gradtrace.directory / "gone").mkdir()
        done = gradtrace.here("check", "-o", "gone/report.txt", gradtrace.write("import os; os.rmdir('gone')"))
        assert done.err.startswith("gradtrace: cannot write ")
        assert (done.err.count("\n"), done.status) == (1, 2)

    def test_that_vanishes_meanwhile_leaves_the_others(self, gradtrace: Runner) -> None:
        (gradtrace.directory / "gone").mkdir()
        outputs = ["-o", "a.json", "-o", "gone/b.json", "-o", "c.sarif"]
        done = gradtrace.here("check", *outputs, gradtrace.write("import os; os.rmdir('gone')"))
        assert done.err.startswith("gradtrace: cannot write ")
        assert (done.err.count("\n"), done.status) == (1, 2)
        assert json.loads((gradtrace.directory / "a.json").read_text())["status"] == "nothing-to-check"
        assert json.loads((gradtrace.directory / "c.sarif").read_text())["runs"][0]["invocations"][0]["exitCode"] == 4

    def test_that_vanishes_meanwhile_is_told_even_after_os_exit(self, gradtrace: Runner) -> None:
        (gradtrace.directory / "gone").mkdir()
        source = gradtrace.write("import os; os.rmdir('gone'); os._exit(0)")
        done = gradtrace.alone("check", "-o", "gone/report.txt", source)
        assert done.err.startswith("gradtrace: cannot write ")
        assert (done.err.count("\n"), done.status) == (1, 2)


WRONG_USES = [
    (["check"], "which script?"),
    (["check", "--steps", "0", "train.py"], "Invalid value for '--steps'"),
    (["check", "--steps", "few", "train.py"], "Invalid value for '--steps'"),
    (["show", "--line", "0", "train.py"], "Invalid value for '--line'"),
    (
        ["check", "--format", "xml", "train.py"],
        "gradtrace: no format is called 'xml'; there are github, html, json, junit, sarif, text\n",
    ),
    (
        ["check", "--fail-on", "fatal", "train.py"],
        "gradtrace: no level is called 'fatal'; there are error, note, warning\n",
    ),
    (["dot", "--direction", "up", "train.py"], "gradtrace: --direction up: there are only forward and backward\n"),
    (["dot", "-o", "a.jpg", "train.py"], "gradtrace: -o a.jpg: dot writes .gv, .dot, .svg, .png, .pdf or .html\n"),
    (["show", "-o", "graph.svg", "train.py"], "gradtrace: -o graph.svg: show writes text or .json\n"),
    (["follow", "-o", "run.sarif", "train.py"], "gradtrace: -o run.sarif: follow writes text, .json or .html\n"),
    (["check", "--timeout", "0", "train.py"], "gradtrace: --timeout 0: give a number of seconds above 0\n"),
    (["show", "--timeout", "inf", "train.py"], "gradtrace: --timeout inf: give a number of seconds above 0\n"),
    (["follow", "--lines", "5-2", "train.py"], "gradtrace: --lines 5-2: give a line or a range, as in 12 or 20-40\n"),
    (["check", "--bogus", "train.py"], "No such option: --bogus"),
    (["bogus", "train.py"], "No such command 'bogus'"),
    (["check", "-o"], "Option '-o' requires an argument"),
    (["check", "-m"], "Option '-m' requires an argument"),
    (["check", "--steps"], "Option '--steps' requires an argument"),
]


class TestUse:
    @pytest.mark.parametrize(
        ("arguments", "message"), WRONG_USES, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
    )
    def test_that_is_wrong_is_told(self, arguments: list[str], message: str, gradtrace: Runner) -> None:
        gradtrace.write("print('never reached')")
        done = gradtrace.here(*arguments)
        assert (done.out, done.status) == ("", 2)
        assert message in done.err
        assert "Traceback" not in done.err

    def test_in_a_directory_that_is_gone_is_told(self, gradtrace: Runner) -> None:
        script = Path(gradtrace.write("")).absolute()
        (gradtrace.directory / "gone").mkdir()
        gradtrace.patch.chdir("gone")
        Path("../gone").rmdir()
        done = gradtrace.here("show", str(script))
        gradtrace.patch.chdir(gradtrace.directory)
        told = "gradtrace: the working directory is gone; change to one that exists\n"
        assert (done.out, done.err, done.status) == ("", told, 2)

    @pytest.mark.parametrize(
        "arguments", [["--help"], ["check", "--help"], ["dot", "--help"], *(use for use, _ in WRONG_USES[:6:2])]
    )
    def test_does_not_load_torch(self, arguments: list[str], gradtrace: Runner) -> None:
        gradtrace.write("raise SystemExit('torch was loaded')", "torch.py")
        gradtrace.write("")
        gradtrace.environment["PYTHONPATH"] = f"{gradtrace.directory}:{ROOT}"
        done = gradtrace.alone(*arguments)
        assert "torch was loaded" not in done.err
        assert done.status == (0 if "--help" in arguments else 2)

    @pytest.mark.parametrize(
        ("arguments", "argv"),
        [
            ("train.py --steps 0 -m x -o y --help", "train.py --steps 0 -m x -o y --help"),
            ("--steps 1 train.py --steps 0", "train.py --steps 0"),
            ("--steps=1 -- train.py -- -m x", "train.py -- -m x"),
            ("-m train --epochs 2 -o y", "train.py --epochs 2 -o y"),
            ("-mtrain --epochs 2", "train.py --epochs 2"),
            ("--module train -- x", "train.py -- x"),
            ("--module=train --steps 0", "train.py --steps 0"),
            ("--color --debug -m train -m x", "train.py -m x"),
            ("-m package.inner --steps 0", "inner.py --steps 0"),
        ],
    )
    def test_leaves_the_script_its_own_arguments(self, arguments: str, argv: str, gradtrace: Runner) -> None:
        (gradtrace.directory / "package").mkdir()
        for name in ("train.py", "package/inner.py"):
            gradtrace.write("import os, sys; print(os.path.basename(sys.argv[0]), *sys.argv[1:])", name)
        done = gradtrace.here("check", *arguments.split())
        assert (done.out.splitlines()[0], done.status) == (argv, 4)

    @pytest.mark.parametrize(
        ("source", "arguments", "told"),
        [
            ("", "--lr 3 --steps=2", "--steps comes after train.py, which gets it"),
            ("# parser.add_argument('--steps')", "--steps 2", ""),
            ("", "-o x -- steps", ""),
        ],
    )
    def test_hints_at_options_that_the_script_gets(
        self, source: str, arguments: str, told: str, gradtrace: Runner
    ) -> None:
        done = gradtrace.here("check", gradtrace.write(source), *arguments.split())
        assert told in done.err
        assert bool(told) is bool(done.err)


class TestScript:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["missing.py"], "gradtrace: no script at "),
            (["directory"], "gradtrace: directory has no __main__.py"),
            (["broken.py"], "broken.py:2 is not Python: invalid syntax: `x = = 1`"),
            (["latin.py"], "'utf-8' codec can't decode byte 0xe9"),
            (["null.py"], "null.py"),
            (["-m", "missing"], "gradtrace: no module named missing"),
            (["-m", "train.py"], "gradtrace: no module named train.py; leave out -m"),
            (["-m", "directory"], "gradtrace: directory is a package without __main__.py"),
            (["-m", "a..b"], "gradtrace: 'a..b' is not the name of a module"),
        ],
    )
    def test_that_cannot_run_is_told_in_a_line(self, arguments: list[str], message: str, gradtrace: Runner) -> None:
        (gradtrace.directory / "directory").mkdir()
        gradtrace.write("\nx = = 1", "broken.py")
        (gradtrace.directory / "latin.py").write_bytes(b"name = 'caf\xe9'\n")
        (gradtrace.directory / "null.py").write_bytes(b"x = 1\0\n")
        gradtrace.write(CLEAN)
        for command in ("check", "show"):
            done = gradtrace.here(command, *arguments)
            assert message in done.err
            assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)

    @pytest.mark.parametrize(
        ("ending", "message"),
        [
            ("recurse = lambda: recurse()\nrecurse()", "RecursionError: maximum recursion depth exceeded"),
            ("torch.optim.SGD([weight], 0.1).step(lambda: 1 / 0)", "ZeroDivisionError: division by zero"),
            (
                "sys.excepthook = lambda *error: sys.stderr.write(repr(error[1]))\n1 / 0",
                "ZeroDivisionError('division by zero')",
            ),
        ],
    )
    def test_may_fail_in_any_way(
        self, ending: str, message: str, gradtrace: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)
        done = gradtrace.here("check", gradtrace.write(f"import sys\n{CLEAN}{ending}\n"))
        assert done.err.splitlines()[-1] == message
        assert "gradtrace" not in done.err.replace(str(gradtrace.directory), "")
        assert done.status == 3

    @pytest.mark.parametrize(
        ("ending", "status"),
        [
            ("os._exit(5)", 3),
            ("threading.Thread(target=lambda: 1 / 0).start()\natexit.register(lambda: os._exit(7))", 7),
        ],
    )
    def test_may_leave_at_once(self, ending: str, status: int, gradtrace: Runner) -> None:
        done = gradtrace.alone("check", gradtrace.write(f"import atexit, os, threading\n{CLEAN}{ending}\n"))
        assert done.status == status
        assert done.out.count("4 backward calls, 4 optimizer steps") == 1
        assert "gradtrace" not in done.err.replace(str(gradtrace.directory), "")

    def test_may_be_interrupted(self, gradtrace: Runner) -> None:
        source = CLEAN + "import signal, sys\nprint('ready', flush=True)\nwhile True: signal.pause()\n"
        process = subprocess.Popen(
            [sys.executable, "-m", "gradtrace", "check", gradtrace.write(source)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=gradtrace.environment,
            cwd=gradtrace.directory,
        )
        assert process.stdout is not None
        assert "ready\n" in iter(process.stdout.readline, "")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        assert err.endswith("KeyboardInterrupt\n")
        assert err.count("Traceback") == 1
        assert "4 backward calls" in out
        assert process.returncode == 3

    def test_may_fork(self, gradtrace: Runner) -> None:
        source = """
            import os, sys
            def fail(): sys.stdout.close(); 1 / 0
            def train(): loss = weight.exp().sum(); loss.backward(); loss.backward()
            for child in (fail, train, lambda: os._exit(1)):
                if not os.fork():
                    child()
                print("status", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
        """
        done = gradtrace.alone("check", gradtrace.write(CLEAN + textwrap.dedent(source)))
        assert done.out.count("status 1\n") == 3
        assert done.out.count(SUMMARY) == 1
        assert done.err.count("Traceback") == 2
        assert done.status == 0

    def test_may_spawn_and_load_with_workers(self, gradtrace: Runner) -> None:
        source = """
            import multiprocessing

            def square(x):
                return x * x

            if __name__ == "__main__":
                import torch
                from torch.utils.data import DataLoader
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.map(square, [1, 2]))
                weight = torch.ones(2, requires_grad=True)
                for (x,) in DataLoader([(1.0,), (2.0,)], num_workers=2):
                    (weight * x).sum().backward()
                print(weight.grad.tolist())
        """
        done = gradtrace.alone("check", gradtrace.write(source))
        assert done.out.startswith("[1, 4]\n[3.0, 3.0]\nno gradient faults: 2 backward calls")
        assert (done.err, done.status) == ("", 0)

    def test_may_wrap_functions_of_torch(self, gradtrace: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        places = [
            (torch.Tensor, "backward"),
            (torch.Tensor, "exp"),
            (torch.nn.functional, "max_pool2d"),
            (torch.nn.functional, "softmax"),
        ]
        for owner, name in places:
            monkeypatch.setattr(owner, name, getattr(owner, name))  # to be put back
        source = """
            import torch
            def wrap(owner, name):
                found = getattr(owner, name)
                def wrapper(*given, **more):
                    print(name)
                    return found(*given, **more)
                setattr(owner, name, wrapper)
            wrap(torch.Tensor, "exp")
            wrap(torch.Tensor, "backward"), wrap(torch.nn.functional, "softmax"), wrap(torch.nn.functional, "max_pool2d")
            weight = torch.ones(1, 2, 2, requires_grad=True)
            torch.nn.functional.softmax(torch.nn.functional.max_pool2d(weight, 2), -1).exp().sum().backward()
        """
        done = gradtrace.here("check", "-q", gradtrace.write(source))
        assert (done.out.splitlines(), done.err) == (["max_pool2d", "softmax", "exp", "backward"], "")

    @pytest.mark.parametrize("command", [["check", "--color"], ["dot", "-o", "page.html"]])
    def test_has_its_own_neighbours_whatever_they_are_called(self, command: list[str], gradtrace: Runner) -> None:
        names = "graphviz", "rich", "typer"
        for name in names:
            gradtrace.write(f"mine = {name!r}", f"{name}.py")
        source = f"import {', '.join(names)}\nprint({', '.join(f'{name}.mine' for name in names)})\n{CLEAN}"
        done = gradtrace.alone(*command, gradtrace.write(source))
        assert done.out.startswith("graphviz rich typer\nstep 0\n")
        assert (done.err, done.status) == ("", 0)


class TestSteps:
    def test_end_the_run_cleanly(self, gradtrace: Runner) -> None:
        """The report comes after what the script printed, and before its exit handlers."""
        source = """
            import atexit, contextlib
            atexit.register(print, "exit handler")
            @contextlib.contextmanager
            def opened():
                try: yield
                finally: print("closed")
            with opened():
                try: exec(training)
                except Exception: print("swallowed")
                finally: print("finally")
            print("never reached")
        """
        done = gradtrace.alone(
            "check", "--steps", "2", gradtrace.write(f"training = {CLEAN!r}\n{textwrap.dedent(source)}")
        )
        assert done.out.splitlines()[:-2] == ["step 0", "finally", "closed"]
        assert done.out.splitlines()[-2].startswith("no gradient faults: 2 backward calls, 2 optimizer steps, torch")
        assert done.out.splitlines()[-1] == "exit handler"
        assert (done.err, done.status) == ("", 0)

    @pytest.mark.parametrize("handler", ["except: continue", "except BaseException: continue", "finally: continue"])
    def test_are_not_swallowed_for_long(self, handler: str, gradtrace: Runner) -> None:
        loop = CLEAN.replace("    optimizer.step()\n", f"    try: optimizer.step()\n    {handler}\n")
        done = gradtrace.here(
            "check", "--steps", "2", gradtrace.write(loop + "optimizer.step()\nprint('never reached')")
        )
        assert "never reached" not in done.out
        assert "no gradient faults: 4 backward calls, 5 optimizer steps, torch" in done.out
        assert (done.err, done.status) == ("", 0)

    def test_may_come_out_as_another_error(self, gradtrace: Runner) -> None:
        loop = CLEAN.replace("optimizer.step()", "try_step()")
        step = "def try_step():\n  try: optimizer.step()\n  except BaseException as error: raise OSError from error\n"
        done = gradtrace.here("check", "--steps", "1", gradtrace.write(step + loop))
        assert (done.err, done.status) == ("", 0)

    @pytest.mark.parametrize("steps", ["1", "4", "5", "1000000"])
    def test_count_at_most(self, steps: str, gradtrace: Runner) -> None:
        run = gradtrace.document("--steps", steps, gradtrace.write(CLEAN))["run"]
        assert run["optimizer_steps"] == min(int(steps), 4)
        assert run["ended"] == ("finished" if int(steps) > 4 else "stopped")


class TestFaultOfOurs:
    @pytest.mark.parametrize("debug", [(), ("--debug",)])
    def test_while_watching_is_a_remark(
        self, debug: Sequence[str], gradtrace: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> None:
            raise LookupError("broken")

        monkeypatch.setattr("gradtrace.watcher.graph.walk.visit", fail)
        done = gradtrace.here("check", *debug, gradtrace.write(CLEAN))
        assert done.out.startswith("step 0\nstep 1\nstep 2\nstep 3\n")
        assert (
            " ".join(done.out.split()).count(
                "internal error in gradtrace while watching (LookupError: broken, at fail:"
            )
            == 1
        )
        assert "no gradient faults" not in done.out
        assert done.err.count("LookupError: broken") == len(debug)
        assert done.status == 4

    @pytest.mark.parametrize(
        "piece", ["watcher.watch.Watch.__enter__", "renderers.findings.text.render", "rules.Judge.explains"]
    )
    @pytest.mark.parametrize("debug", [(), ("--debug",)])
    def test_outside_of_the_run_is_a_line_and_code_2(
        self, piece: str, debug: Sequence[str], gradtrace: Runner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> None:
            raise LookupError("broken\nfor good")

        monkeypatch.setattr(f"gradtrace.{piece}", fail)
        done = gradtrace.here("check", *debug, gradtrace.write("1 / 0"))
        lines = done.err.splitlines()
        assert lines[-1].startswith("gradtrace: internal error: LookupError: broken for good, at fail:")
        assert ("LookupError: broken" in lines) is bool(debug)
        assert done.status == 2


@pytest.mark.parametrize("columns", ["", "0", "-5", "many", "40"])
def test_any_width_will_do(columns: str, gradtrace: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert gradtrace.here("check", gradtrace.write(STALE)).status == 1


@pytest.mark.parametrize(
    ("options", "environment", "colored"),
    [((), {}, False), (("--color",), {}, True), (("--color",), {"NO_COLOR": "1"}, True), (("--no-color",), {}, False)],
)
def test_colour(
    options: Sequence[str],
    environment: dict[str, str],
    colored: bool,
    gradtrace: Runner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in gradtrace.here("check", *options, gradtrace.write(STALE)).out) is colored


@pytest.mark.parametrize("given", ["train.py", "./train.py", "-m train", "package", "-m package", "-"])
def test_a_finding_points_into_the_script_however_it_was_given(given: str, gradtrace: Runner) -> None:
    (gradtrace.directory / "package").mkdir()
    for name in ("train.py", "package/__main__.py"):
        gradtrace.write(STALE, name)
    done = gradtrace.here("check", *given.split()) if given != "-" else gradtrace.shell("gradtrace check - < train.py")
    assert "6 │     weight.square().sum().backward()" in done.out
    assert done.status == 1


def test_what_there_is_is_listed_once() -> None:
    assert str(no_such("leaf", "weight", ["b.c", "a", "b.c"])) == "no leaf is called 'weight'; there are a, b.c"


WIDE = """
import torch
weight = torch.ones(2, requires_grad=True)
loss = weight.exp().sum()
名字 = ("中文中文", loss.backward())
loss.backward()
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 tells no columns")
def test_columns_count_characters_behind_text_that_is_not_ascii(gradtrace: Runner) -> None:
    (gradtrace.directory / "train.py").write_text(WIDE, encoding="utf-8")
    done = gradtrace.here("check", "-o", "report.sarif", "--format", "text", "train.py")
    assert "--> train.py:5:15" in done.out
    row, marks = done.out.splitlines()[3:5]
    cells = cell_len(row.partition("loss.backward()")[0])
    assert marks[: cells + 15].endswith(" " + "^" * 15)
    (run,) = json.loads((gradtrace.directory / "report.sarif").read_text())["runs"]
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert (region["startColumn"], region["endColumn"]) == (15, 30)
    assert gradtrace.document("train.py")["findings"][0]["column"] == 15


class TestOutputThatFails:
    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device")
    def test_the_findings_are_printed_instead(self, gradtrace: Runner) -> None:
        done = gradtrace.here("check", "-o", "/dev/full", gradtrace.write(QUIET))
        assert done.out.startswith("error[stale-grad]: ")
        assert done.err == "gradtrace: cannot write /dev/full: No space left on device; name another place after -o\n"
        assert done.status == 2

    def test_so_they_are_where_the_directory_was_removed(self, gradtrace: Runner) -> None:
        source = "import shutil\nshutil.rmtree('out')\n" + QUIET
        (gradtrace.directory / "out").mkdir()
        arguments = ("-o", "out/report.json", "-o", "report.json", gradtrace.write(source))
        done = gradtrace.here("check", *arguments)
        assert done.out.startswith("error[stale-grad]: ")
        assert "cannot write out/report.json" in done.err.replace(f"{gradtrace.directory}/", "")
        assert json.loads((gradtrace.directory / "report.json").read_text())["exit_code"] == 1
        assert done.status == 2

    @pytest.mark.parametrize(
        "arguments",
        [
            ("check", "-o", "train.py", "train.py"),
            ("check", "-o", "model.py", "train.py"),
            ("check", "--record", "train.py", "train.py"),
            ("check", "--record", "model.py", "train.py"),
            ("check", "-o", "train", "train"),
            ("check", "--record", "train", "train"),
            ("check", "--baseline", "train", "--write-baseline", "train"),
            ("show", "-o", "train", "train"),
            ("follow", "-o", "model.py", "train.py"),
        ],
    )
    def test_no_program_is_overwritten(self, arguments: Sequence[str], gradtrace: Runner) -> None:
        for name in ("train.py", "model.py", "train"):
            gradtrace.write("print('ran')", name)
        done = gradtrace.here(*arguments)
        assert "overwritten; name another file" in done.err
        assert (done.out, done.err.count("\n"), done.status) == ("", 1, 2)
        for name in ("train.py", "model.py", "train"):
            assert (gradtrace.directory / name).read_text() == "print('ran')"


THREADED = """
import threading
import torch
weight = torch.ones(2, requires_grad=True)
weight.square().sum().backward()
def train():
    for _ in range(3):
        weight.square().sum().backward()
thread = threading.Thread(target=train)
thread.start()
thread.join()
"""


def test_calls_in_other_threads_are_counted(gradtrace: Runner) -> None:
    done = gradtrace.here("check", gradtrace.write(THREADED))
    assert "remark: 3 backward calls in other threads could not be watched, and no rule judged them" in done.out
    assert done.status == 0


def test_a_script_that_dies_at_its_imports_gets_one_line(gradtrace: Runner) -> None:
    done = gradtrace.here("check", "-v", gradtrace.write("import torch, there_is_no_such_module"))
    assert done.out == (
        "lacked data: no backward call was seen: no rule had data\n"
        "the script failed before its first backward call: the script ended with ModuleNotFoundError: No module named "
        "'there_is_no_such_module', its traceback is above\n"
    )
    assert done.status == 3


NESTED = """
import sys
sys.setrecursionlimit(300)
assert sys.getrecursionlimit() == 300
import torch
weight = torch.ones(2, requires_grad=True)
def deep(depth):
    return (weight * 2).sum() if not depth else deep(depth - 1)
deep(285).backward()
try:
    deep(400)
except RecursionError:
    print("too deep")
"""


def test_the_recursion_limit_is_the_scripts(gradtrace: Runner) -> None:
    before = sys.getrecursionlimit()
    done = gradtrace.alone("check", gradtrace.write(NESTED))
    assert done.out.startswith("too deep\nno gradient faults: 1 backward call"), done.err
    assert sys.getrecursionlimit() == before


ANOMALY = """
import torch
torch.autograd.set_detect_anomaly(True)
weight = torch.zeros(2, requires_grad=True)
def forward():
    return torch.nn.functional.softplus(weight.sqrt() * 0)
forward().sum().backward()
"""


def test_anomaly_mode_shows_the_forward_traceback_that_it_has_without_us(gradtrace: Runner) -> None:
    script = gradtrace.write(ANOMALY)
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=gradtrace.directory)
    done = gradtrace.alone("check", script)
    assert "Traceback of forward call" in plain.stderr
    assert done.err == plain.stderr


@pytest.mark.parametrize("name", ["", "\0.py"])
def test_what_is_no_name_gets_one_line(name: str, gradtrace: Runner) -> None:
    done = gradtrace.here("check", name)
    assert done.err == f"gradtrace: {name!r} is not the name of a script; name one, as in train.py\n"
    assert done.status == 2


def test_compiled_code_runs_as_under_python(gradtrace: Runner) -> None:
    py_compile.compile(gradtrace.write(TWICE), str(gradtrace.directory / "train.pyc"))
    done = gradtrace.here("check", "train.pyc")
    assert done.out.startswith("error[freed-graph]: ")
    assert done.status == 1


@pytest.mark.parametrize(
    "ending",
    [
        "import sys; del sys.excepthook; raise ValueError('mine')",
        "class Odd(Exception):\n    def __str__(self): raise KeyError\nraise Odd",
    ],
)
def test_an_odd_end_is_reported(ending: str, gradtrace: Runner) -> None:
    hook = sys.excepthook
    try:
        done = gradtrace.here("check", gradtrace.write(f"{CLEAN}\n{ending}"))
    finally:
        sys.excepthook = hook
    assert "the script failed for another reason: no gradient faults until then" in done.out
    assert "internal error" not in done.err
    assert done.status == 3


def test_a_module_of_our_name_is_named(gradtrace: Runner) -> None:
    gradtrace.write("", "gradtrace.py")
    done = gradtrace.here("check", gradtrace.write(CLEAN))
    assert done.err == "gradtrace: the script's own gradtrace.py cannot be imported under gradtrace; rename it\n"


NASTY = "\x1b[31m\x07\x00\r\n\ud800"


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_of_the_scripts_is_written_raw(kind: str, gradtrace: Runner) -> None:
    source = CLEAN.replace('print("step", step)', "pass") + "\nclass Odd(Exception): pass\n"
    source += f"Odd.__name__ = 'Odd' + {NASTY[:-1]!r}\nraise Odd({NASTY!r} * 2)\n"
    name = "report" + (FORMATS[kind] or ".out")
    gradtrace.here("check", "--format", kind, "-o", name, "-o", "report.json", gradtrace.write(source))
    text = (gradtrace.directory / name).read_text()
    if kind == "html":
        text = text.partition('<script id="data"')[2].partition("</script>")[0]
    assert not set("\x1b\x07\x00\r") & set(text)
    if kind in ("json", "sarif", "html"):
        assert not re.search(r"(?<!\\)\\ud800", text)


def test_nothing_of_a_saved_graph_reaches_the_terminal_raw(gradtrace: Runner) -> None:
    gradtrace.here("show", "-o", "graph.json", gradtrace.write(CLEAN))
    document = json.loads((gradtrace.directory / "graph.json").read_text())
    for graph in document["graphs"]:
        for node in graph["nodes"]:
            node |= {"op": NASTY, "name": NASTY, "module": NASTY, "tags": [NASTY], "value": NASTY}
            node["outputs"] = [{"shape": [2], "dtype": NASTY, "device": NASTY}]
        graph["remarks"] = [NASTY]
    for site in document["sites"]:
        site |= {"path": f"a{NASTY}", "function": NASTY, "text": NASTY}
    (gradtrace.directory / "graph.json").write_text(json.dumps(document))
    done = gradtrace.here("show", "--saved", "graph.json")
    assert done.status == 0
    assert not set("\x1b\x07\x00\r") & set(done.out)
    document["graphs"][0]["roots"] = [NASTY]
    (gradtrace.directory / f"odd{NASTY[:6]}.json").write_text(json.dumps(document))
    done = gradtrace.here("show", f"odd{NASTY[:6]}.json")
    assert not set("\x1b\x07\x00\r") & set(done.err)
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["check", "show", "dot", "diff", "fix", "follow", "why", "rules"])
def test_help_names_plain_kinds_of_values(command: str, gradtrace: Runner) -> None:
    done = gradtrace.here(command, "--help")
    assert "Options:" in done.out
    assert not re.search("<[a-z]", done.out), "typer's own names of types, such as <list[str]>"


def test_a_file_that_changes_while_it_runs_is_named_and_shown_as_it_was(gradtrace: Runner) -> None:
    source = QUIET + "\nwith open('train.py', 'w') as file:\n    file.write('# all new')\n"
    done = gradtrace.here("check", gradtrace.write(source))
    assert "weight.square().sum().backward()" in done.out
    assert "remark: train.py has changed while the script ran; the report shows the text from before" in done.out


ENDLESS = """
import torch
weight = torch.ones(2, requires_grad=True)
def deep(x):
    return deep(x * weight)
weight.sum().backward()
deep(weight)
"""


def test_an_endless_recursion_ends_in_the_script(gradtrace: Runner) -> None:
    done = gradtrace.alone("check", gradtrace.write(ENDLESS))
    assert "RecursionError: maximum recursion depth exceeded" in done.err
    assert "During handling of the above exception" not in done.err
    assert "gradtrace" not in done.err
    assert done.out.startswith("the script failed for another reason: no gradient faults until then; 1 backward call")
    assert done.status == 3
