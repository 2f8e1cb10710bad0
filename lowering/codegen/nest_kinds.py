"""Canonical nests: the kinds that code is written for. A reduction is rows with one pass."""

from __future__ import annotations

from lowering.plan.nests.analysis import as_rows
from lowering.plan.nests.kernel import (
    MapNest,
    Nest,
    PrintNest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
)

CanonicalNest = MapNest | RowNest | ScanNest | ScatterNest | PrintNest


def canonical(nest: Nest) -> CanonicalNest:
    """The nest; a reduction becomes one pass over each row that stores nothing."""
    return as_rows(nest) if isinstance(nest, ReduceNest) else nest
