"""The text of a MapNest: independent points, one or several for each thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from lowering.codegen.effects.signals import write_results, write_stop_check
from lowering.codegen.expressions import (
    WIDE,
    compute,
    index_type,
    stored,
    value,
)
from lowering.codegen.flatten import POINT, Flattener, linear_axis
from lowering.codegen.geometry_records import MapGeometry
from lowering.codegen.maps.guarded_groups import InsideGroups, inside_groups
from lowering.codegen.maps.loads import UnrolledParts
from lowering.codegen.maps.neighbours import bind_neighbours
from lowering.codegen.maps.stores import declare_results, store_results, write_item
from lowering.codegen.maps.vector_accesses import (
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
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Store
from lowering.plan.target.hardware import WARP
from tracegraph.ir.scalar import Axis


def write_map(writer: SourceWriter, nest: MapNest, geometry: MapGeometry) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    flat = Flattener({POINT: list(enumerate(nest.space))})
    stores = list(map(flat.store, nest.stores))
    point = linear_axis(POINT, nest.space)
    write_stop_check(writer, map(flat.signal, nest.signals), nest.stores)
    if geometry.width > 1:
        inside = _inside(stores, geometry.width)
        vectors = vectors_of(inside.stores, geometry.width)
        if vectors.accesses:
            with _begun_in_the_middle(writer, inside, geometry):
                _write_groups(writer, stores, inside, vectors, point, geometry)
            return
    with each_point(writer, point.extent, geometry):
        writer.bind(point, "point")
        write_results(writer, stores, map(flat.signal, nest.signals))


def each_point(
    writer: SourceWriter,
    points: int,
    geometry: MapGeometry,
    start: str | None = None,
    unroll: bool = True,
) -> ExitStack:
    """Write a loop over each `point` of a thread. With `start`, a variable, the points of the first
    block begin there instead of at 0.
    """
    tile = geometry.threads * geometry.points
    covered = geometry.blocks * tile
    origin = _origin(geometry, start)
    stack = ExitStack()
    if geometry.points == 1:
        writer.line(f"const {index_type(covered)} point = {origin} + thread;")
    else:
        writer.line("#pragma unroll" if unroll else "#pragma unroll 1")
        head = f"for (int part = 0; part < {geometry.points}; ++part)"
        stack.enter_context(writer.block(head))
        position = f"{origin} + part * {geometry.threads} + thread"
        writer.line(f"const {index_type(covered)} point = {position};")
    if start is not None:
        stack.enter_context(writer.block(f"if (point >= 0 && point < {points})"))
    elif covered > points:
        stack.enter_context(writer.block(f"if (point < {points})"))
    return stack


def _origin(geometry: MapGeometry, start: str | None) -> str:
    """The first point of a block."""
    tile = geometry.threads * geometry.points
    wide = index_type(geometry.blocks * tile) == WIDE
    text = f"{WIDE}(block) * {tile}" if wide else f"block * {tile}"
    return text if start is None else f"{text} + {start}"


def _inside(stores: Sequence[Store], width: int) -> InsideGroups:
    """Groups without guards; those of a geometry with vectors can be made so."""
    given = InsideGroups(tuple(stores), ())
    inside = inside_groups(stores, width)
    if inside is None or not inside.tests:
        return given
    guarded = any(store.guard is not None for store in stores)
    return inside if guarded or _vectors(inside, width) > _vectors(given, width) else given


def _vectors(groups: InsideGroups, width: int) -> int:
    return len(vectors_of(groups.stores, width).accesses)


def _write_groups(
    writer: SourceWriter,
    stores: Sequence[Store],
    inside: InsideGroups,
    vectors: Vectors,
    point: Axis,
    geometry: MapGeometry,
) -> None:
    """Write full blocks with vectors, and others point by point.

    Groups begin where the argument that is stored to is aligned. If they cannot, and it is not
    aligned, all blocks go point by point.
    """
    tile = geometry.threads * geometry.points
    # tests of groups need these to begin at multiples of the width
    anchored, start = None if inside.tests else anchor(vectors), None
    if anchored is not None:
        start = "start"
        writer.line(f"const int start = {start_text(writer, anchored, geometry.width)};")
    origin = _origin(geometry, start)
    tests = [] if start is None else [f"{origin} >= 0"]
    if geometry.blocks * tile > point.extent:
        tests.append(f"{origin} <= {point.extent - tile}")  # no sum overflows an int
    alignment = alignment_test(writer, vectors.stores, geometry.width) if start is None else None
    tests += [] if alignment is None else [alignment]
    with writer.block(f"if ({' && '.join(tests)})" if tests else ""):
        if inside.tests:
            _write_inside(writer, stores, inside, vectors, point, geometry)
        else:
            _write_full(writer, stores, vectors, point, geometry, anchored, start)
    if tests:
        # if alignment is not tested, only the first and the last block come here
        unroll = alignment is not None
        with writer.block("else"), each_point(writer, point.extent, geometry, start, unroll):
            writer.bind(point, "point")
            write_results(writer, stores, ())


def _begun_in_the_middle(
    writer: SourceWriter, inside: InsideGroups, geometry: MapGeometry
) -> ExitStack:
    """Let the first blocks have points of the middle. Those with the ends of an array, where
    threads go point by point, take several times as long: they would be the last, and run alone.
    """
    stack = ExitStack()
    if inside.tests and geometry.blocks > 1:
        behind = geometry.blocks // 2
        before = geometry.blocks - behind
        turned = f"block < {before} ? block + {behind} : block - {before}"
        writer.line(f"const int turned = {turned};")
        stack.enter_context(writer.block(""))
        writer.line("const int block = turned;")
    return stack


def _write_inside(
    writer: SourceWriter,
    stores: Sequence[Store],
    inside: InsideGroups,
    vectors: Vectors,
    point: Axis,
    geometry: MapGeometry,
) -> None:
    """Write one full block of a map in parts. A thread with groups at the ends of parts writes all
    of its groups point by point.
    """
    parts = _parts(writer, point, geometry, None)
    writer.line("bool inside = true;")
    with parts.each():
        compute(writer, inside.tests)
        tests = " && ".join(value(writer, test) for test in inside.tests)
        writer.line(f"inside = inside && {tests};")
    with writer.block("if (inside)"):
        _write_full(writer, inside.stores, vectors, point, geometry, None, None)
    with writer.block("else"):
        count, width = parts.count, geometry.width
        with writer.block(f"for (int each = 0; each < {count * width}; ++each)"):
            writer.line(f"const int part = each / {width};")
            for line in parts.lines:
                writer.line(line)
            kind = _kind(geometry)
            writer.line(f"const {kind} point = first + each % {width};")
            writer.bind(point, "point")
            write_results(writer, stores, ())


def _kind(geometry: MapGeometry) -> str:
    return index_type(geometry.blocks * geometry.threads * geometry.points)


def _parts(
    writer: SourceWriter, point: Axis, geometry: MapGeometry, start: str | None
) -> UnrolledParts:
    """The groups of a thread."""
    width = geometry.width
    position = f"{_origin(geometry, start)} + (part * {geometry.threads} + thread) * {width}"
    first = f"const {_kind(geometry)} first = {position};"
    return UnrolledParts(writer, geometry.points // width, (first,), point, "first")


def _write_full(
    writer: SourceWriter,
    stores: Sequence[Store],
    vectors: Vectors,
    point: Axis,
    geometry: MapGeometry,
    anchored: Buffer | None,
    start: str | None,
) -> None:
    """Write one full block. All vectors are loaded first, to have many loads in flight."""
    width, kind = geometry.width, _kind(geometry)
    parts = _parts(writer, point, geometry, start)
    loaded = {load: writer.fresh() for load in vectors.loads}
    if loaded:
        aligned = declare_aligned(writer, vectors.loads, width, start, anchored)
        for load, name in loaded.items():
            writer.line(f"{pack(load, width)} {name}[{parts.count}];")
        parts.fill(loaded, lambda load: load_text(writer, load, width, aligned))
    lanes = min(geometry.threads, WARP)
    neighbours = Neighbours(lanes, str(lanes))
    others: Mapping[Buffer, str] = {}  # without a start, all were tested to be aligned
    if start is not None:
        others = declare_aligned(writer, vectors.stores, width, start, anchored)
    with parts.each():
        compute_uniform(writer, vectors, point, "first")
        results = declare_results(writer, vectors.stores, width)
        with writer.unrolled(f"for (int item = 0; item < {width}; ++item)"):
            writer.line(f"const {kind} point = first + item;")
            writer.bind(point, "point")
            for load, name in loaded.items():
                writer.bind(load, f"{name}[part].items[item]")
            bind_neighbours(writer, stores, loaded, width)
            compute(writer, stored(stores))
            write_item(writer, stores, results)
        store_results(writer, results, width, POINT, others, neighbours)
