"""Large programs: bytes, arithmetic and dependent steps decide their time, not launches.

``--rows large_programs`` runs them. Each has a small and a large size. They are written as others
are (`benchmarks.programs`), with the `functions.py` that libraries have besides.
"""

from __future__ import annotations

from benchmarks.programs.program import Program

from . import grids, networks, pairs, products, statistics

LARGE_PROGRAMS: tuple[Program, ...] = tuple(
    program
    for module in (networks, pairs, grids, statistics, products)
    for program in module.PROGRAMS
)
