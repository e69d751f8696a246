"""Checks scripts one after another, in a process that loads torch once: paths on stdin, a report for each on stdout.

The road is that of `gradtrace check`: the script runs as `__main__` under the real watch, and the real rules judge.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import torch

from gradtrace.host import script
from gradtrace.model.finding import Ended, Finding
from gradtrace.report import suppressions
from gradtrace.rules import Judge, all_rules
from gradtrace.watcher.watch import Watch


def check(path: str, gradcheck: bool = False) -> dict[str, Any]:
    program = script.load(path, [])
    judge, known = Judge(), {rule.id for rule in all_rules()}
    watch = Watch(judge.see, user_roots=program.roots, gradcheck=gradcheck)
    ended = program.run(watch, leave, watch.crashed)
    torch.set_grad_enabled(True)
    findings, _, told = suppressions.apply(judge.findings, [os.path.abspath(path)], judge.judged, known)
    return {
        "findings": [as_json(finding) for finding in findings + told],
        "exception": ended.exception,
        "explained": judge.explains(ended.exception),
        "remarks": watch.remarks,
        "backward_calls": watch.backward_calls,
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
