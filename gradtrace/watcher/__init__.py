"""Watches torch while the script runs: the only package that imports it."""

from __future__ import annotations

from gradtrace.watcher import compat

compat.require_support()
