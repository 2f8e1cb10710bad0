"""All rows, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Mapping

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
    stacked_scan,
    streaming,
)
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

ROWS: Mapping[str, Row] = {row.name: row for module in _MODULES for row in module.ROWS}
