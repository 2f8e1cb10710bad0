"""The text of a ScatterNest: updates that may meet run in order, the others in parallel."""

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
from lowering.codegen.geometry_records import MapShape, ScatterShape
from lowering.codegen.maps.maps import each_point
from lowering.codegen.source_writer import Body
from lowering.plan.kernel import ScatterNest, Store


def write_scatter(body: Body, nest: ScatterNest, shape: ScatterShape) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    axes = list(enumerate(nest.space))
    walked, free = axes[: nest.repeats], axes[nest.repeats :]
    flat = Flattener({STEP: walked, POINT: free})
    store = flat.store(nest.store)
    points, steps = prod(nest.space[nest.repeats :]), prod(nest.space[: nest.repeats])
    with each_point(body, points * shape.owners, MapShape(shape.threads, 1, shape.blocks)):
        body.bind(linear_axis(POINT, nest.space[nest.repeats :]), "point")
        if shape.owners > 1:
            body.line(f"const tg_u32 owner = point / {points};")
            name = body.fresh()
            body.line(f"const int {name} = point % {points};")
            body.bind(linear_axis(POINT, nest.space[nest.repeats :]), name)
        if not nest.repeats:
            _update(body, nest, store)
            return
        step = linear_axis(STEP, nest.space[: nest.repeats])
        hoist(body, stored([store]), step)
        kind = index_type(steps + 1)  # it ends at the number of steps
        with body.block(f"for ({kind} step = 0; step < {steps}; ++step)"):
            body.bind(step, "step")
            if shape.owners == 1:
                _update(body, nest, store)
            else:
                _update_owned(body, nest, store, shape.owners)


def _update_owned(body: Body, nest: ScatterNest, store: Store, owners: int) -> None:
    """Make the update if the thread owns its target: what is the same for all comes first.

    Targets are dealt out by multiplicative hashing (Knuth, The Art of Computer Programming, 6.4),
    since their positions often have a common factor.
    """
    position = store.indices[0]
    guards = [] if store.guard is None else [store.guard]
    compute(body, [position, *guards])
    hashed = f"tg_u32({index(body, position)}) * 2654435769u >> {33 - owners.bit_length()}"
    test = " && ".join([*(value(body, guard) for guard in guards), f"{hashed} == owner"])
    with body.block(f"if ({test})"):
        _update(body, nest, Store(store.buffer, store.indices, store.value))


def _update(body: Body, nest: ScatterNest, store: Store) -> None:
    compute(body, stored([store]))
    text = value(body, store.value)
    if nest.combiner is not None:
        dtype = store.value.dtype
        target = f"{body.pointers[store.buffer]}[{index(body, store.indices[0])}]"
        folded = combine(nest.combiner, dtype, widen(dtype, target), operand(body, store.value))
        text = round_to(dtype, folded)
    write_store(body, store, text)
