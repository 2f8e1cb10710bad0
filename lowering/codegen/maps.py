"""The text of a MapNest: independent points, one or several a thread."""

from __future__ import annotations

from contextlib import ExitStack
from math import prod

from lowering.codegen.body import Body
from lowering.codegen.expressions import WIDE, index_type
from lowering.codegen.flatten import POINT, Flattener, linear_axis
from lowering.codegen.launch import MapShape
from lowering.codegen.signals import write_results, write_stop_check
from lowering.kernel import MapNest


def write_map(body: Body, nest: MapNest, shape: MapShape) -> None:
    """Write the nest; `block` and `thread` are declared, and the block is the nest's own."""
    flat = Flattener({POINT: list(enumerate(nest.space))})
    write_stop_check(body, nest.signals)
    with each_point(body, prod(nest.space), shape):
        body.bind(linear_axis(POINT, nest.space), "point")
        write_results(body, map(flat.store, nest.stores), map(flat.signal, nest.signals))


def each_point(body: Body, points: int, shape: MapShape) -> ExitStack:
    """Blocks of text that run once for each `point` of a thread."""
    tile = shape.threads * shape.points
    covered = shape.blocks * tile
    wide = index_type(covered) == WIDE
    start = f"{WIDE}(block)" if wide else "block"
    stack = ExitStack()
    if shape.points == 1:
        body.line(f"const {index_type(covered)} point = {start} * {tile} + thread;")
    else:
        body.line("#pragma unroll")
        head = f"for (int part = 0; part < {shape.points}; ++part)"
        stack.enter_context(body.block(head))
        position = f"{start} * {tile} + part * {shape.threads} + thread"
        body.line(f"const {index_type(covered)} point = {position};")
    if covered > points:
        stack.enter_context(body.block(f"if (point < {points})"))
    return stack
