"""What a CPU is good at: whole programs of the sizes that people give it, and single functions.

``--device host --rows processor`` runs them, ``--peers numpy,jax,jax-1`` beside JAX on all cores
and on one.
"""

from __future__ import annotations

from benchmarks.harness.row import Row
from benchmarks.programs import PROGRAMS

from . import arrays

SIZES = (
    ("lorenz", 1),
    ("levenberg", 50),
    ("lbfgs", 20),
    ("conjugate", 200),
    ("bicgstab", 200),
    ("gmres", 200),
    ("kmeans", 800),
    ("monte_carlo", 16),
    ("particles", 500),
    ("power", 200),
    ("lanczos", 200),
    ("value_iteration", 50),
    ("boltzmann", 32),
    ("boltzmann", 512),
    ("molecules", 64),
    ("molecules", 1000),
    ("pagerank", 300),
    ("pagerank", 100_000),
    ("edit_rows", 60),
    ("quantiles", 1000),
)
"""Programs, by name, and how large they are."""

_BY_NAME = {program.name: program for program in PROGRAMS}

PROGRAM_ROWS: tuple[Row, ...] = tuple(_BY_NAME[name].row(n, "float64") for name, n in SIZES)

ROWS: tuple[Row, ...] = (*PROGRAM_ROWS, *arrays.ROWS)
