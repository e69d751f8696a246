"""Mutants: correct training programs with one known fault put in, to measure what `gradtrace check` finds.

`programs/` has the base programs, `operators/` the faults, `source.py` edits text by syntax tree, `probe.py` finds out
what each expression of a program is, `runs.py` runs scripts in forks of one process that has loaded torch, and
`runner.py` puts them together and prints the score. Nothing here uses gradtrace but its command line.
"""
