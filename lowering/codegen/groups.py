"""Segmented updates: those that change one element are consecutive, and made by one thread.

Each thread has one update. If it is the first of its element, the thread finds the last one, folds
all of them into the element in their order, in a register, and stores it once. If updates replace
the element, only the last one is stored, by its own thread.
"""

from __future__ import annotations

from math import prod

from lowering.codegen.expressions import (
    combine,
    compute,
    index,
    index_type,
    operand,
    round_to,
    value,
    widen,
)
from lowering.codegen.flatten import POINT, STEP, Flattener, linear_axis
from lowering.codegen.geometry_records import MapGeometry, ScatterGeometry
from lowering.codegen.maps.maps import each_point
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import ScatterNest, Store
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar import Axis

LOADED = 4
"""Updates of an element whose loads are in flight at a time."""


def write_groups(writer: SourceWriter, nest: ScatterNest, geometry: ScatterGeometry) -> None:
    """Write the nest, whose updates are grouped along its first axis."""
    axes = list(enumerate(nest.space))
    store = Flattener({STEP: axes[:1], POINT: axes[1:]}).store(nest.store)
    (count, *rest), step = nest.space, linear_axis(STEP, nest.space[:1])
    points, steps = prod(rest), index_type(count + 1)
    with each_point(writer, count * points, MapGeometry(geometry.threads, 1, geometry.blocks)):
        writer.line(f"const {steps} mine = {steps}(point / {points});")
        name = writer.fresh()
        writer.line(f"const int {name} = int(point % {points});")
        writer.bind(linear_axis(POINT, nest.space[1:]), name)
        _write_place_of(writer, store, step, steps)
        writer.line("const auto place = place_of(mine);")
        if nest.combiner is None:
            with writer.block(f"if (place >= 0 && {_differs(f'mine == {count - 1}', 'mine + 1')})"):
                writer.bind(step, "mine")
                compute(writer, [store.value])
                writer.line(
                    f"{writer.pointers[store.buffer]}[place] = {value(writer, store.value)};"
                )
        else:
            with writer.block(f"if (place >= 0 && {_differs('mine == 0', 'mine - 1')})"):
                _write_fold(writer, store, nest.combiner, step, f"{steps}({count})")


def _differs(at_end: str, neighbour: str) -> str:
    return f"({at_end} || place_of({neighbour}) != place)"


def _write_place_of(writer: SourceWriter, store: Store, step: Axis, steps: str) -> None:
    """Write a function: the position that an update changes, -1 if it is dropped."""
    (position,) = store.indices
    guards = [] if store.guard is None else [store.guard]
    kind = index_type(prod(store.buffer.type.shape))
    with writer.block(f"const auto place_of = [&]({steps} update) -> {kind}"):
        writer.bind(step, "update")
        compute(writer, [position, *guards])
        found = f"{kind}({index(writer, position)})"
        for guard in guards:
            found = f"{value(writer, guard)} ? {found} : {kind}(-1)"
        writer.line(f"return {found};")
    writer.line(";")


def _write_fold(
    writer: SourceWriter, store: Store, combiner: Combiner, step: Axis, count: str
) -> None:
    dtype = store.value.dtype
    target = f"{writer.pointers[store.buffer]}[place]"
    writer.line(f"const auto end = tg_group_end(place_of, mine, {count}, place);")
    writer.line(f"{c_type(dtype)} folded = {target};")
    writer.line(f"#pragma unroll {LOADED}")
    with writer.block("for (auto update = mine; update < end; ++update)"):
        writer.bind(step, "update")
        compute(writer, [store.value])
        text = combine(combiner, dtype, widen(dtype, "folded"), operand(writer, store.value))
        writer.line(f"folded = {round_to(dtype, text)};")
    writer.line(f"{target} = folded;")
