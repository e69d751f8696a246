"""Checks scripts one after another, in a process that loads torch once: paths on stdin, a report for each on stdout.

The road is that of `gradtrace check`: the script runs as `__main__` under the real watch, the real rules judge, and the
report has the exit code that the command would have.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch

from gradtrace.host import script
from gradtrace.model.finding import Ended, Finding
from gradtrace.report.config import Settings
from gradtrace.report.recording import RecordedRun
from gradtrace.report.verdict import Verdict
from gradtrace.watcher.watch import TORCH_VERSION, Watch


def check(path: str, gradcheck: bool = False) -> dict[str, Any]:
    program = script.load(path, [])
    verdict = Verdict(Settings())
    judge = verdict.judge()
    watch = Watch(judge.see, user_roots=program.roots, gradcheck=gradcheck)
    ended = program.run(watch, leave, watch.crashed)
    torch.set_grad_enabled(True)
    remarks = watch.remarks + watch.unseen
    run = RecordedRun(path, TORCH_VERSION, os.getcwd(), ended, remarks, watch.user_files())
    report = verdict.report(judge, run, watch.backward_calls, watch.optimizer_steps)
    return {
        "findings": [as_json(finding) for finding in report.findings],
        "exception": ended.exception,
        "explained": judge.explains(ended.exception),
        "exit_code": int(report.exit_code),
        "remarks": report.remarks,
    }


def as_json(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "level": str(finding.level),
        "line": finding.site.line,
        "message": finding.message,
        "help": finding.help,
        "related": [[related.site.line, related.message] for related in finding.related],
    }


def leave(ended: Ended) -> int:
    return ended.status


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for line in sys.stdin:
        path, _, option = line.strip().partition("\t")
        out.write(json.dumps(check(path, gradcheck=option == "gradcheck")) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
