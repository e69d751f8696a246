"""Writes what `check` found as JUnit XML: a test case for each finding, and one for each rule that found nothing.

A finding below the level that fails is a passed case with its text as output; a rule that lacked data is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from gradtrace.errors import ExitCode
from gradtrace.escapes import visible
from gradtrace.model.finding import Finding, Report
from gradtrace.renderers.findings.summary import verdict
from gradtrace.renderers.paper import Paper
from gradtrace.renderers.wording import file


def render(report: Report, paper: Paper) -> str:
    """The document, in ASCII alone."""
    suite = _element("testsuite", name=f"gradtrace check {report.script}")
    suite.extend(_cases(report))
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(list(suite.iter(tag)))))
    suite.append(_element("system-out", "\n".join(["".join(verdict(report)), *report.remarks])))
    suites = _element("testsuites", **{name: value for name, value in suite.items() if name != "skipped"})
    suites.append(suite)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="us-ascii"?>\n{ElementTree.tostring(suites).decode()}\n'


def _cases(report: Report) -> Iterator[Element]:
    whys = {one.rule: one.why for one in report.unjudged}
    found = {finding.rule for finding in report.findings}
    for finding in report.findings:
        yield _failing(finding, report)
    for rule in (manual.rule for manual in report.rules if manual.rule not in found):
        case = _element("testcase", name=rule, classname=report.script)
        if rule in whys:
            case.append(_element("skipped", message=whys[rule]))
        yield case
    if report.exit_code in (ExitCode.SCRIPT_FAILED, ExitCode.NOTHING_TO_CHECK):
        case = _element("testcase", name="script", classname=report.script)
        case.append(_element("error", message="".join(verdict(report)), type=report.ended.how))
        yield case


def _failing(finding: Finding, report: Report) -> Element:
    place = f"{Path(file(finding.site.path, report.root)).as_posix()}:{finding.site.line}"
    related = [f"{file(one.site.path, report.root)}:{one.site.line}: {one.message}" for one in finding.related]
    text = "\n".join([f"{place}: {finding.message}", *related, f"help: {finding.help}"])
    case = _element("testcase", name=f"{finding.rule} at {place}", classname=report.script)
    if finding.level >= report.fail_on:
        case.append(_element("failure", text, message=finding.message, type=str(finding.level)))
    else:
        case.append(_element("system-out", f"{finding.level}: {text}"))
    return case


def _element(tag: str, text: str = "", **attributes: str) -> Element:
    element = Element(tag, {name: _clean(value) for name, value in attributes.items()})
    element.text = _clean(text) or None
    return element


def _clean(text: str) -> str:
    return visible(text)
