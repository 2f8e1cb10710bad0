"""Whole programs, each written once and run by every library: ``--rows programs``.

They are written in what `language.py` offers: an array namespace, loops, and a few functions that
libraries spell differently. `program.py` makes the rows of a program, by size and dtype.
"""

from __future__ import annotations

from . import (
    clusters,
    decisions,
    dynamics,
    krylov,
    lattice,
    least_squares,
    linear_algebra,
    sampling,
    sequences,
)
from .program import Program

_MODULES = (
    dynamics,
    linear_algebra,
    krylov,
    least_squares,
    decisions,
    clusters,
    sampling,
    sequences,
    lattice,
)

PROGRAMS: tuple[Program, ...] = tuple(program for module in _MODULES for program in module.PROGRAMS)
