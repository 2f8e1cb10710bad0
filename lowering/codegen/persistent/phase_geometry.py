"""Phase geometry: how the threads of a persistent kernel share the work of each nest.

The index of a block is virtual: the blocks of the kernel run those of a nest in turn. So a nest has
the geometry that it would have in a kernel of its own, but for what needs blocks of a kind.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lowering.codegen.geometry import scan_geometry, scatter_geometry
from lowering.codegen.geometry_records import (
    LaunchGeometry,
    MapGeometry,
    PrintGeometry,
    ScanGeometry,
    ScatterGeometry,
)
from lowering.codegen.nest_kinds import CanonicalNest
from lowering.codegen.rows.row_geometry import row_geometry
from lowering.plan.nests.kernel import MapNest, PrintNest, RowNest, ScanNest, ScatterNest
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.target.scope import Scope


def phase_geometry(nest: CanonicalNest, scope: Scope) -> LaunchGeometry:
    """The geometry of one nest, in virtual blocks of the threads of `scope`."""
    threads = scope.threads
    match nest:
        case MapNest():
            return MapGeometry(threads, 1, ceil_div(prod(nest.space), threads))
        case RowNest():
            geometry = row_geometry(nest, threads)
            return geometry if scope.blocks > 1 else replace(geometry, splits=1, workspace_bytes=0)
        case ScanNest():
            return _scan(nest, scope)
        case ScatterNest():
            return _scatter(nest, scope)
        case PrintNest():
            return PrintGeometry(threads)


def _scan(nest: ScanNest, scope: Scope) -> ScanGeometry:
    geometry = scan_geometry(nest, scope.threads)
    if geometry.splits == 1 or scope.blocks > 1:
        return geometry
    return replace(geometry, blocks=geometry.blocks // geometry.splits, splits=1, workspace_bytes=0)


def _scatter(nest: ScatterNest, scope: Scope) -> ScatterGeometry:
    """Updates run in order if one thread makes all of them: its registers have no atomics."""
    if scope.threads > 1:
        return scatter_geometry(nest, scope.threads)
    return ScatterGeometry(1, 1, prod(nest.space[nest.repeats :]) if prod(nest.space) else 0)
