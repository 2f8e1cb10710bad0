"""The text of a MapNest: independent points, one or several a thread."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from lowering.codegen.body import Body
from lowering.codegen.expressions import (
    WIDE,
    compute,
    index,
    index_type,
    stored,
    value,
    write_store,
)
from lowering.codegen.flatten import POINT, Flattener, linear_axis
from lowering.codegen.shapes import MapShape
from lowering.codegen.signals import write_results, write_stop_check
from lowering.codegen.vectors import Vectors, alignment_test, compute_uniform, pack, vectors_of
from lowering.kernel import MapNest, Store
from tracegraph.scalar import Axis, Load


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


def each_point(body: Body, points: int, shape: MapShape) -> ExitStack:
    """Blocks of text that run once for each `point` of a thread."""
    tile = shape.threads * shape.points
    covered = shape.blocks * tile
    stack = ExitStack()
    if shape.points == 1:
        body.line(f"const {index_type(covered)} point = {_start(shape)} + thread;")
    else:
        body.line("#pragma unroll")
        head = f"for (int part = 0; part < {shape.points}; ++part)"
        stack.enter_context(body.block(head))
        position = f"{_start(shape)} + part * {shape.threads} + thread"
        body.line(f"const {index_type(covered)} point = {position};")
    if covered > points:
        stack.enter_context(body.block(f"if (point < {points})"))
    return stack


def _start(shape: MapShape) -> str:
    """The first point of a block."""
    tile = shape.threads * shape.points
    wide = index_type(shape.blocks * tile) == WIDE
    return f"{WIDE}(block) * {tile}" if wide else f"block * {tile}"


def _write_groups(
    body: Body, stores: Sequence[Store], vectors: Vectors, point: Axis, shape: MapShape
) -> None:
    """Write blocks that are full, of arguments that are aligned, by vectors; others by points."""
    tile = shape.threads * shape.points
    tests = [] if point.extent % tile == 0 else [f"{_start(shape)} + {tile} <= {point.extent}"]
    tests += filter(None, [alignment_test(body, vectors)])
    with body.block(f"if ({' && '.join(tests)})" if tests else ""):
        _write_full(body, stores, vectors, point, shape)
    if tests:
        with body.block("else"), each_point(body, point.extent, shape):
            body.bind(point, "point")
            write_results(body, stores, ())


def _write_full(
    body: Body, stores: Sequence[Store], vectors: Vectors, point: Axis, shape: MapShape
) -> None:
    """Write one full block: all vectors are loaded first, to have many loads in flight."""
    width, parts = shape.width, shape.points // shape.width
    kind = index_type(shape.blocks * shape.threads * shape.points)
    first = f"const {kind} first = {_start(shape)} + (part * {shape.threads} + thread) * {width};"
    each_part = f"for (int part = 0; part < {parts}; ++part)"
    loaded = {load: body.fresh() for load in vectors.loads}
    if loaded:
        for load, name in loaded.items():
            body.line(f"{pack(load, width)} {name}[{parts}];")
        body.line("#pragma unroll")
        with body.block(each_part):
            body.line(first)
            body.bind(point, "first")
            compute(body, [load.indices[0] for load in loaded])
            for load, name in loaded.items():
                body.line(f"{name}[part] = {_vector(body, load, width, 'const ')};")
    body.line("#pragma unroll")
    with body.block(each_part):
        body.line(first)
        compute_uniform(body, vectors, point, "first")
        results = {store: body.fresh() for store in vectors.stores}
        for store, name in results.items():
            body.line(f"{pack(store, width)} {name};")
        body.line("#pragma unroll")
        with body.block(f"for (int item = 0; item < {width}; ++item)"):
            body.line(f"const {kind} point = first + item;")
            body.bind(point, "point")
            for load, name in loaded.items():
                body.bind(load, f"{name}[part].items[item]")
            compute(body, stored(stores))
            for store in stores:
                if store in results:
                    body.line(f"{results[store]}.items[item] = {value(body, store.value)};")
                else:
                    write_store(body, store, value(body, store.value))
        body.bind(point, "first")
        compute(body, [store.indices[0] for store in results])
        for store, name in results.items():
            body.line(f"{_vector(body, store, width)} = {name};")


def _vector(body: Body, access: Load | Store, width: int, constant: str = "") -> str:
    """The memory of a vector access, whose index is computed."""
    address = f"{body.pointers[access.buffer]} + {index(body, access.indices[0])}"
    return f"*reinterpret_cast<{constant}{pack(access, width)}*>({address})"
