"""All rows in the order in which they are run, and the groups that are run by one name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import (
    branch,
    building,
    calls,
    conjugate_gradient,
    counted_loop,
    heat,
    mandelbrot,
    nested_loop,
    reduction_loop,
    sorting,
    stacked_scan,
    streaming,
)
from .programs import PROGRAMS
from .row import Row

_MODULES = (
    calls,
    branch,
    reduction_loop,
    counted_loop,
    stacked_scan,
    nested_loop,
    conjugate_gradient,
    heat,
    mandelbrot,
    streaming,
    building,
)

OWN_ROWS = tuple(row for module in _MODULES for row in module.ROWS)
"""Those that are run where none are named."""

_BY_PROGRAM = {program.name: tuple(program.rows()) for program in PROGRAMS}

GROUPS: Mapping[str, Sequence[Row]] = {
    "programs": tuple(row for rows in _BY_PROGRAM.values() for row in rows),
    **_BY_PROGRAM,
    "sorting": sorting.ROWS,
}
"""Names that stand for several rows: whole programs, one or all of them; and sorts."""

ROWS: Mapping[str, Row] = {row.name: row for row in (*OWN_ROWS, *GROUPS["programs"], *sorting.ROWS)}
