"""The kinds of nest that code is written for: a reduction is rows with one pass."""

from __future__ import annotations

from lowering.kernel import (
    MapNest,
    Nest,
    PrintNest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
)
from lowering.rows import as_rows

PlainNest = MapNest | RowNest | ScanNest | ScatterNest | PrintNest


def plain(nest: Nest) -> PlainNest:
    """The nest, a reduction as what it is: one pass over each row that stores nothing."""
    return as_rows(nest) if isinstance(nest, ReduceNest) else nest
