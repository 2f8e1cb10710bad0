"""The text of a RowNest of one pass: lanes share the loop of a row, blocks may share it further."""

from __future__ import annotations

from math import prod

from lowering.codegen.body import Body
from lowering.codegen.expressions import index_type
from lowering.codegen.flatten import POINT, STEP, Flattener, linear_axis
from lowering.codegen.folds import Fold, folds_of
from lowering.codegen.groups import usable
from lowering.codegen.lanes import place_thread, share_cells, walk
from lowering.codegen.launch import FLAG_BYTES, partial_offsets
from lowering.codegen.passes import FlatPass
from lowering.codegen.shapes import ReduceShape
from lowering.codegen.signals import write_results, write_stop_check
from lowering.codegen.totals import fold_to_first
from lowering.kernel import RowNest


def write_reduction(body: Body, nest: RowNest, shape: ReduceShape, workspace: str) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    (only,) = nest.passes
    rank = len(nest.space)
    flat = Flattener(
        {POINT: list(enumerate(nest.space)), STEP: list(enumerate(nest.loop, start=rank))}
    )
    folds = folds_of(only.accumulators)
    flat_pass = FlatPass.of(only, folds, flat)
    shape = usable(shape, [flat_pass])
    write_stop_check(body, nest.signals)
    place_thread(body, shape, prod(nest.space))
    share_cells(body, folds, shape)
    for fold in folds:
        fold.declare(body, "total")
    with body.block("if (live)"):
        body.bind(linear_axis(POINT, nest.space), "point")
        walk(body, flat_pass, linear_axis(STEP, nest.loop), shape)
    fold_to_first(body, folds, shape)
    finishing = "live" if shape.lanes == 1 else "live && lane == 0"
    if shape.splits > 1:
        _fold_splits(body, nest, folds, shape, workspace)
        finishing += " && last"
    if not nest.stores and not nest.signals:
        return
    with body.block(f"if ({finishing})"):
        body.bind(linear_axis(POINT, nest.space), "point")
        for fold in folds:
            body.bind(*fold.result("total"))
        write_results(body, map(flat.store, nest.stores), map(flat.signal, nest.signals))


def _fold_splits(
    body: Body, nest: RowNest, folds: list[Fold], shape: ReduceShape, workspace: str
) -> None:
    """Let the block that comes last of a tile fold the partial results of all, in their order.

    A counter per tile tells which is last, and stands at zero again afterwards.
    """
    points = prod(nest.space)
    offsets = partial_offsets(nest.passes[0].accumulators, points, shape.tiles, shape.splits)
    places = iter(offsets)
    for fold in folds:
        for cell, type_ in zip(fold.cells("partial"), fold.types, strict=True):
            place = f"reinterpret_cast<{type_}*>({workspace} + {next(places)})"
            body.line(f"{type_}* const {cell} = {place};")
    body.line(f"tg_u32* const arrived = reinterpret_cast<tg_u32*>({workspace}) + tile;")
    kind = index_type(points * shape.splits)
    with body.block("if (live && lane == 0)"):
        body.line(f"const {kind} slot = {kind}(split) * {points} + point;")
        for fold in folds:
            for mine, partial in zip(fold.cells("total"), fold.cells("partial"), strict=True):
                body.line(f"{partial}[slot] = {mine};")
        body.line("tg_fence();")
    if shape.outputs > 1:
        body.line("__syncthreads();")  # thread 0 tells of what others have written, too
    flag = f"reinterpret_cast<tg_u32*>(shared + {shape.shared_bytes - FLAG_BYTES})"
    body.line(f"tg_u32* const flag = {flag};")
    body.line(f"if (thread == 0) *flag = atomicAdd(arrived, 1u) == {shape.splits - 1}u;")
    body.line("__syncthreads();")
    body.line("const bool last = *flag != 0;")
    with body.block("if (last)"):
        body.line("tg_fence();")
        body.line("if (thread == 0) *arrived = 0;")
        for fold in folds:
            fold.reset(body, "total")
        with (
            body.block("if (live)"),
            body.block(f"for (int part = lane; part < {shape.splits}; part += {shape.lanes})"),
        ):
            body.line(f"const {kind} slot = {kind}(part) * {points} + point;")
            for fold in folds:
                fold.absorb(body, "total", tuple(f"{c}[slot]" for c in fold.cells("partial")))
        fold_to_first(body, folds, shape)
