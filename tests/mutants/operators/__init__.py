"""The operators: each puts one kind of fault into a program, and knows what must be found."""

from mutants.operators import losses, memory, paths, state, steps
from mutants.operators.base import OPERATORS, Operator

__all__ = ["OPERATORS", "Operator", "losses", "memory", "paths", "state", "steps"]
