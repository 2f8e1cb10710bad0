"""The kinds of nest that code is written for: a reduction is rows with one pass."""

from __future__ import annotations

from lowering.kernel import (
    MapNest,
    Nest,
    Pass,
    PrintNest,
    ReduceNest,
    RowNest,
    ScanNest,
    ScatterNest,
)

PlainNest = MapNest | RowNest | ScanNest | ScatterNest | PrintNest


def plain(nest: Nest) -> PlainNest:
    """The nest, a reduction as what it is: one pass over each row that stores nothing."""
    if not isinstance(nest, ReduceNest):
        return nest
    only = Pass(nest.accumulators, ())
    return RowNest(nest.space, nest.loop, (only,), nest.stores, nest.signals)
