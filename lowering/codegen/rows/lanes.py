"""Lanes: the threads that share the loop of one output, and how their results become one.

Every value is folded in an order that depends on the shapes only: results are the same at each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lowering.codegen.expressions import (
    WIDE,
    cast,
    compute,
    hoist,
    index_type,
    operand,
    value,
    write_store,
)
from lowering.codegen.geometry_records import WARP, ReduceShape
from lowering.codegen.maps.loads import Parts
from lowering.codegen.maps.vectors import Vectors, declare_aligned
from lowering.codegen.rows.accumulators import Fold
from lowering.codegen.rows.column_runs import Run, load_runs, load_runs_together, longest, runs_of
from lowering.codegen.rows.flat_passes import FlatPass
from lowering.codegen.rows.vector_groups import vectors_of_pass, walk_groups
from lowering.codegen.source_writer import Body
from lowering.plan.buffer import Buffer
from lowering.plan.rounding import share_of
from tracegraph.ir.scalar import Axis

SERIAL_LIMIT = 256
"""Elements that a thread folds one after the other before it starts anew: the rounding error of a
sum grows with the length of the longest chain."""

GROUPS_IN_FLIGHT = 4
"""Vectors that a lane loads before it folds the first of them."""


def place_thread(body: Body, shape: ReduceShape, points: int, tile: str = "block") -> None:
    """Declare the thread's `point` and `lane`, whether it is `live`, and its block's `split`.

    Of a cluster, `tile` and `rank` are declared, and the lanes are counted through its blocks.
    """
    if shape.splits > 1:
        body.line(f"const int tile = block / {shape.splits}, split = block % {shape.splits};")
        tile = "tile"
    output, lane = f"thread % {shape.outputs}", f"thread / {shape.outputs}"
    if shape.adjacent:
        output, lane = f"thread / {shape.lanes}", f"thread % {shape.lanes}"
    if shape.cluster > 1:
        output, lane = "0", f"rank * {shape.threads} + thread"
    body.line(f"const int lane = {lane};")
    kind = index_type(shape.tiles * shape.outputs)
    first = cast(kind, tile) if kind == WIDE else tile
    body.line(f"const {kind} point = {first} * {shape.outputs} + {output};")
    body.line(f"const bool live = point < {points};")


def walk(
    body: Body, flat: FlatPass, step: Axis, shape: ReduceShape, backwards: bool = False
) -> None:
    """Take the lane's steps of its block's share of the loop, folding into `total`; backwards, if
    the share is the whole loop and long.
    """
    hoist(body, flat.roots, step)
    width, steps = shape.width, step.extent
    whole = steps // width * width  # what remains is less than a vector
    share = share_of(steps, shape.splits, shape.lanes * width)
    kind = index_type(steps + 2 * share + SERIAL_LIMIT * shape.lanes)
    begin, end = "0", str(whole)
    if shape.splits > 1:
        body.line(f"const {kind} begin = {kind}(split) * {share};")
        body.line(f"const {kind} end = begin + {share} < {whole} ? begin + {share} : {whole};")
        begin, end = "begin", "end"
    vectors = vectors_of_pass(flat, width)
    runs = runs_of(flat.values) if width == 1 else []
    accesses = vectors.accesses if width > 1 else [run.loads[0] for run in runs]
    aligned = declare_aligned(body, accesses, width if width > 1 else longest(runs))

    def take(begin: str, end: str, total: str) -> None:
        lane = "lane" if width == 1 else f"lane * {width}"
        first = lane if begin == "0" else f"{begin} + {lane}"
        if width > 1:
            parts = list(_parts(vectors, share, whole, shape))
            body.line(f"{kind} base = {first};")
            walk_groups(body, flat, step, shape, vectors, aligned, parts, end, total, backwards)
            return
        if runs and not backwards and share >= shape.lanes * GROUPS_IN_FLIGHT:
            body.line(f"{kind} base = {first};")
            _take_runs(body, flat, step, shape, runs, aligned, end, total)
            first = "base"
        head = f"for ({kind} step = {first}; step < {end}; step += {shape.lanes})"
        if backwards:
            last = f"{first} + ({end} - 1 - lane) / {shape.lanes} * {shape.lanes}"
            head = f"for ({kind} step = {last}; step >= 0; step -= {shape.lanes})"
        with body.block(head):
            body.bind(step, "step")
            load_runs(body, runs, aligned)
            take_step(body, flat, total)

    inexact = any(fold.dtype.kind not in "biu" and not fold.arg for fold in flat.folds)
    chunk = SERIAL_LIMIT * shape.lanes
    chunks = f"for ({kind} first = {begin}; first < {end}; first += {chunk})"
    backwards = backwards and shape.splits == 1 and whole >= shape.lanes * width
    if not inexact or share <= chunk:
        take(begin, end, "total")
    else:
        if backwards:
            last_chunk = (whole - 1) // chunk * chunk
            chunks = f"for ({kind} first = {last_chunk}; first >= 0; first -= {chunk})"
            backwards = False  # within a chunk
        with body.block(chunks):
            body.line(f"const {kind} stop = first + {chunk} < {end} ? first + {chunk} : {end};")
            for fold in flat.folds:
                fold.declare(body, "part")
            take("first", "stop", "part")
            for fold in flat.folds:
                fold.absorb(body, "total", fold.cells("part"))
    if whole < steps:
        last = f"split == {shape.splits - 1} && " if shape.splits > 1 else ""
        with body.block(f"if ({last}lane < {steps - whole})"):
            body.line(f"const {kind} step = {whole} + lane;")
            body.bind(step, "step")
            take_step(body, flat, "total")


def _take_runs(
    body: Body,
    flat: FlatPass,
    step: Axis,
    shape: ReduceShape,
    runs: Sequence[Run],
    aligned: Mapping[Buffer, str],
    end: str,
    total: str,
) -> None:
    """Take several steps at a time from `base` on, for as long as there are so many."""
    count, lanes = GROUPS_IN_FLIGHT, shape.lanes
    head = f"for (; base + {(count - 1) * lanes} < {end}; base += {count * lanes})"
    parts = Parts(body, count, (f"const auto step = base + part * {lanes};",), step, "step")
    with body.block(head):
        load_runs_together(parts, runs, aligned)
        with parts.each():
            take_step(body, flat, total)


def _parts(vectors: Vectors, share: int, whole: int, shape: ReduceShape) -> Iterator[int]:
    """How many groups a lane takes together: many for as long as there are so many, then one."""
    stride = shape.lanes * shape.width
    parts = min(GROUPS_IN_FLIGHT // max(len(vectors.loads), 1), share // stride)
    if parts > 1:
        yield parts
    if parts <= 1 or share % (stride * parts) or whole % (stride * parts):
        yield 1


def take_step(body: Body, flat: FlatPass, name: str) -> None:
    """Fold one element into the accumulators called `name`, and make the stores of the step."""
    compute(body, flat.roots)
    for fold, element in zip(flat.folds, flat.values, strict=True):
        fold.absorb(body, name, (operand(body, element), "step"))
    for store in flat.stores:
        write_store(body, store, value(body, store.value))


def share_cells(body: Body, folds: Sequence[Fold], shape: ReduceShape) -> None:
    """Declare an array in shared memory for each cell of the folds, if they need one."""
    if not shape.cells:
        return
    offsets = iter(shape.shared_offsets(dtype for fold in folds for dtype in fold.dtypes))
    for fold in folds:
        for cell, type_ in zip(fold.cells("shared"), fold.types, strict=True):
            place = f"reinterpret_cast<{type_}*>(shared + {next(offsets)})"
            body.line(f"{type_}* const {cell} = {place};")


def barrier(together: int) -> str:
    """The statement at which as many neighbouring threads, a power of two, wait for each other."""
    return "__syncthreads();" if together > WARP else "__syncwarp();"
