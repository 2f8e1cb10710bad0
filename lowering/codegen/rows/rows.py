"""The text of a RowNest of several passes: a row stays within one block, or one cluster of blocks.

Between passes every lane learns the totals of its row. Of a row that is short enough, what a later
pass needs again of an element stays in registers, so that the row is read from memory once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lowering.codegen.expressions import compute, expr_type, hoist, index_type
from lowering.codegen.flatten import POINT, STEP, linear_axis
from lowering.codegen.geometry_records import ReduceShape
from lowering.codegen.maps.vectors import declare_aligned, pack_of
from lowering.codegen.rows.accumulators import folds_of
from lowering.codegen.rows.cluster_geometry import most_steps
from lowering.codegen.rows.clusters import ARRIVE, WAIT, wait_for_cluster, write_both
from lowering.codegen.rows.flat_passes import FlatPass, flattener_of
from lowering.codegen.rows.lane_reduction import fold_to_all
from lowering.codegen.rows.lanes import barrier, place_thread, share_cells, take_step, walk
from lowering.codegen.rows.prefetch import fetch_ahead
from lowering.codegen.rows.row_geometry import STEPS_KEPT
from lowering.codegen.rows.vector_groups import (
    Groups,
    neighbouring_lanes,
    take_groups,
    usable,
    vectors_of_pass,
)
from lowering.codegen.signals import write_results, write_stop_check
from lowering.codegen.source_writer import Body
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import RowNest
from lowering.plan.nest_analysis import nest_accumulators
from lowering.plan.rounding import share_of
from tracegraph.ir.scalar import Apply, Axis, Expr, Load
from tracegraph.ir.subexpressions import subexpressions

KEPT_BYTES = 256
"""Bytes of elements that a thread keeps at most: with more, too few threads would run at a time."""

BLOCK_BYTES = 128 << 10
"""Bytes of elements that all threads of a block keep at most: half of the registers there are."""

CLUSTER_BYTES = 512
"""Bytes that a thread of a cluster keeps at most: half of the registers it may have."""


def write_rows(body: Body, nest: RowNest, shape: ReduceShape) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    if shape.cluster == 1:
        _write_rows(body, nest, shape, "block")
        return
    for variant in write_both(body, shape):
        _write_rows(body, nest, variant, "tile")


def _write_rows(body: Body, nest: RowNest, shape: ReduceShape, tile: str) -> None:
    flat = flattener_of(nest)
    folds = folds_of(nest_accumulators(nest))
    passes: list[FlatPass] = []
    for row_pass in nest.passes:
        first = sum(len(done.folds) for done in passes)
        own = folds[first : first + len(row_pass.accumulators)]
        passes.append(FlatPass.of(row_pass, own, flat))
    shape = usable(shape, passes)
    write_stop_check(body, nest.signals)
    place_thread(body, shape, prod(nest.space), tile)
    if tile == "block":  # clusters are no faster for it
        fetch_ahead(body, passes, shape, prod(nest.space), prod(nest.loop))
    share_cells(body, folds, shape)
    body.bind(linear_axis(POINT, nest.space), "point")
    step = linear_axis(STEP, nest.loop)
    kept = _kept(passes, step, shape)
    names: dict[Expr, str] = {}
    last_fold = max(number for number, flat_pass in enumerate(passes) if flat_pass.folds)
    for number, flat_pass in enumerate(passes):
        for fold in flat_pass.folds:
            fold.declare(body, "total")
        if kept is not None:
            names |= _declare_kept(body, kept[number], step, shape)
        with body.block("if (live)"):
            if kept is None:
                # what the pass before read last is in the caches still
                walk(body, flat_pass, step, shape, backwards=number % 2 == 1)
            else:
                _take_items(body, flat_pass, step, shape, kept[number], names)
        fold_to_all(body, flat_pass.folds, shape)
        if shape.cluster > 1 and number == last_fold:
            # blocks must not end while others read what they have in shared memory. A wait for that
            # after the last pass would wait until all that it stores is in memory.
            body.line(ARRIVE)
        for fold in flat_pass.folds:
            body.bind(*fold.result("total"))
    if shape.cluster > 1:
        body.line(WAIT)
    if not nest.stores and not nest.signals:
        return
    if shape.lanes > 1 and not passes[-1].folds:
        # a row's own stores may replace what the lanes of its last pass still read
        if shape.cluster > 1:
            wait_for_cluster(body)
        else:
            body.line(barrier(shape.lanes * shape.stride))
    with body.block("if (live)" if shape.lanes == 1 else "if (live && lane == 0)"):
        write_results(body, map(flat.store, nest.stores), map(flat.signal, nest.signals))


def _items(step: Axis, shape: ReduceShape) -> int:
    """The steps of a lane, in whole groups."""
    return share_of(step.extent, shape.lanes, shape.width)


def _declare_kept(
    body: Body, kept: Sequence[Expr], step: Axis, shape: ReduceShape
) -> dict[Expr, str]:
    """Declare the registers of what a pass keeps of each of its elements, or of each group."""
    names = {}
    for expr in kept:
        names[expr] = body.fresh()
        kind = expr_type(expr) if shape.width == 1 else pack_of(expr, shape.width)
        body.line(f"{kind} {names[expr]}[{_items(step, shape) // shape.width}];")
    return names


def _take_items(
    body: Body,
    flat_pass: FlatPass,
    step: Axis,
    shape: ReduceShape,
    kept: Sequence[Expr],
    names: dict[Expr, str],
) -> None:
    """Take all steps of the lane, unrolled: only so can arrays be registers."""
    hoist(body, flat_pass.roots, step)
    if shape.width > 1:
        vectors = vectors_of_pass(flat_pass, shape.width)
        parts, stride = _items(step, shape) // shape.width, shape.lanes * shape.width
        first = f"(lane + part * {shape.lanes}) * {shape.width}"
        test = (
            f"part < {step.extent // stride} || first < {step.extent}"
            if step.extent % stride
            else None
        )
        neighbours = neighbouring_lanes(shape, step, f"{step.extent} - first")
        groups = Groups(shape.width, parts, first, test, neighbours)
        aligned = declare_aligned(body, vectors.accesses, shape.width)
        mine = {expr: names[expr] for expr in kept}
        others = {expr: name for expr, name in names.items() if expr not in mine}
        take_groups(body, flat_pass, step, groups, vectors, aligned, "total", mine, others)
        return
    for expr, name in names.items():
        if expr not in kept:
            body.bind(expr, f"{name}[item]")
    with body.unrolled(f"for (int item = 0; item < {_items(step, shape)}; ++item)"):
        position = f"lane + item * {shape.lanes}"
        body.line(f"const {index_type(step.extent + shape.lanes)} step = {position};")
        if step.extent % shape.lanes:
            # asked of the last alone: a test for each would cost more than what it guards
            last = step.extent // shape.lanes
            body.line(f"if (item >= {last} && step >= {step.extent}) continue;")
        body.bind(step, "step")
        compute(body, kept)
        for expr in kept:
            body.line(f"{names[expr]}[item] = {body.name(expr)};")
        take_step(body, flat_pass, "total")


def _kept(passes: Sequence[FlatPass], step: Axis, shape: ReduceShape) -> list[list[Expr]] | None:
    """What each pass keeps of an element for later ones; None where that takes too many registers.

    It is the last that the passes have in common: no operand of it is kept for the same pass. What
    comes from a buffer that a pass before the last changes is read anew.
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
    # what a pass uses for the last time makes room for what it makes of the element
    held = [
        sum(expr.dtype.itemsize for expr, end in last.items() if made[expr] <= number < end)
        for number in range(len(passes))
    ]
    items = _items(step, shape)
    most, most_bytes = STEPS_KEPT, min(KEPT_BYTES, BLOCK_BYTES // shape.threads)
    if shape.cluster > 1:
        most = most_steps(max((expr.dtype.itemsize for expr in last), default=1))
        most_bytes = CLUSTER_BYTES
    return kept if items <= most and max(held) * items <= most_bytes else None


def _lasting(roots: Sequence[Expr], step: Axis, changed: set[Buffer]) -> set[Expr]:
    """The values that move with the step and stay what they are whatever the passes store."""
    moving: set[Expr] = {step}
    passing: set[Expr] = set()
    for expr in subexpressions(tuple(roots)):
        if not moving.isdisjoint(expr.children):
            moving.add(expr)
        if not passing.isdisjoint(expr.children) or (
            isinstance(expr, Load) and expr.buffer in changed
        ):
            passing.add(expr)
    return {expr for expr in moving - passing if isinstance(expr, (Load, Apply))}
