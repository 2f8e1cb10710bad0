"""Register caching: the text of a RowNest of several passes, such as softmax.

A row stays within one block, or one cluster of blocks. Between passes the totals of a row are
broadcast to its lanes. If a row is short enough, values that a later pass needs again stay in
registers, and the row is read from memory once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import islice
from math import prod

from lowering.codegen import geometry_records as records
from lowering.codegen.effects.signals import write_results, write_stop_check
from lowering.codegen.expressions import compute, expr_type, hoist, index_type, stored
from lowering.codegen.flatten import POINT, STEP, Flattener, linear_axis
from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.maps.vector_accesses import declare_aligned, pack_of
from lowering.codegen.rows.accumulators import folds_of
from lowering.codegen.rows.cluster_geometry import max_kept_steps
from lowering.codegen.rows.clusters import ARRIVE, WAIT, cluster_barrier, cluster_variants
from lowering.codegen.rows.flat_passes import FlatPass, flattener_of
from lowering.codegen.rows.lane_loops import (
    barrier,
    declare_lane,
    declare_shared,
    write_loop,
    write_step,
)
from lowering.codegen.rows.lane_reduction import reduce_to_all_lanes
from lowering.codegen.rows.prefetch import prefetch_rows
from lowering.codegen.rows.row_geometry import STEPS_KEPT
from lowering.codegen.rows.vector_groups import (
    Groups,
    neighbouring_lanes,
    usable,
    vectors_of_pass,
    write_groups,
)
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.analysis import nest_accumulators
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import RowNest
from lowering.plan.nests.rounding import share_of
from lowering.plan.target.hardware import REGISTERS, WORD_BYTES
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Accumulated, Apply, Load
from tracegraph.ir.subexpressions import subexpressions

KEPT_BYTES = 256
"""Bytes that a thread keeps: 64 registers, so that at least two blocks of 256 are resident."""

BLOCK_BYTES = REGISTERS * WORD_BYTES // 2
"""Bytes that the threads of a block keep: half of the registers of a multiprocessor."""

CLUSTER_BYTES = 512
"""Bytes that a thread of a cluster keeps: half of the registers that it may have."""


def write_rows(writer: SourceWriter, nest: RowNest, geometry: RowGeometry) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    if geometry.cluster == 1:
        _write_rows(writer, nest, geometry, "block")
        return
    for variant in cluster_variants(writer, geometry):
        _write_rows(writer, nest, variant, "tile")


def _write_rows(writer: SourceWriter, nest: RowNest, geometry: RowGeometry, tile: str) -> None:
    flat, points = flattener_of(nest), prod(nest.space)
    passes = _flat_passes(nest, flat)
    geometry = usable(geometry, passes)
    write_stop_check(writer, map(flat.signal, nest.signals), nest.stores)
    declare_lane(writer, geometry, points, tile)
    if tile == "block":  # clusters gain nothing from it
        prefetch_rows(writer, passes, geometry, points, prod(nest.loop))
    declare_shared(writer, [fold for each in passes for fold in each.folds], geometry)
    writer.bind(linear_axis(POINT, nest.space), "point")
    step = linear_axis(STEP, nest.loop)
    results = [*stored(map(flat.store, nest.stores)), *(flat(s.value) for s in nest.signals)]
    small = points * step.extent < records.LARGE_ROWS
    caching = _caching_of(passes, step, geometry, _loads_ahead(passes, results) if small else {})
    _write_passes(writer, passes, step, geometry, caching)
    if not nest.stores and not nest.signals:
        return
    if geometry.lanes > 1 and not passes[-1].folds:
        # the stores below may overwrite what lanes still read in the last pass
        if geometry.cluster > 1:
            cluster_barrier(writer)
        else:
            writer.line(barrier(geometry.lanes * geometry.stride))
    with writer.block("if (live)" if geometry.lanes == 1 else "if (live && lane == 0)"):
        write_results(writer, map(flat.store, nest.stores), map(flat.signal, nest.signals))


def _flat_passes(nest: RowNest, flat: Flattener) -> list[FlatPass]:
    """The passes of a nest, each with its own of the numbered folds."""
    folds = iter(folds_of(nest_accumulators(nest)))
    return [
        FlatPass.of(each, list(islice(folds, len(each.accumulators))), flat) for each in nest.passes
    ]


@dataclass(frozen=True, slots=True)
class _Caching:
    """What a row keeps in registers.

    `once` are loads that do not depend on the step, which the first pass makes for later ones;
    `kept` the values of a step that each pass keeps, None if they need too many registers.
    """

    once: Sequence[Expr]
    kept: list[list[Expr]] | None


def _caching_of(
    passes: Sequence[FlatPass], step: Axis, geometry: RowGeometry, ahead: Mapping[Expr, int]
) -> _Caching:
    """What to keep, given the loads that the first pass can make `ahead` of later ones."""
    varying = _lasting(list(ahead), step, set())
    changed = {store.buffer for each in passes for store in each.stores}
    once = [expr for expr in ahead if expr not in varying and not _reads(expr, changed)]
    early = [(e, n) for e, n in ahead.items() if e in varying] if geometry.width == 1 else []
    return _Caching(once, _kept(passes, step, geometry, early) or _kept(passes, step, geometry))


def _write_passes(
    writer: SourceWriter,
    passes: Sequence[FlatPass],
    step: Axis,
    geometry: RowGeometry,
    caching: _Caching,
) -> None:
    """Write the passes, and bind the totals of each."""
    kept, once = caching.kept, {expr: writer.fresh() for expr in caching.once}
    for expr, name in once.items():
        writer.variable(expr_type(expr), name)
    names: dict[Expr, str] = {}
    last_fold = max(number for number, flat_pass in enumerate(passes) if flat_pass.folds)
    for number, flat_pass in enumerate(passes):
        for fold in flat_pass.folds:
            fold.declare(writer, "total")
        if kept is not None:
            names |= _declare_kept(writer, kept[number], step, geometry)
        with writer.block("if (live)"):
            if number == 0:
                compute(writer, once)
                for expr, name in once.items():
                    writer.line(f"{name} = {writer.name(expr)};")
            if kept is None:
                # what the last pass read last is still in the caches
                write_loop(writer, flat_pass, step, geometry, backwards=number % 2 == 1)
            else:
                _write_items(writer, flat_pass, step, geometry, kept[number], names)
        if number == 0:
            for expr, name in once.items():
                writer.bind(expr, name)
        written = {store.buffer for store in flat_pass.stores}
        names = {expr: name for expr, name in names.items() if not _reads(expr, written)}
        reduce_to_all_lanes(writer, flat_pass.folds, geometry)
        if geometry.cluster > 1 and number == last_fold:
            # A block must not exit while others read its shared memory. Arriving after the last
            # pass would wait until all its stores have reached memory.
            writer.line(ARRIVE)
        for fold in flat_pass.folds:
            writer.bind(*fold.result("total"))
    if geometry.cluster > 1:
        writer.line(WAIT)


def _items(step: Axis, geometry: RowGeometry) -> int:
    """The steps of a lane, rounded up to whole groups."""
    return share_of(step.extent, geometry.lanes, geometry.width)


def _declare_kept(
    writer: SourceWriter, kept: Sequence[Expr], step: Axis, geometry: RowGeometry
) -> dict[Expr, str]:
    """Declare the register arrays for what a pass keeps of each step, or of each group."""
    names = {}
    for expr in kept:
        names[expr] = writer.fresh()
        kind = expr_type(expr) if geometry.width == 1 else pack_of(expr, geometry.width)
        writer.variable(kind, names[expr], _items(step, geometry) // geometry.width)
    return names


def _write_items(
    writer: SourceWriter,
    flat_pass: FlatPass,
    step: Axis,
    geometry: RowGeometry,
    kept: Sequence[Expr],
    names: dict[Expr, str],
) -> None:
    """Write all steps of the lane, unrolled, so that arrays stay in registers."""
    hoist(writer, flat_pass.roots, step)
    if geometry.width > 1:
        vectors = vectors_of_pass(flat_pass, geometry.width)
        parts, stride = _items(step, geometry) // geometry.width, geometry.lanes * geometry.width
        first = f"(lane + part * {geometry.lanes}) * {geometry.width}"
        test = (
            f"part < {step.extent // stride} || first < {step.extent}"
            if step.extent % stride
            else None
        )
        neighbours = neighbouring_lanes(geometry, step, f"{step.extent} - first")
        groups = Groups(geometry.width, parts, first, test, neighbours)
        aligned = declare_aligned(writer, vectors.accesses, geometry.width)
        mine = {expr: names[expr] for expr in kept}
        others = {expr: name for expr, name in names.items() if expr not in mine}
        write_groups(writer, flat_pass, step, groups, vectors, aligned, "total", mine, others)
        return
    for expr, name in names.items():
        if expr not in kept:
            writer.bind(expr, f"{name}[item]")
    with writer.unrolled(f"for (int item = 0; item < {_items(step, geometry)}; ++item)"):
        position = f"lane + item * {geometry.lanes}"
        writer.line(f"const {index_type(step.extent + geometry.lanes)} step = {position};")
        if step.extent % geometry.lanes:
            # only the last items are tested: a test for each would cost more than the step
            last = step.extent // geometry.lanes
            writer.line(f"if (item >= {last} && step >= {step.extent}) continue;")
        writer.bind(step, "step")
        compute(writer, kept)
        for expr in kept:
            writer.line(f"{names[expr]}[item] = {writer.name(expr)};")
        write_step(writer, flat_pass, "total")


def _loads_ahead(passes: Sequence[FlatPass], results: Sequence[Expr]) -> dict[Expr, int]:
    """The loads that the first pass can make for a later one, or for the results, and the number
    of that pass.

    A row that is short waits for memory in each pass for longer than it computes.
    """
    ahead: dict[Expr, int] = {}
    changed: set[Buffer] = set()
    for number, roots in enumerate([*(each.roots for each in passes), results]):
        changing: set[Expr] = set()
        for expr in subexpressions(tuple(roots)):
            if (
                isinstance(expr, Accumulated)
                or not changing.isdisjoint(expr.children)
                or (isinstance(expr, Load) and expr.buffer in changed)
            ):
                changing.add(expr)
            elif isinstance(expr, Load) and number:
                ahead.setdefault(expr, number)
        changed |= {store.buffer for each in passes[number : number + 1] for store in each.stores}
    return ahead


def _reads(expr: Expr, buffers: Set[Buffer]) -> bool:
    """Whether an expression loads from one of these buffers."""
    loads = (part for part in subexpressions((expr,)) if isinstance(part, Load))
    return any(load.buffer in buffers for load in loads)


def _kept(
    passes: Sequence[FlatPass],
    step: Axis,
    geometry: RowGeometry,
    early: Sequence[tuple[Expr, int]] = (),
) -> list[list[Expr]] | None:
    """The values of a step that each pass keeps for later ones; None if they need too many
    registers.

    Only the last values that passes have in common are kept, not their operands. Loads from a
    buffer that a pass before the last writes to are not kept. The `early` loads are made by the
    first pass, each for one later pass.
    """
    changed = {store.buffer for flat_pass in passes[:-1] for store in flat_pass.stores}
    made: dict[Expr, int] = {}
    last: dict[Expr, int] = {}
    kept: list[list[Expr]] = [[] for _ in passes]
    for number, flat_pass in enumerate(passes):
        lasting = _lasting(flat_pass.roots, step, changed)
        stack, seen = list(flat_pass.roots), set[Expr]()
        while stack:
            expr = stack.pop()
            if expr in seen:
                continue
            seen.add(expr)
            before = made.setdefault(expr, number) if expr in lasting else number
            if before == number:
                stack.extend(expr.children)
            else:
                last[expr] = number
                if expr not in kept[before]:
                    kept[before].append(expr)
    for expr, number in early:
        if expr not in last:
            made[expr], last[expr] = 0, number
            kept[0].append(expr)
    # a value that a pass uses for the last time frees its register for what the pass makes
    held = [
        sum(expr.dtype.itemsize for expr, end in last.items() if made[expr] <= number < end)
        for number in range(len(passes))
    ]
    items = _items(step, geometry)
    most, most_bytes = STEPS_KEPT, min(KEPT_BYTES, BLOCK_BYTES // geometry.threads)
    if geometry.cluster > 1:
        most = max_kept_steps(max((expr.dtype.itemsize for expr in last), default=1))
        most_bytes = CLUSTER_BYTES
    return kept if items <= most and max(held) * items <= most_bytes else None


def _lasting(roots: Sequence[Expr], step: Axis, changed: set[Buffer]) -> set[Expr]:
    """The values that vary with the step and do not depend on what the passes store."""
    moving: set[Expr] = {step}
    volatile: set[Expr] = set()
    for expr in subexpressions(tuple(roots)):
        if not moving.isdisjoint(expr.children):
            moving.add(expr)
        if not volatile.isdisjoint(expr.children) or (
            isinstance(expr, Load) and expr.buffer in changed
        ):
            volatile.add(expr)
    return {expr for expr in moving - volatile if isinstance(expr, (Load, Apply))}
