"""The text of a ScanNest: a thread a line, or a block a line where lines are few and long."""

from __future__ import annotations

from math import prod

from lowering.codegen.body import Body
from lowering.codegen.constants import constant
from lowering.codegen.expressions import (
    cast,
    combine,
    compute,
    hoist,
    index_type,
    operand,
    round_to,
    stored,
    value,
    widen,
    write_store,
)
from lowering.codegen.flatten import POINT, STEP, Flattener, linear_axis
from lowering.codegen.launch import ITEMS_PER_THREAD, MapShape, ScanShape
from lowering.codegen.maps import each_point
from lowering.kernel import ScanNest, Store
from lowering.preamble import c_type
from tracegraph.scalar import Axis, const


def write_scan(body: Body, nest: ScanNest, shape: ScanShape) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    others = [(axis, n) for axis, n in enumerate(nest.space) if axis != nest.axis]
    length = nest.space[nest.axis]
    flat = Flattener({POINT: others, STEP: [(nest.axis, length)]})
    store = flat.store(nest.store)
    extents = tuple(n for _, n in others)
    step = linear_axis(STEP, (length,))
    if shape.together:
        body.line("const int point = block;")
        body.bind(linear_axis(POINT, extents), "point")
        _together(body, nest, store, step, shape.threads)
        return
    with each_point(body, prod(extents), MapShape(shape.threads, 1, shape.blocks)):
        body.bind(linear_axis(POINT, extents), "point")
        _alone(body, nest, store, step)


def _alone(body: Body, nest: ScanNest, store: Store, step: Axis) -> None:
    """One thread folds one line in order, rounding at each step."""
    dtype = store.value.dtype
    hoist(body, stored([store]), step)
    body.line(f"{c_type(dtype)} running;")
    with body.block(f"for ({index_type(step.extent)} step = 0; step < {step.extent}; ++step)"):
        body.bind(step, "step")
        compute(body, stored([store]))
        folded = combine(nest.combiner, dtype, widen(dtype, "running"), operand(body, store.value))
        body.line(f"running = step == 0 ? {value(body, store.value)} : {round_to(dtype, folded)};")
        write_store(body, store, "running")


def _together(body: Body, nest: ScanNest, store: Store, step: Axis, threads: int) -> None:
    """One block folds one line, a tile of consecutive items per thread at a time.

    The threads' totals are folded by doubling distances (Hillis and Steele, 1986); what came before
    the tile is carried along.
    """
    dtype, length, items = store.value.dtype, step.extent, ITEMS_PER_THREAD
    kind, tile = c_type(dtype), threads * items
    identity = constant(const(nest.combiner.identity(dtype), dtype))

    def folded(left: str, right: str) -> str:
        return cast(kind, combine(nest.combiner, dtype, left, right))

    hoist(body, stored([store]), step)
    body.line(f"{kind}* const totals = reinterpret_cast<{kind}*>(shared);")
    body.line(f"{kind} carried = {identity};")
    position = f"const {index_type(length + tile)} step = base + thread * {items} + item;"
    with body.block(f"for ({index_type(length + tile)} base = 0; base < {length}; base += {tile})"):
        body.line(f"{kind} items[{items}];")
        body.line("#pragma unroll")
        with body.block(f"for (int item = 0; item < {items}; ++item)"):
            body.line(position)
            body.line(f"items[item] = {identity};")
            with body.block(f"if (step < {length})"):
                body.bind(step, "step")
                compute(body, [store.value])
                body.line(f"items[item] = {value(body, store.value)};")
            body.line(f"if (item > 0) items[item] = {folded('items[item - 1]', 'items[item]')};")
        body.line(f"totals[thread] = items[{items - 1}];")
        body.line("__syncthreads();")
        with body.block(f"for (int distance = 1; distance < {threads}; distance *= 2)"):
            body.line(f"{kind} total = totals[thread];")
            body.line(
                f"if (thread >= distance) total = {folded('totals[thread - distance]', 'total')};"
            )
            body.line("__syncthreads();")
            body.line("totals[thread] = total;")
            body.line("__syncthreads();")
        body.line(f"{kind} before = carried;")
        left = "totals[thread - 1]"
        body.line(f"if (thread > 0) before = base == 0 ? {left} : {folded('before', left)};")
        body.line("#pragma unroll")
        with body.block(f"for (int item = 0; item < {items}; ++item)"):
            body.line(position)
            with body.block(f"if (step < {length})"):
                body.bind(step, "step")
                roots = [*store.indices, *([] if store.guard is None else [store.guard])]
                compute(body, roots)
                first = "base + thread == 0"
                write_store(
                    body, store, f"{first} ? items[item] : {folded('before', 'items[item]')}"
                )
        last = f"totals[{threads - 1}]"
        body.line(f"carried = base == 0 ? {last} : {folded('carried', last)};")
        body.line("__syncthreads();")
