"""`gradtrace fix`: which edits hold, what is shown of them, and what happens to the files."""

from __future__ import annotations

import json
import os
import textwrap
from dataclasses import replace
from typing import Any

import pytest
from conftest import Runner

from gradtrace.fixes.edits import SourceFile
from gradtrace.fixes.search import Search
from gradtrace.fixes.trials import Outcome, Script
from gradtrace.model.finding import Ended, Finding, Level
from gradtrace.model.fix import Fix
from gradtrace.model.site import Site
from gradtrace.renderers.fixes.text import render
from gradtrace.report.config import Settings
from gradtrace.report.verdict import Verdict

HEAD = """
    import torch
    from torch import nn
    import torch.nn.functional as F

    torch.manual_seed(0)
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    labels = torch.randint(3, (8,))
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
"""
#: a fault, the line that goes and the line that comes, both without indentation
FAULTS = {
    "no zero_grad": (
        """
    for _ in range(6):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
""",
        "",
        "optimizer.zero_grad()",
    ),
    "step before backward": (
        """
    for _ in range(6):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        optimizer.step()
        loss.backward()
""",
        "loss.backward()",
        "loss.backward()",
    ),
    "clipped too late": (
        """
    for _ in range(6):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
""",
        "nn.utils.clip_grad_norm_(model.parameters(), 0.01)",
        "nn.utils.clip_grad_norm_(model.parameters(), 0.01)",
    ),
    "graph kept for nothing": (
        """
    for _ in range(6):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
""",
        "loss.backward(retain_graph=True)",
        "loss.backward()",
    ),
    "running loss": (
        """
    total = 0
    for _ in range(12):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
""",
        "total += loss",
        "total += loss.item()",
    ),
    "softmax twice": (
        """
    head = nn.Linear(4, 3)
    second = torch.optim.SGD(head.parameters(), lr=0.05)
    for _ in range(6):
        loss = F.cross_entropy(torch.softmax(head(x), dim=1), labels)
        second.zero_grad()
        loss.backward()
        second.step()
""",
        "loss = F.cross_entropy(torch.softmax(head(x), dim=1), labels)",
        "loss = F.cross_entropy(head(x), labels)",
    ),
    "layers in a list": (
        """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(4, 4) for _ in range(2)]
            self.head = nn.Linear(4, 1)

        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return self.head(x)

    net = Net()
    second = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(6):
        loss = F.mse_loss(net(x), y)
        second.zero_grad()
        loss.backward()
        second.step()
""",
        "self.layers = [nn.Linear(4, 4) for _ in range(2)]",
        "self.layers = torch.nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])",
    ),
    "hidden state carried": (
        """
    cell = nn.RNNCell(4, 5)
    second = torch.optim.SGD(cell.parameters(), lr=0.05)
    hidden = torch.zeros(8, 5)
    for _ in range(6):
        hidden = cell(x, hidden)
        loss = hidden.pow(2).mean()
        second.zero_grad()
        loss.backward()
        second.step()
""",
        "",
        "hidden = hidden.detach()",
    ),
}


def fixed(gradtrace: Runner, *arguments: str, status: int = 0) -> dict[str, Any]:
    done = gradtrace.alone("fix", "--format", "json", *arguments)
    assert done.status == status, done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


def changes(diff: str) -> tuple[list[str], list[str]]:
    """The lines that go and those that come."""
    rows = [row for row in diff.splitlines() if not row.startswith(("---", "+++", "@@"))]
    gone = [row[1:].strip() for row in rows if row.startswith("-")]
    new = [row[1:].strip() for row in rows if row.startswith("+")]
    return gone, new


@pytest.mark.parametrize("fault", FAULTS)
def test_the_edit_that_changes_least_is_shown(gradtrace: Runner, fault: str) -> None:
    body, gone, new = FAULTS[fault]
    document = fixed(gradtrace, gradtrace.write(HEAD + body))
    assert changes(document["diff"]) == ([gone] if gone else [], [new])
    assert document["unfixed"] == []
    assert "gone, nothing new" in document["fixes"][0]["proof"]


def test_a_fault_in_an_imported_module_is_fixed_there(gradtrace: Runner) -> None:
    gradtrace.write(
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder = nn.Linear(4, 4)
                self.head = nn.Linear(4, 1)

            def forward(self, x):
                return self.head(torch.tanh(self.encoder(x)).detach())
        """,
        "model.py",
    )
    script = gradtrace.write(
        """
        import torch
        from model import Net

        torch.manual_seed(0)
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(6):
            loss = net(torch.randn(8, 4)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        """
    )
    before = (gradtrace.directory / "model.py").read_text()
    document = fixed(gradtrace, script)
    assert "--- model.py" in document["diff"]
    assert changes(document["diff"])[1] == ["return self.head(torch.tanh(self.encoder(x)))"]
    assert (gradtrace.directory / "model.py").read_text() == before


def test_two_faults_are_fixed_together_and_written(gradtrace: Runner) -> None:
    body = """
    total = 0
    for _ in range(12):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
"""
    script = gradtrace.write(HEAD + body)
    done = gradtrace.alone("fix", "--write", script)
    assert done.status == 0, done.err
    assert {row.split()[1] for row in done.out.splitlines() if row.startswith("fixed ")} == {
        "stale-grad",
        "graph-growth",
    }
    checked = gradtrace.alone("check", script)
    assert checked.status == 0, checked.out


def test_a_script_without_findings_is_left_alone(gradtrace: Runner) -> None:
    script = gradtrace.write(HEAD + "    model(x).mean().backward()\n")
    done = gradtrace.alone("fix", "--write", script)
    assert (done.status, done.out) == (0, "nothing to fix: no gradient faults\n")


def test_what_no_edit_fixes_is_left(gradtrace: Runner) -> None:
    body = """
    best = model(x).argmax(1)
    loss = (best - 1).float().mean()
    loss.backward()
"""
    document = fixed(gradtrace, gradtrace.write(HEAD + body), status=1)
    assert (document["diff"], document["fixes"]) == ("", [])
    assert [(one["rule"], one["tried"]) for one in document["unfixed"]] == [("no-graph", 0)]


def test_a_script_that_differs_from_run_to_run_is_refused(gradtrace: Runner) -> None:
    body = """
    import os
    if os.getpid() % 2:
        for _ in range(3):
            model(x).mean().backward()
            optimizer.step()
    else:
        model(x).mean().backward()
"""
    done = gradtrace.alone("fix", gradtrace.write(HEAD + body))
    assert (done.status, done.out) == (2, "")
    assert "two runs of the script, unedited, differ in what they find" in done.err


def test_an_ignored_finding_is_left_alone(gradtrace: Runner) -> None:
    body = """
    for _ in range(6):
        F.mse_loss(model(x), y).backward()  # gradtrace: ignore[stale-grad] -- momentum by hand
        optimizer.step()
"""
    done = gradtrace.alone("fix", gradtrace.write(HEAD + body))
    assert (done.status, done.out) == (0, "nothing to fix: no gradient faults\n")


def test_a_read_only_file_is_not_written(gradtrace: Runner) -> None:
    script = gradtrace.write(HEAD + FAULTS["no zero_grad"][0])
    before = (gradtrace.directory / script).read_text()
    (gradtrace.directory / script).chmod(0o444)
    if os.access(gradtrace.directory / script, os.W_OK):
        pytest.skip("root may write to everything")
    done = gradtrace.alone("fix", "--write", script)
    assert (done.status, done.out) == (2, "")
    assert f"{script} is read-only" in done.err
    assert (gradtrace.directory / script).read_text() == before


def test_the_encoding_of_a_file_stays(gradtrace: Runner) -> None:
    text = textwrap.dedent(HEAD + FAULTS["no zero_grad"][0])
    path = gradtrace.directory / "train.py"
    path.write_bytes(f"# -*- coding: latin-1 -*-\nname = 'é'\n{text}".encode("latin-1"))
    done = gradtrace.alone("fix", "--write", "train.py")
    assert done.status == 0, done.err
    written = path.read_bytes()
    assert "name = 'é'".encode("latin-1") in written
    assert b"optimizer.zero_grad()" in written


def test_check_says_what_tries_edits(gradtrace: Runner) -> None:
    script = gradtrace.write(HEAD + FAULTS["no zero_grad"][0])
    assert gradtrace.alone("check", script).out.endswith(f"`gradtrace fix {script}` tries edits\n")
    assert "tries edits" not in gradtrace.alone("check", "--quiet", script).out
    sound = gradtrace.write(HEAD + "    model(x).mean().backward()\n", "sound.py")
    assert "tries edits" not in gradtrace.alone("check", sound).out


def test_check_with_fix_reports_edits_in_each_format(gradtrace: Runner) -> None:
    script = gradtrace.write(HEAD + FAULTS["no zero_grad"][0])
    outputs = [word for name in ("r.txt", "r.sarif", "r.json", "r.html") for word in ("-o", name)]
    done = gradtrace.alone("check", "--fix", "--format", "github", *outputs, script)
    assert done.status == 1, done.err
    added = "+    optimizer.zero_grad()"
    read = {name: (gradtrace.directory / name).read_text() for name in ("r.txt", "r.sarif", "r.json", "r.html")}
    assert added in read["r.txt"]
    assert added in read["r.html"]
    (finding,) = json.loads(read["r.json"])["findings"]
    assert added in finding["fix"]["diff"]
    (result,) = json.loads(read["r.sarif"])["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    (replacement,) = change["replacements"]
    lines = (gradtrace.directory / script).read_text().splitlines(keepends=True)
    region = replacement["deletedRegion"]
    lines[region["startLine"] - 1 : region["endLine"] - 1] = [replacement["insertedContent"]["text"]]
    assert "    optimizer.zero_grad()\n    loss.backward()\n" in "".join(lines)
    # as GitHub's commands spell line ends
    assert "%0A+    optimizer.zero_grad()" in gradtrace.alone("check", "--fix", "--format", "github", script).out


def test_a_long_run_is_told_how_to_be_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome((), Ended("finished"), False, 400, 400, took=60.0, found_by=12)
    search = object.__new__(Search)
    search.outcome = outcome
    monkeypatch.setattr(search, "_script", Script(["train.py"], None, None, Verdict(Settings())), raising=False)
    assert search.suggested_steps() == 24
    monkeypatch.setattr(search, "outcome", replace(outcome, took=1.0))
    assert search.suggested_steps() is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--timeout", "0"], "--timeout 0: give a number of seconds above 0"),
        (["--timeout", "0.01"], "the script gave no result in the time it had"),
        (["--format", "svg"], "--format svg: fix writes text or json"),
        (["-o", "train.py"], "would be overwritten"),
    ],
)
def test_what_cannot_be_done_is_one_line(gradtrace: Runner, arguments: list[str], says: str) -> None:
    done = gradtrace.alone("fix", *arguments, gradtrace.write(HEAD))
    assert (done.status, done.out) == (2, "")
    assert says in done.err
    assert len(done.err.splitlines()) == 1


def test_ctrl_c_leaves_what_holds_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    search = object.__new__(Search)
    finding = Finding("stale-grad", Level.ERROR, "one", "", Site("train.py", 3, ""))
    fix = Fix(finding, "call zero_grad()", "20 backward calls", "train.py", "a\n", "b\n")
    for name, value in {
        "_before": {"train.py": "a\n"},
        "_now": {"train.py": "b\n"},
        "_fixes": [fix],
        "_unfixed": [],
    }.items():
        monkeypatch.setattr(search, name, value, raising=False)

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "_run", interrupted)
    search.run()
    shown = render(search.report())
    assert "+b\n" in shown
    assert "interrupted: other findings were not taken on\n" in shown


class TestEdits:
    TEXT = "for i in range(3):\n    a = 1  # one\n    b = 2\nprint('é', a.sqrt())\n"

    def test_a_moved_statement_keeps_its_comment(self) -> None:
        file = SourceFile("x.py", self.TEXT)
        first, second = file.statement_at(2), file.statement_at(3)
        assert first is not None
        assert second is not None
        assert file.move(first, second) == self.TEXT.replace(
            "    a = 1  # one\n    b = 2\n", "    b = 2\n    a = 1  # one\n"
        )

    def test_columns_are_those_of_characters(self) -> None:
        file = SourceFile("x.py", self.TEXT)
        (call,) = file.calls(file.tree, "sqrt")
        assert file.replace(call, "a") == self.TEXT.replace("a.sqrt()", "a")

    def test_the_only_statement_of_a_block_leaves_a_pass(self) -> None:
        file = SourceFile("x.py", "if a:\n    b()\n")
        only = file.statement_at(2)
        assert only is not None
        assert file.delete(only) == "if a:\n    pass\n"

    def test_statements_that_share_a_line_stay_where_they_are(self) -> None:
        file = SourceFile("x.py", "a(); b()\nc()\n")
        assert file.move(file.statements[0], file.statements[2]) is None
