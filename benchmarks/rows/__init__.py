"""All rows in the order in which they are run, and the groups that are run by one name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.harness.row import Row
from benchmarks.large_programs import LARGE_PROGRAMS
from benchmarks.programs import PROGRAMS
from benchmarks.programs.program import Program
from benchmarks.programs.transforms import TRANSFORMS

from . import (
    branch,
    building,
    callbacks,
    calls,
    conjugate_gradient,
    counted_loop,
    heat,
    library_rows,
    mandelbrot,
    nested_loop,
    processor,
    reduction_loop,
    sorting,
    stacked_scan,
    streaming,
    tracing_gradients,
)

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


def _of(programs: Sequence[Program]) -> dict[str, Sequence[Row]]:
    """The rows of each program, by its name, which programs of several sizes share."""
    found: dict[str, tuple[Row, ...]] = {}
    for program in programs:
        found[program.name] = (*found.get(program.name, ()), *program.rows())
    return found


def _joined(groups: Mapping[str, Sequence[Row]]) -> tuple[Row, ...]:
    return tuple(row for rows in groups.values() for row in rows)


_BY_PROGRAM, _BY_TRANSFORM = _of(PROGRAMS), _of(TRANSFORMS)
_BY_LARGE_PROGRAM = _of(LARGE_PROGRAMS)

_OF_LIBRARIES = {"fft": library_rows.FFT, "linalg": library_rows.LINALG}

GROUPS: Mapping[str, Sequence[Row]] = {
    "programs": _joined(_BY_PROGRAM),
    "transforms": (*_joined(_BY_TRANSFORM), *tracing_gradients.ROWS),
    "large_programs": _joined(_BY_LARGE_PROGRAM),
    **_BY_PROGRAM,
    **_BY_TRANSFORM,
    **_BY_LARGE_PROGRAM,
    "trace_gradient": tracing_gradients.ROWS,
    **_OF_LIBRARIES,
    "sorting": sorting.ROWS,
    "callbacks": callbacks.ROWS,
    "processor": processor.ROWS,
}
"""Names that stand for several rows: programs, derivatives, large programs, what libraries do,
sorts, callbacks, and what is for a CPU."""

ROWS: Mapping[str, Row] = {row.name: row for rows in (OWN_ROWS, *GROUPS.values()) for row in rows}
