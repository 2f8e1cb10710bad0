"""The text of a ScatterNest: updates that may collide are atomic, in groups, or run in order."""

from __future__ import annotations

from math import prod

from lowering.codegen.constants import constant
from lowering.codegen.expressions import (
    combine,
    compute,
    hoist,
    index,
    index_type,
    operand,
    round_to,
    stored,
    value,
    widen,
    write_store,
)
from lowering.codegen.flatten import POINT, STEP, Flattener, linear_axis
from lowering.codegen.geometry_records import MapGeometry, ScatterGeometry
from lowering.codegen.groups import write_groups
from lowering.codegen.maps.maps import each_point
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import ScatterNest, Store
from tracegraph.ir.combiners import ADD
from tracegraph.ir.scalar import const


def write_scatter(writer: SourceWriter, nest: ScatterNest, geometry: ScatterGeometry) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    if geometry.atomic:
        _write_atomic(writer, nest, geometry)
        return
    if geometry.grouped:
        write_groups(writer, nest, geometry)
        return
    axes = list(enumerate(nest.space))
    sequential, parallel = axes[: nest.repeats], axes[nest.repeats :]
    flat = Flattener({STEP: sequential, POINT: parallel})
    store = flat.store(nest.store)
    points, steps = prod(nest.space[nest.repeats :]), prod(nest.space[: nest.repeats])
    with each_point(
        writer, points * geometry.owners, MapGeometry(geometry.threads, 1, geometry.blocks)
    ):
        writer.bind(linear_axis(POINT, nest.space[nest.repeats :]), "point")
        if geometry.owners > 1:
            writer.line(f"const tg_u32 owner = point / {points};")
            name = writer.fresh()
            writer.line(f"const int {name} = point % {points};")
            writer.bind(linear_axis(POINT, nest.space[nest.repeats :]), name)
        if not nest.repeats:
            _update(writer, nest, store)
            return
        step = linear_axis(STEP, nest.space[: nest.repeats])
        hoist(writer, stored([store]), step)
        kind = index_type(steps + 1)  # it ends at the number of steps
        with writer.block(f"for ({kind} step = 0; step < {steps}; ++step)"):
            writer.bind(step, "step")
            if geometry.owners == 1:
                _update(writer, nest, store)
            else:
                _update_owned(writer, nest, store, geometry.owners)


def _write_atomic(writer: SourceWriter, nest: ScatterNest, geometry: ScatterGeometry) -> None:
    """Write the atomic updates of each thread."""
    combiner = nest.combiner
    if combiner is None or combiner.name not in _ATOMIC:
        raise TypeError(f"{combiner} is no atomic operation; those are {list(_ATOMIC)}")
    store = Flattener({POINT: list(enumerate(nest.space))}).store(nest.store)
    target, function = writer.pointers[store.buffer], _ATOMIC[combiner.name]
    if not geometry.shared_bytes:
        _write_updates(writer, nest, geometry, store, f"{function}({target}")
        return
    kind, places = c_type(store.value.dtype), prod(store.buffer.type.shape)
    each_place = f"for (int place = thread; place < {places}; place += {geometry.threads})"
    writer.line(f"{kind}* const folded = ({kind}*)shared;")
    begin, end = f"tg_empty_sum<{kind}>()", f"tg_add_sum({target} + place, folded[place])"
    if combiner is not ADD:
        begin = constant(const(combiner.identity(store.value.dtype), store.value.dtype))
        test = f"if (!tg_same_bits(folded[place], {kind}({begin})))"
        end = f"{test} {function}({target} + place, folded[place])"
    writer.line(f"{each_place} folded[place] = {begin};")
    writer.line("__syncthreads();")
    _write_updates(writer, nest, geometry, store, f"{function}(folded")
    writer.line("__syncthreads();")
    writer.line(f"{each_place} {end};")


def _write_updates(
    writer: SourceWriter, nest: ScatterNest, geometry: ScatterGeometry, store: Store, call: str
) -> None:
    """Write the updates; `call` begins the call that makes one, up to the base of the target."""
    points = MapGeometry(geometry.threads, geometry.points, geometry.blocks)
    with each_point(writer, prod(nest.space), points, unroll=False):
        writer.bind(linear_axis(POINT, nest.space), "point")
        guards = [] if store.guard is None else [store.guard]
        compute(writer, guards)
        test = "".join(f"if ({value(writer, guard)})" for guard in guards)
        with writer.block(test):
            (position,) = store.indices
            compute(writer, [position, store.value])
            update = f"{c_type(store.value.dtype)}({value(writer, store.value)})"
            writer.line(f"{call} + {index(writer, position)}, {update});")


_ATOMIC = {
    "add": "tg_atomic_add",
    "multiply": "tg_atomic_multiply",
    "minimum": "tg_atomic_minimum",
    "maximum": "tg_atomic_maximum",
}
"""The device functions that combine atomically, by the name of the combiner."""


def _update_owned(writer: SourceWriter, nest: ScatterNest, store: Store, owners: int) -> None:
    """Make the update if the thread owns its target.

    Targets are assigned to owners by multiplicative hashing (Knuth, The Art of Computer
    Programming, 6.4), since their positions often have a common factor.
    """
    position = store.indices[0]
    guards = [] if store.guard is None else [store.guard]
    compute(writer, [position, *guards])
    hashed = f"tg_u32({index(writer, position)}) * 2654435769u >> {33 - owners.bit_length()}"
    test = " && ".join([*(value(writer, guard) for guard in guards), f"{hashed} == owner"])
    with writer.block(f"if ({test})"):
        _update(writer, nest, Store(store.buffer, store.indices, store.value))


def _update(writer: SourceWriter, nest: ScatterNest, store: Store) -> None:
    compute(writer, stored([store]))
    text = value(writer, store.value)
    if nest.combiner is not None:
        dtype = store.value.dtype
        target = f"{writer.pointers[store.buffer]}[{index(writer, store.indices[0])}]"
        folded = combine(nest.combiner, dtype, widen(dtype, target), operand(writer, store.value))
        text = round_to(dtype, folded)
    write_store(writer, store, text)
