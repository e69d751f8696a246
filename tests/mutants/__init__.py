"""Mutants: correct training programs with one known fault put in, to measure what `gradtrace check` finds.

`programs/` has the base programs, `operators/` the faults. `source.py` is a program as text and syntax tree, `probe.py`
finds out what each of its expressions is, `faults.py` and `onset.py` make edits into a mutant, `runs.py` runs scripts in
forks of one process that has loaded torch, `judging.py` drops mutants without effect and asks gradtrace about the others,
`report.py` prints the score. Nothing here uses gradtrace but its command line.
"""
