"""The formats of code hosts and CI servers: SARIF by its published schema, GitHub's commands, JUnit XML by a parser."""

from __future__ import annotations

import json
import linecache
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema
import pytest

from gradtrace.errors import ExitCode
from gradtrace.model.finding import Ended, Finding, Level, Related, Report, Silenced, Unjudged
from gradtrace.model.site import Site
from gradtrace.renderers.findings import github, junit, sarif
from gradtrace.renderers.paper import Paper
from gradtrace.rules import manuals

if TYPE_CHECKING:
    from tests.conftest import Runner

#: as the technical committee published it; draft 4 of JSON Schema
SCHEMA = Path(__file__).parents[1] / "fixtures" / "sarif-2.1.0-rtm.5.json"
ODD = "50% of `a:b`, \r\nand ::error::\x1b[0m é 😀 <&> ]]> \udc80"
VISIBLE = "50% of `a:b`, \r\nand ::error::\x1b[0m é 😀 <&> ]]> \\udc80"
UNJUDGED = (Unjudged("late-clip", "no optimizer step was seen"), Unjudged("leaked-grad", "no optimizer step was seen"))


@cache
def validator() -> jsonschema.Draft4Validator:
    return jsonschema.Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def as_sarif(what: Report) -> Any:
    text = sarif.render(what, Paper())
    assert text.isascii()
    document = json.loads(text)
    assert [error.message for error in validator().iter_errors(document)] == []
    (run,) = document["runs"]
    return run


def as_junit(what: Report) -> ElementTree.Element:
    text = junit.render(what, Paper())
    assert text.isascii()
    (suite,) = ElementTree.fromstring(text)
    return suite


def as_github(what: Report) -> tuple[list[tuple[str, dict[str, str], str]], list[str]]:
    """The commands as GitHub's runner reads them, and the other lines."""
    commands, others = [], []
    for line in github.render(what, Paper()).splitlines():
        found = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
        if found is None:
            others.append(line)
        else:
            pairs = (pair.split("=", 1) for pair in found[2].split(","))
            commands.append((found[1], {key: unquote(value) for key, value in pairs}, unquote(found[3])))
    return commands, others


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Site]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b,c.py").write_text("x = 1\nloss.backward()\n")
    return lambda line=2, column=0, end_line=2, end_column=15, path="a b,c.py": Site(
        str(tmp_path / path), line, "train", column, end_line, end_column
    )


def finding(
    site: Site, level: Level = Level.ERROR, rule: str = "stale-grad", message: str = "m", **more: Any
) -> Finding:
    return Finding(rule, level, message, "mend it", site, **more)


def report(*findings: Finding, exit_code: int = ExitCode.FINDINGS, **more: Any) -> Report:
    ended = more.pop("ended", Ended("finished"))
    return Report("train.py", findings, ended, "2.13.0", 4, 2, exit_code, rules=manuals(), **more)


class TestSarif:
    def test_tells_all_of_a_finding(self, site: Callable[..., Site]) -> None:
        related = (Related(site(1, 4, 1, 5), "made here"),)
        run = as_sarif(report(finding(site(), related=related, occurrences=12)))
        (result,) = run["results"]
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert (result["ruleId"], rule["id"], result["level"]) == ("stale-grad", "stale-grad", "error")
        assert "zero_grad" in rule["help"]["text"]
        assert "```python\n" in rule["help"]["markdown"]
        assert rule["defaultConfiguration"] == {"level": "error"}
        assert result["message"]["text"] == "m\nmend it"
        assert result["occurrenceCount"] == 12
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "a%20b%2Cc.py", "uriBaseId": "%SRCROOT%"}
        assert place["region"] == {
            "startLine": 2,
            "startColumn": 1,
            "endLine": 2,
            "endColumn": 16,
            "snippet": {"text": "loss.backward()\n"},
        }
        assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "train"
        (other,) = result["relatedLocations"]
        assert other["message"]["text"] == "made here"
        assert other["physicalLocation"]["region"]["startLine"] == 1
        base = run["originalUriBaseIds"]["%SRCROOT%"]["uri"]
        assert (base, run["columnKind"]) == (f"{Path.cwd().as_uri()}/", "unicodeCodePoints")

    def test_keeps_what_is_silenced_as_suppressed(self, site: Callable[..., Site]) -> None:
        silenced = (Silenced(finding(site()), "comment", "why"), Silenced(finding(site(1)), "baseline"))
        results = as_sarif(report(finding(site(), rule="no-graph"), silenced=silenced))["results"]
        assert [result["suppressions"] for result in results] == [
            [],
            [{"kind": "inSource", "justification": "why"}],
            [{"kind": "external"}],
        ]

    def test_tells_who_could_not_judge_and_what_went_wrong(self) -> None:
        ended = Ended("exception", 1, "ValueError: mine")
        what = report(exit_code=ExitCode.SCRIPT_FAILED, ended=ended, unjudged=UNJUDGED, remarks=("a remark",))
        (invocation,) = as_sarif(what)["invocations"]
        assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
        assert [
            (one["level"], one["message"]["text"], one.get("associatedRule", {}).get("id"))
            for one in invocation["toolExecutionNotifications"]
        ] == [
            ("note", "late-clip lacked data: no optimizer step was seen", "late-clip"),
            ("note", "leaked-grad lacked data: no optimizer step was seen", "leaked-grad"),
            ("warning", "a remark", None),
            ("error", "the script failed: ValueError: mine", None),
        ]

    def test_has_fingerprints_that_outlive_edits(self, site: Callable[..., Site], tmp_path: Path) -> None:
        def prints(*findings: Finding) -> list[str]:
            return [one["partialFingerprints"]["gradtrace/v1"] for one in as_sarif(report(*findings))["results"]]

        before = prints(finding(site()), finding(site(column=3)), finding(site(), rule="no-graph"))
        assert len(set(before)) == 3
        (tmp_path / "later.py").write_text("\n\n\n  loss.backward()\n")
        (tmp_path / "a b,c.py").write_text("# new\n\n  loss.backward()\n")
        linecache.clearcache()
        (after,) = prints(finding(site(3)))
        assert after == before[0]
        assert prints(finding(site(4, path="later.py"))) != [after]

    @pytest.mark.parametrize(
        ("path", "uri"),
        [("/elsewhere/x.py", "file:///elsewhere/x.py"), ("<stdin>", "%3Cstdin%3E"), ("é#?.py", "%C3%A9%23%3F.py")],
    )
    def test_has_uris_of_any_path(self, path: str, uri: str) -> None:
        (result,) = as_sarif(report(finding(Site(path, 1, ""))))["results"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri

    def test_carries_any_text(self) -> None:
        (result,) = as_sarif(report(finding(Site("a.py", 1, ""), message=ODD)))["results"]
        assert result["message"]["text"] == VISIBLE + "\nmend it"


class TestGithub:
    def test_annotates_the_lines(self, site: Callable[..., Site]) -> None:
        related = (Related(site(1, 4, 1, 5), "made here"),)
        commands, others = as_github(
            report(finding(site(), related=related), finding(site(1, end_line=2), Level.WARNING, "no-graph"))
        )
        assert commands == [
            (
                "error",
                {"file": "a b,c.py", "line": "2", "endLine": "2", "col": "1", "endColumn": "15"}
                | {"title": "gradtrace: stale-grad"},
                "m\na b,c.py:1: made here\nhelp: mend it",
            ),
            (
                "warning",
                {"file": "a b,c.py", "line": "1", "endLine": "2", "col": "1", "title": "gradtrace: no-graph"},
                "m\nhelp: mend it",
            ),
        ]
        assert others == [
            "gradtrace: 1 error, 1 warning; 4 backward calls, 2 optimizer steps, torch 2.13.0; the script finished"
        ]

    def test_escapes_what_would_end_a_property_or_a_line(self, site: Callable[..., Site]) -> None:
        out = github.render(report(finding(site(path="50%:,\r\n.py"), message="50%:,\r\n::error::x")), Paper())
        assert out.splitlines()[1:] == [
            "::error file=50%25%3A%2C\\r\\n.py,line=2,endLine=2,col=1,endColumn=15,title=gradtrace%3A stale-grad"
            "::50%25:,\\r%0A::error::x%0Ahelp: mend it"
        ]

    def test_stops_at_what_is_shown_of_each_level(self, site: Callable[..., Site]) -> None:
        findings = [finding(site(line), level) for level in (Level.ERROR, Level.NOTE) for line in range(1, 13)]
        commands, others = as_github(report(*findings, unjudged=UNJUDGED))
        assert [command for command, *_ in commands] == ["error"] * 10 + ["notice"] * 10
        assert others[1:] == [
            "gradtrace: 2 more errors, beyond the 10 that GitHub shows",
            "gradtrace: 3 more notes, beyond the 10 that GitHub shows",
        ]

    def test_tells_who_could_not_judge_and_what_went_wrong(self) -> None:
        ended = Ended("exception", 1, "ValueError: mine\nmore")
        what = report(exit_code=ExitCode.SCRIPT_FAILED, ended=ended, unjudged=UNJUDGED, remarks=("a remark",))
        commands, others = as_github(what)
        assert commands == [
            ("error", {"title": "gradtrace"}, "the script failed: ValueError: mine\nmore"),
            ("warning", {"title": "gradtrace"}, "a remark"),
            (
                "notice",
                {"title": "gradtrace: rules that lacked data"},
                "no optimizer step was seen: late-clip, leaked-grad",
            ),
        ]
        assert len(others) == 1


class TestJunit:
    def test_has_a_case_for_each_finding_and_each_rule_without(self, site: Callable[..., Site]) -> None:
        related = (Related(site(1, 4, 1, 5), "made here"),)
        note = finding(site(1), Level.NOTE, "no-graph")
        suite = as_junit(report(finding(site(), related=related), finding(site(1)), note, unjudged=UNJUDGED))
        number = len(manuals()) + 1
        assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
            "tests": str(number),
            "failures": "2",
            "errors": "0",
            "skipped": "2",
        }
        cases = {case.get("name"): case for case in suite.iter("testcase")}
        assert len(cases) == number
        failure = cases["stale-grad at a b,c.py:2"].find("failure")
        assert failure is not None
        assert (failure.get("message"), failure.get("type")) == ("m", "error")
        assert failure.text == "a b,c.py:2: m\na b,c.py:1: made here\nhelp: mend it"
        assert [child.tag for child in cases["no-graph at a b,c.py:1"]] == ["system-out"]
        assert [child.get("message") for child in cases["late-clip"]] == ["no optimizer step was seen"]
        assert len(cases["freed-graph"]) == 0

    def test_fails_from_the_level_on_that_was_asked_for(self, site: Callable[..., Site]) -> None:
        findings = [finding(site(line), level) for line, level in enumerate(Level, 1)]
        for level in Level:
            assert as_junit(report(*findings, fail_on=level)).get("failures") == str(4 - level)

    @pytest.mark.parametrize("code", [ExitCode.SCRIPT_FAILED, ExitCode.NOTHING_TO_CHECK])
    def test_has_an_error_where_nothing_can_be_said(self, code: ExitCode) -> None:
        suite = as_junit(report(exit_code=code, ended=Ended("exception", 1, "ValueError: mine"), remarks=("a remark",)))
        assert suite.get("errors") == "1"
        assert suite.findtext("system-out", "").endswith("\na remark")

    def test_carries_any_text(self, site: Callable[..., Site]) -> None:
        failure = next(as_junit(report(finding(site(), message=ODD))).iter("failure"))
        assert failure.get("message") == "50% of `a:b`, \\r\nand ::error::\\x1b[0m é 😀 <&> ]]> \\udc80"


#: a finding that stands, one that a comment silences, and rules that cannot judge
SOURCE = """
import os
import torch
weight = torch.ones(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], 0.1)
for step in range(4):
    loss = weight.square().sum()
    loss.backward(retain_graph=True)  # gradtrace: ignore[unneeded-retain]
    optimizer.step()
os.chdir("/")
"""


def test_all_at_once_from_the_command_line(gradtrace: Runner) -> None:
    (gradtrace.directory / "sub").mkdir()
    gradtrace.write(SOURCE, "sub/train.py")
    # paths in a job are those of the checkout
    gradtrace.environment["GITHUB_WORKSPACE"] = str(gradtrace.directory)
    arguments = ["--format", "github", "-o", "a.sarif", "-o", "a.xml", "-o", "a.json", "train.py"]
    done = gradtrace.alone("check", *arguments, cwd=gradtrace.directory / "sub")
    assert done.status == 1
    assert [line.split("::")[1].split(",")[0] for line in done.out.splitlines()[1:]] == [
        "error file=sub/train.py",
        "notice title=gradtrace%3A rules that lacked data",
    ]
    document = json.loads((gradtrace.directory / "sub" / "a.sarif").read_text())
    assert validator().is_valid(document)
    results = document["runs"][0]["results"]
    assert [(result["ruleId"], len(result["suppressions"])) for result in results] == [
        ("stale-grad", 0),
        ("unneeded-retain", 1),
    ]
    assert {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results} == {"sub/train.py"}
    suite = ElementTree.parse(gradtrace.directory / "sub" / "a.xml").getroot()[0]
    assert [suite.get(name) for name in ("failures", "skipped")] == ["1", "2"]
    document = json.loads((gradtrace.directory / "sub" / "a.json").read_text())
    assert [one["rule"] for one in document["unjudged"]] == ["graph-growth", "hook-growth"]
