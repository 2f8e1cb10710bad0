"""The text of a ScatterNest: updates that may collide run in order, the others in parallel."""

from __future__ import annotations

from math import prod

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
from lowering.codegen.maps.maps import each_point
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.kernel import ScatterNest, Store


def write_scatter(writer: SourceWriter, nest: ScatterNest, geometry: ScatterGeometry) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
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
