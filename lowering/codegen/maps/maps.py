"""The text of a MapNest: independent points, one or several a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from lowering.codegen.expressions import (
    WIDE,
    compute,
    index_type,
    stored,
)
from lowering.codegen.flatten import POINT, Flattener, linear_axis
from lowering.codegen.geometry_records import WARP, MapShape
from lowering.codegen.maps.loads import Parts
from lowering.codegen.maps.stores import declare_results, store_results, write_item
from lowering.codegen.maps.vectors import (
    Neighbours,
    Vectors,
    alignment_test,
    anchor,
    compute_uniform,
    declare_aligned,
    load_text,
    pack,
    start_text,
    vectors_of,
)
from lowering.codegen.signals import write_results, write_stop_check
from lowering.codegen.source_writer import Body
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import MapNest, Store
from tracegraph.ir.scalar import Axis


def write_map(body: Body, nest: MapNest, shape: MapShape) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    flat = Flattener({POINT: list(enumerate(nest.space))})
    stores = list(map(flat.store, nest.stores))
    point = linear_axis(POINT, nest.space)
    write_stop_check(body, nest.signals)
    if shape.width > 1:
        vectors = vectors_of(stores, shape.width)
        if vectors.accesses:
            _write_groups(body, stores, vectors, point, shape)
            return
    with each_point(body, point.extent, shape):
        body.bind(point, "point")
        write_results(body, stores, map(flat.signal, nest.signals))


def each_point(
    body: Body, points: int, shape: MapShape, start: str | None = None, unroll: bool = True
) -> ExitStack:
    """Blocks of text that run once for each `point` of a thread; the first block begins at `start`,
    a variable, instead of 0.
    """
    tile = shape.threads * shape.points
    covered = shape.blocks * tile
    origin = _origin(shape, start)
    stack = ExitStack()
    if shape.points == 1:
        body.line(f"const {index_type(covered)} point = {origin} + thread;")
    else:
        body.line("#pragma unroll" if unroll else "#pragma unroll 1")
        head = f"for (int part = 0; part < {shape.points}; ++part)"
        stack.enter_context(body.block(head))
        position = f"{origin} + part * {shape.threads} + thread"
        body.line(f"const {index_type(covered)} point = {position};")
    if start is not None:
        stack.enter_context(body.block(f"if (point >= 0 && point < {points})"))
    elif covered > points:
        stack.enter_context(body.block(f"if (point < {points})"))
    return stack


def _origin(shape: MapShape, start: str | None) -> str:
    """The first point of a block."""
    tile = shape.threads * shape.points
    wide = index_type(shape.blocks * tile) == WIDE
    text = f"{WIDE}(block) * {tile}" if wide else f"block * {tile}"
    return text if start is None else f"{text} + {start}"


def _write_groups(
    body: Body, stores: Sequence[Store], vectors: Vectors, point: Axis, shape: MapShape
) -> None:
    """Write blocks that are full by vectors, others by points; and all by points if the arguments
    that are stored to are not aligned, and groups cannot begin where they are.
    """
    tile = shape.threads * shape.points
    anchored, start = anchor(vectors), None
    if anchored is not None:
        start = "start"
        body.line(f"const int start = {start_text(body, anchored, shape.width)};")
    origin = _origin(shape, start)
    tests = [] if start is None else [f"{origin} >= 0"]
    if shape.blocks * tile > point.extent:
        tests.append(f"{origin} <= {point.extent - tile}")  # the block's end may not fit an int
    alignment = alignment_test(body, vectors.stores, shape.width) if start is None else None
    tests += [] if alignment is None else [alignment]
    with body.block(f"if ({' && '.join(tests)})" if tests else ""):
        _write_full(body, stores, vectors, point, shape, anchored, start)
    if tests:
        # without the alignment in question, only the first and the last block come here
        unroll = alignment is not None
        with body.block("else"), each_point(body, point.extent, shape, start, unroll):
            body.bind(point, "point")
            write_results(body, stores, ())


def _write_full(
    body: Body,
    stores: Sequence[Store],
    vectors: Vectors,
    point: Axis,
    shape: MapShape,
    anchored: Buffer | None,
    start: str | None,
) -> None:
    """Write one full block: all vectors are loaded first, to have many loads in flight."""
    width, count = shape.width, shape.points // shape.width
    kind = index_type(shape.blocks * shape.threads * shape.points)
    origin = _origin(shape, start)
    first = f"const {kind} first = {origin} + (part * {shape.threads} + thread) * {width};"
    parts = Parts(body, count, (first,), point, "first")
    loaded = {load: body.fresh() for load in vectors.loads}
    if loaded:
        aligned = declare_aligned(body, vectors.loads, width, start, anchored)
        for load, name in loaded.items():
            body.line(f"{pack(load, width)} {name}[{count}];")
        parts.fill(loaded, lambda load: load_text(body, load, width, aligned))
    lanes = min(shape.threads, WARP)
    neighbours = Neighbours(lanes, str(lanes))
    others: Mapping[Buffer, str] = {}  # without a start, it was tested that all are aligned
    if start is not None:
        others = declare_aligned(body, vectors.stores, width, start, anchored)
    with parts.each():
        compute_uniform(body, vectors, point, "first")
        results = declare_results(body, vectors.stores, width)
        with body.unrolled(f"for (int item = 0; item < {width}; ++item)"):
            body.line(f"const {kind} point = first + item;")
            body.bind(point, "point")
            for load, name in loaded.items():
                body.bind(load, f"{name}[part].items[item]")
            compute(body, stored(stores))
            write_item(body, stores, results)
        store_results(body, results, width, POINT, others, neighbours)
