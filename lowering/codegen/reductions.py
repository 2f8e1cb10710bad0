"""The text of a ReduceNest: lanes share the loop of an output, blocks may share it further.

Every value is folded in an order that depends on the shapes only: results are the same at each run.
"""

from __future__ import annotations

from math import prod

from lowering.codegen.body import Body
from lowering.codegen.expressions import (
    WIDE,
    cast,
    compute,
    hoist,
    index_type,
    operand,
)
from lowering.codegen.flatten import POINT, STEP, Flattener, linear_axis
from lowering.codegen.folds import Fold, folds_of
from lowering.codegen.launch import ReduceShape, partial_offsets
from lowering.codegen.signals import write_results, write_stop_check
from lowering.kernel import ReduceNest
from tracegraph.scalar import Expr

SERIAL_LIMIT = 256
"""Elements that a thread folds one after the other before it starts anew: the rounding error of a
sum grows with the length of the longest chain."""


def write_reduction(body: Body, nest: ReduceNest, shape: ReduceShape, workspace: str) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    rank = len(nest.space)
    flat = Flattener(
        {POINT: list(enumerate(nest.space)), STEP: list(enumerate(nest.loop, start=rank))}
    )
    folds = folds_of(nest.accumulators)
    points = prod(nest.space)
    write_stop_check(body, nest.signals)
    _place_thread(body, shape, points)
    if shape.lanes > 1:
        _share_cells(body, folds, shape)
    for fold in folds:
        fold.declare(body, "total")
    with body.block("if (live)"):
        body.bind(linear_axis(POINT, nest.space), "point")
        values = [flat(a.value) for a in nest.accumulators]
        _fold_loop(body, folds, values, nest.loop, shape)
    _fold_lanes(body, folds, shape)
    finishing = "live" if shape.lanes == 1 else "live && lane == 0"
    if shape.splits > 1:
        _fold_splits(body, nest, folds, shape, workspace)
        finishing += " && last"
    with body.block(f"if ({finishing})"):
        body.bind(linear_axis(POINT, nest.space), "point")
        for fold in folds:
            body.bind(*fold.result("total"))
        write_results(body, map(flat.store, nest.stores), map(flat.signal, nest.signals))


def _place_thread(body: Body, shape: ReduceShape, points: int) -> None:
    """Declare the thread's `point` and `lane`, whether it is `live`, and its block's `split`."""
    tile = "block"
    if shape.splits > 1:
        body.line(f"const int tile = block / {shape.splits}, split = block % {shape.splits};")
        tile = "tile"
    output, lane = f"thread % {shape.outputs}", f"thread / {shape.outputs}"
    if shape.adjacent:
        output, lane = f"thread / {shape.lanes}", f"thread % {shape.lanes}"
    body.line(f"const int lane = {lane};")
    kind = index_type(shape.tiles * shape.outputs)
    first = cast(kind, tile) if kind == WIDE else tile
    body.line(f"const {kind} point = {first} * {shape.outputs} + {output};")
    body.line(f"const bool live = point < {points};")


def _fold_loop(
    body: Body, folds: list[Fold], values: list[Expr], loop: tuple[int, ...], shape: ReduceShape
) -> None:
    """Fold the lane's elements of its block's share of the loop into `total`."""
    steps = prod(loop)
    step = linear_axis(STEP, loop)
    hoist(body, values, step)
    share = -(-steps // (shape.splits * shape.lanes)) * shape.lanes
    kind = index_type(steps + share + SERIAL_LIMIT * shape.lanes)
    begin, end = "lane", str(steps)
    if shape.splits > 1:
        body.line(f"const {kind} begin = {kind}(split) * {share};")
        body.line(f"const {kind} end = begin + {share} < {steps} ? begin + {share} : {steps};")
        begin, end = "begin + lane", "end"
    inexact = any(fold.dtype.kind not in "biu" and not fold.arg for fold in folds)
    chunk = SERIAL_LIMIT * shape.lanes
    if not inexact or share <= chunk:
        with body.block(f"for ({kind} step = {begin}; step < {end}; step += {shape.lanes})"):
            _fold_step(body, folds, values, step, "total")
        return
    with body.block(f"for ({kind} first = {begin}; first < {end}; first += {chunk})"):
        body.line(f"const {kind} stop = first + {chunk} < {end} ? first + {chunk} : {end};")
        for fold in folds:
            fold.declare(body, "part")
        with body.block(f"for ({kind} step = first; step < stop; step += {shape.lanes})"):
            _fold_step(body, folds, values, step, "part")
        for fold in folds:
            fold.absorb(body, "total", fold.cells("part"))


def _fold_step(body: Body, folds: list[Fold], values: list[Expr], step: Expr, name: str) -> None:
    body.bind(step, "step")
    compute(body, values)
    for fold, value in zip(folds, values, strict=True):
        fold.absorb(body, name, (operand(body, value), "step"))


def _share_cells(body: Body, folds: list[Fold], shape: ReduceShape) -> None:
    """Declare an array in shared memory for each cell, one element a thread."""
    offset = 0
    for fold in folds:
        for cell, type_, dtype in zip(fold.cells("shared"), fold.types, fold.dtypes, strict=True):
            place = f"reinterpret_cast<{type_}*>(shared + {offset})"
            body.line(f"{type_}* const {cell} = {place};")
            offset += shape.outputs * shape.lanes * dtype.itemsize


def _fold_lanes(body: Body, folds: list[Fold], shape: ReduceShape) -> None:
    """Fold the lanes of each output into its lane 0, by halving distances in shared memory."""
    if shape.lanes == 1:
        return
    stride = 1 if shape.adjacent else shape.outputs
    for fold in folds:
        for mine, shared in zip(fold.cells("total"), fold.cells("shared"), strict=True):
            body.line(f"{shared}[thread] = {mine};")
    body.line("__syncthreads();")
    with body.block(f"for (int width = {shape.lanes // 2}; width > 0; width /= 2)"):
        with body.block("if (lane < width)"):
            other = "thread + width" if stride == 1 else f"thread + width * {stride}"
            for fold in folds:
                fold.absorb(body, "total", tuple(f"{c}[{other}]" for c in fold.cells("shared")))
                for mine, shared in zip(fold.cells("total"), fold.cells("shared"), strict=True):
                    body.line(f"{shared}[thread] = {mine};")
        body.line("__syncthreads();")


def _fold_splits(
    body: Body, nest: ReduceNest, folds: list[Fold], shape: ReduceShape, workspace: str
) -> None:
    """Let the block that comes last of a tile fold the partial results of all, in their order.

    A counter per tile tells which is last, and stands at zero again afterwards.
    """
    points = prod(nest.space)
    offsets = partial_offsets(nest.accumulators, points, shape.tiles, shape.splits)
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
    body.line("tg_u32* const flag = reinterpret_cast<tg_u32*>(shared);")
    body.line("__threadfence();")
    body.line("__syncthreads();")
    body.line(f"if (thread == 0) *flag = atomicAdd(arrived, 1u) == {shape.splits - 1}u;")
    body.line("__syncthreads();")
    body.line("const bool last = *flag != 0;")
    body.line("__syncthreads();")
    with body.block("if (last)"):
        body.line("__threadfence();")
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
        _fold_lanes(body, folds, shape)
