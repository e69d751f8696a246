"""The cell magic, in a notebook that a kernel executes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
nbformat = pytest.importorskip("nbformat")

CELLS = {
    "load": "%load_ext gradtrace",
    "earlier": """\
import torch
def step(weight, optimizer):
    weight.square().sum().backward()
    optimizer.step()""",
    "stale": """\
%%gradtrace check
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for _ in range(4):
    step(weight, optimizer)
"shown as ever\"""",
    "crash": """\
%%gradtrace check
total = torch.ones(2, requires_grad=True).exp().sum()
total.backward()
total.backward()""",
    "clean": "%%gradtrace check --ignore stale-grad\nstep(weight, optimizer)",
    "await": "%%gradtrace check\nimport asyncio\nawait asyncio.sleep(0)",
    "interrupted": "%%gradtrace check\nweight.sum().backward()\nraise KeyboardInterrupt",
    "misspelt": "%%gradtrace chek\n1",
    "no rule": "%%gradtrace check --select stale\n1",
    "later": "weight.shape",
    "tree": "import gradtrace\ngradtrace.show(weight.sum())",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each cell shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
        patch.setenv("NO_COLOR", "1")
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
        resources = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
        nbclient.NotebookClient(book, allow_errors=True, kernel_name="python3", resources=resources).execute()
    return dict(zip(CELLS, (cell.outputs for cell in book.cells), strict=True))


def printed(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_a_cell_is_checked_with_what_it_calls_of_others(outputs: dict[str, list[Any]]) -> None:
    shown, report = outputs["stale"]
    assert shown.data["text/plain"] == "'shown as ever'"
    assert report.text.startswith("error[stale-grad]: ")
    assert "\n --> In[2]:3:5 in step (3 times)\n" in report.text
    assert "\n3 │     weight.square().sum().backward()\n" in report.text
    assert "1 error; 4 backward calls, 4 optimizer steps" in report.text


def test_a_cell_that_fails_is_explained_and_ends_the_run_of_the_notebook(outputs: dict[str, list[Any]]) -> None:
    error, report, end = outputs["crash"]
    assert error.evalue.startswith("Trying to backward through the graph a second time")
    assert "In[4]" in "".join(error.traceback)
    assert "\n --> In[4]:3:1\n" in printed([report])
    assert (end.output_type, end.ename) == ("error", "_AlreadyReportedError")


def test_options_choose(outputs: dict[str, list[Any]]) -> None:
    assert printed(outputs["clean"]).startswith("no gradient faults: 1 backward call, 1 optimizer step")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("misspelt", "gradtrace: %%gradtrace check: argument command: invalid choice: 'chek'"),
        ("no rule", "gradtrace: no rule is called 'stale'; did you mean stale-grad?\n"),
    ],
)
def test_what_is_wrong_is_told(cell: str, message: str, outputs: dict[str, list[Any]]) -> None:
    told, end = outputs[cell]
    assert told.text.startswith(message)
    assert (end.ename, end.traceback) == ("_AlreadyReportedError", [])


def test_nothing_stays(outputs: dict[str, list[Any]]) -> None:
    assert [output.data["text/plain"] for output in outputs["later"]] == ["torch.Size([2])"]


def test_a_tree_is_shown_once(outputs: dict[str, list[Any]]) -> None:
    (shown,) = outputs["tree"]
    assert shown.output_type == "execute_result"
    assert "SumBackward0" in shown.data["text/html"]


def test_a_cell_with_await_gets_one_line(outputs: dict[str, list[Any]]) -> None:
    assert printed(outputs["await"]) == (
        "gradtrace: %%gradtrace check: a cell with await at its top cannot be checked; put it into a function\n"
    )


def test_an_interrupted_cell_is_reported_as_such(outputs: dict[str, list[Any]]) -> None:
    assert "the script was interrupted" in printed(outputs["interrupted"])
