"""What a script sees and how it ends, each compared with plain python."""

from __future__ import annotations

import linecache
import os
import re
import shutil
import subprocess
import sys
import textwrap
import zipfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from gradtrace.errors import ScriptError
from gradtrace.host import script
from gradtrace.model.finding import Ended

FIXTURES = Path(__file__).parent / "fixtures" / "script"
DRIVER = FIXTURES / "driver.py"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(FIXTURES.parents[2]), "PYTHONHASHSEED": "0"}


@dataclass
class Outcome:
    """What can be seen of a process from outside, and what `run` told of it, a line for each report."""

    stdout: str
    stderr: str
    status: int
    ended: list[str]


def start(*command: str | Path, stdin: str = "", report: Path | None = None) -> Outcome:
    done = subprocess.run([sys.executable, *command], input=stdin, capture_output=True, text=True, env=ENVIRONMENT)
    ended = report.read_text().splitlines() if report and report.exists() else []
    return Outcome(done.stdout, done.stderr, done.returncode, ended)


def both(*command: str | Path, flags: tuple[str, ...] = (), stdin: str = "") -> tuple[Outcome, Outcome]:
    """The same command by plain python and by the driver, in the present directory."""
    report = Path("ended.txt").absolute()
    return (
        start(*flags, *command, stdin=stdin),
        start(*flags, DRIVER, report, *command, stdin=stdin, report=report),
    )


def both_of(source: str) -> tuple[Outcome, Outcome]:
    plain, watched = Path("plain"), Path("watched")
    for directory in (plain, watched):  # a script may delete itself
        directory.mkdir()
        (directory / "train.py").write_text(textwrap.dedent(source))
    report = Path("ended.txt").absolute()
    outcomes = start(plain / "train.py"), start(DRIVER, report, watched / "train.py", report=report)
    outcomes[1].stderr = outcomes[1].stderr.replace(str(watched.absolute()), str(plain.absolute()))
    return outcomes


def without_source(stderr: str) -> list[str]:
    """Under a watched run, warnings also show the line of a script that came by stdin or lies in an archive."""
    return [line for line in stderr.splitlines() if not line.startswith("  ")]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of the test's own to work in, with the fixtures copied into it."""
    copy = tmp_path / "work"
    shutil.copytree(FIXTURES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(copy)
    return copy


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts back what a run in this process leaves behind."""
    monkeypatch.setattr(sys, "argv", sys.argv[:])
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def no_exit(ended: Ended) -> int:
    raise AssertionError(ended)


class TestWorld:
    @pytest.mark.parametrize(
        "command",
        [
            ["facts.py", "a", "--b"],
            ["./package/../facts.py"],
            ["elsewhere/link.py"],
            ["-m", "facts", "a"],
            ["-m", "package.train", "a", "--b"],
            ["-m", "package"],
            ["directory", "a"],
            ["archive.zip", "a"],
            ["-", "a"],
        ],
        ids=" ".join,
    )
    def test_is_that_of_plain_python(self, here: Path, command: list[str]) -> None:
        (here / "elsewhere").mkdir()
        (here / "elsewhere" / "link.py").symlink_to(here / "facts.py")
        (here / "directory").mkdir()
        shutil.copy("facts.py", "directory/__main__.py")
        with zipfile.ZipFile("archive.zip", "w") as archive:
            archive.write("facts.py", "__main__.py")

        plain, watched = both(*command, stdin="typed\n" if command[0] != "-" else (here / "facts.py").read_text())

        assert watched.stdout == plain.stdout
        assert without_source(watched.stderr) == without_source(plain.stderr)
        assert (watched.status, plain.status) == (0, 0)
        assert watched.ended == [str(Ended("finished"))]

    @pytest.mark.skipif(sys.version_info < (3, 11), reason="3.10 has no -P")
    @pytest.mark.parametrize("command", [["facts.py"], ["-"], ["directory"]], ids=" ".join)
    def test_respects_the_safe_path(self, here: Path, command: list[str]) -> None:
        shutil.copytree("package", "directory")
        shutil.copy("facts.py", "directory/__main__.py")
        plain, watched = both(*command, flags=("-P",), stdin=(here / "facts.py").read_text())
        assert (watched.stdout, watched.status) == (plain.stdout, 0)

    def test_lets_spawned_workers_find_the_script(self, here: Path) -> None:
        _, watched = both("spawn.py")
        assert (watched.stdout, watched.stderr, watched.status) == ("[2, 3]\n", "", 0)

    def test_stays_for_threads_and_exit_handlers(self, here: Path) -> None:
        plain, watched = both_of("""
            import atexit, pickle, sys, threading
            class Thing: pass
            def late():
                print(pickle.loads(pickle.dumps(Thing)) is Thing, sys.argv[1:], sys.modules["__main__"].late is late)
            atexit.register(late)
            def last(): threading.main_thread().join(); late()
            threading.Thread(target=last).start()
        """)
        assert watched.stdout == plain.stdout
        assert watched.stdout.count("True [] True") == 2

    def test_of_an_empty_script(self, here: Path) -> None:
        plain, watched = both_of("")
        assert (watched.stdout, watched.stderr, watched.status) == (plain.stdout, plain.stderr, 0)

    @pytest.mark.usefixtures("process")
    def test_is_new_for_each_run(self, here: Path) -> None:
        Path("first.py").write_text("first = 1\n")
        Path("second.py").write_text("assert 'first' not in globals()\n")
        entries = len(sys.path)
        for name in ("first.py", "second.py"):
            assert script.load(name, []).run(nullcontext(), no_exit) == Ended("finished")
        assert (sys.argv, sys.path[0], len(sys.path)) == (["second.py"], str(here), entries)

    def test_of_the_loader_is_untouched(self, here: Path) -> None:
        before = sys.argv[:], sys.path[:], sys.modules["__main__"], set(sys.modules)
        script.load("facts.py", ["a"])
        script.load("package.train", ["a"], module=True)
        assert (sys.argv, sys.path, sys.modules["__main__"], set(sys.modules)) == before


ENDINGS = {
    "exit with a status": ("import sys; sys.exit(3)", Ended("exit", 3)),
    "exit with a negative status": ("import sys; sys.exit(-1)", Ended("exit", 255)),
    "exit with a text": ("import sys; sys.exit('no data')", Ended("exit", 1)),
    "exit with nothing": ("import sys; sys.exit()", Ended("exit", 0)),
    "exception": ("def f():\n  raise RuntimeError('a\\nb')\nf()", Ended("exception", 1, "RuntimeError: a\nb")),
    "exception without text": ("assert False", Ended("exception", 1, "AssertionError")),
    "exception with a cause": (
        """
        try:
            try: 1 / 0
            except ZeroDivisionError as error: raise ValueError("v") from error
        except ValueError: {}["missing"]
        """,
        Ended("exception", 1, "KeyError: 'missing'"),
    ),
    "exception that is frozen": (
        """
        import dataclasses
        @dataclasses.dataclass(frozen=True)
        class Odd(Exception): code: int
        raise Odd(3)
        """,
        Ended("exception", 1, "Odd: 3"),
    ),
    "syntax error in an import": (
        "import sys, pathlib\npathlib.Path(__file__).with_name('broken.py').write_text('x = = 1')\nimport broken",
        Ended("exception", 1, "SyntaxError: invalid syntax"),
    ),
    "hook of its own": (
        "import sys; sys.excepthook = lambda *error: print('hook', error[:2], sys.exc_info()); 1 / 0",
        Ended("exception", 1, "ZeroDivisionError: division by zero"),
    ),
    "hook that exits": (
        "import sys; sys.excepthook = lambda *_: sys.exit(7); 1 / 0",
        Ended("exception", 7, "ZeroDivisionError: division by zero"),
    ),
    "hook that fails": (
        "import sys\ndef hook(*_): {}[0]\nsys.excepthook = hook; 1 / 0",
        Ended("exception", 1, "ZeroDivisionError: division by zero"),
    ),
    "thread that fails": (
        "import threading; t = threading.Thread(target=lambda: 1 / 0, name='t'); t.start(); t.join()",
        Ended("finished"),
    ),
    "stdout closed": ("import sys; print('x'); sys.stdout.close()", Ended("finished")),
    "file deleted": (
        "import os\nos.remove(__file__); os.chdir('/'); print(os.getcwd())\nimport traceback\n"
        "try: 1 / 0\nexcept ArithmeticError as error: print(error)",
        Ended("finished"),
    ),
    "future of its own": (
        "from __future__ import annotations\ndef f(a: b): pass\nprint(f.__annotations__)",
        Ended("finished"),
    ),
}
if sys.version_info >= (3, 11):
    ENDINGS["exception group"] = (
        """
        found = []
        for text in "ab":
            try: raise ValueError(text)
            except ValueError as error: found.append(error)
        raise ExceptionGroup("several", found)
        """,
        Ended("exception", 1, "ExceptionGroup: several (2 sub-exceptions)"),
    )


class TestEnd:
    @pytest.mark.parametrize(("source", "ended"), ENDINGS.values(), ids=ENDINGS.keys())
    def test_is_that_of_plain_python(self, here: Path, source: str, ended: Ended) -> None:
        plain, watched = both_of(source)
        assert watched.stdout == plain.stdout
        assert watched.stderr == plain.stderr
        assert watched.status == plain.status == ended.status
        assert watched.ended == [str(ended)]

    def test_by_an_exception_under_m_shows_no_machinery(self, here: Path) -> None:
        (here / "package" / "train.py").write_text("from . import missing\n")
        plain, watched = both("-m", "package.train")
        _, first, rest = watched.stderr.split("\n", 2)
        assert first.endswith('train.py", line 1, in <module>')
        assert plain.stderr.endswith(f"{first}\n{rest}")

    def test_by_an_exception_in_the_parent_package(self, here: Path) -> None:
        (here / "package" / "__init__.py").write_text("import no_such_library\n")
        _, watched = both("-m", "package.train")
        assert "no_such_library" in watched.stderr
        assert watched.ended == [str(Ended("exception", 1, "ModuleNotFoundError: No module named 'no_such_library'"))]

    def test_by_an_interrupt(self, here: Path) -> None:
        plain, watched = both_of("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass")
        assert watched.stderr == plain.stderr
        assert watched.ended == [str(Ended("interrupted", 130))]

    @pytest.mark.parametrize(
        "source",
        [
            "from gradtrace.host.script import StopRun\nraise StopRun",
            "from gradtrace.host.script import StopRun\ntry: raise StopRun\nexcept BaseException: {}[0]",
        ],
    )
    def test_by_stopping_is_quiet(self, here: Path, source: str) -> None:
        _, watched = both_of(source)
        assert (watched.stdout, watched.stderr, watched.ended) == ("", "", [str(Ended("stopped"))])

    def test_by_os_exit_is_reported(self, here: Path) -> None:
        plain, watched = both_of("import os; os._exit(4)")
        assert watched.status == plain.status == 4
        assert watched.ended == [str(Ended("exit", 4))]

    def test_by_os_exit_has_the_status_of_the_report(self, here: Path) -> None:
        Path("train.py").write_text("import os; print('before', end=' '); os._exit(4)")
        watch = "script.load('train.py', []).run(nullcontext(), lambda ended: print(ended.how) or 9)"
        done = start("-c", f"from contextlib import nullcontext; from gradtrace.host import script; {watch}")
        assert (done.stdout, done.status) == ("before exit\n", 9)

    @pytest.mark.usefixtures("process")
    def test_puts_os_exit_back(self, here: Path) -> None:
        before = os._exit
        Path("train.py").write_text("import os\nfound = os._exit\n1 / 0")
        program = script.load("train.py", [])
        assert program.run(nullcontext(), no_exit).how == "exception"
        assert os._exit is before is not vars(sys.modules["__main__"])["found"]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="cannot fork")
    @pytest.mark.parametrize("end", ["pass", "sys.exit(5)", "os._exit(6)", "1 / 0", "atexit.register(print, 'late')"])
    def test_of_a_forked_child_is_not_reported(self, here: Path, end: str) -> None:
        plain, watched = both_of(f"""
            import atexit, os, sys
            if child := os.fork():
                print(os.waitpid(child, 0)[1])
            else:
                {end}
        """)
        assert (watched.stdout, watched.stderr, watched.status) == (plain.stdout, plain.stderr, 0)
        assert watched.ended == [str(Ended("finished"))]

    @pytest.mark.usefixtures("process")
    def test_leaves_the_faults_of_the_watch_alone(self, here: Path) -> None:
        class Broken(nullcontext[None]):
            def __exit__(self, *_: object) -> None:
                raise OSError("of ours")

        with pytest.raises(OSError, match="of ours"):
            script.load("package/__init__.py", []).run(Broken(), no_exit)


BAD_SOURCES = {
    "not python": (b"x = 1\nif x:\n  y = = 2\n", r"/bad\.py:3 is not Python: invalid syntax: `y = = 2`"),
    "not utf-8": (b"x = '\xe9'\n", r"save it as UTF-8"),
    "unknown encoding": (b"# coding: klingon\n", r"unknown encoding: klingon"),
    "other encoding than declared": (b"# coding: ascii\nx = '\xe9'\n", r"save it as UTF-8"),
    "null bytes": (b"x = 1\0\n", r"null bytes"),
    "nested too deeply": (b"-" * 100_000 + b"1", r"nested too deeply|too complex"),
}


class TestUnrunnable:
    @staticmethod
    def message(what: str, module: bool = False) -> str:
        with pytest.raises(ScriptError) as caught:
            script.load(what, [], module)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    @pytest.mark.parametrize(("source", "message"), BAD_SOURCES.values(), ids=BAD_SOURCES.keys())
    def test_source(self, here: Path, source: bytes, message: str) -> None:
        Path("bad.py").write_bytes(source)
        found = self.message("bad.py")
        assert re.search(message, found)
        assert found.startswith(f"{here}/bad.py")

    def test_path(self, here: Path) -> None:
        Path("loop.py").symlink_to("loop.py")
        Path("empty").mkdir()
        assert self.message("missing.py").startswith(f"no script at {here}/missing.py; ")
        assert self.message("empty").startswith("empty has no __main__.py")
        assert self.message("loop.py").startswith("cannot read loop.py: ")
        assert self.message("facts.py/facts.py").startswith("cannot read facts.py/facts.py: Not a directory")

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_path(self, here: Path) -> None:
        Path("facts.py").chmod(0)
        assert self.message("facts.py").startswith("cannot read facts.py: Permission denied; ")

    @pytest.mark.parametrize("name", ["", ".", ".facts", "package.", "package..train"])
    def test_module_name(self, name: str) -> None:
        assert "is not the name of a module" in self.message(name, module=True)

    @pytest.mark.parametrize("name", ["no_such_module", "no_such_module.train", "facts.train", "facts.py"])
    def test_module_that_is_not_there(self, here: Path, name: str) -> None:
        assert self.message(name, module=True).startswith(f"no module named {name}; ")

    @pytest.mark.usefixtures("process")
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("package_a.missing", r"no module named package_a\.missing; "),
            ("package_a.missing.train", r"no module named package_a\.missing\.train; "),
            ("package_a", r"package_a is a package without __main__\.py; "),
            ("package_a.bad", r"/package_a/bad\.py:1 is not Python: "),
            ("sys", r"sys has no Python code"),
        ],
    )
    def test_module_that_only_importing_its_parents_shows(self, here: Path, name: str, message: str) -> None:
        Path("package_a").mkdir()
        Path("package_a/__init__.py").touch()
        Path("package_a/bad.py").write_text("x = = 1")
        program = script.load(name, [], module=True)
        try:
            with pytest.raises(ScriptError, match=message):
                program.run(nullcontext(), no_exit)
        finally:
            sys.modules.pop("package_a", None)

    def test_closed_stdin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        assert self.message("-").startswith("cannot read the script from stdin")


class TestProgram:
    def test_tells_its_name_and_where_the_users_code_lies(self, here: Path) -> None:
        (here / "link.py").symlink_to(here / "package" / "train.py")
        by_path, by_link = script.load("./facts.py", []), script.load("link.py", [])
        by_module, directory = script.load("package.train", [], module=True), script.load("package", [])
        assert (by_path.name, set(by_path.roots)) == ("./facts.py", {str(here)})
        assert (by_link.name, set(by_link.roots)) == ("link.py", {str(here), str(here / "package")})
        assert (by_module.name, by_module.roots) == ("-m package.train", (str(here / "package"),))
        assert (directory.name, directory.roots) == ("package", (str(here / "package"),))

    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_remembers_its_lines_when_the_file_is_gone(self, here: Path, newline: str) -> None:
        path = here / "gone.py"
        path.write_bytes(f"# coding: latin-1{newline}x = 'é'{newline}y = '\x0c'".encode("latin-1"))
        script.load("gone.py", [])
        path.unlink()
        linecache.checkcache()
        assert linecache.getlines(str(path)) == ["# coding: latin-1\n", "x = 'é'\n", "y = '\x0c'\n"]
