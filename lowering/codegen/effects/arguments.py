"""The arguments of prints and calls: the layout of a record of them, and the stores into a ring."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from lowering.codegen.expressions import compute, index_type, value
from lowering.codegen.flatten import POINT, Flattener, linear_axis
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import PrintedArray
from lowering.plan.records.print_records import Record
from tracegraph.ir.types import ArrayType


def record_of(arguments: Iterable[PrintedArray]) -> Record:
    """The layout of these arguments."""
    return Record.of(ArrayType(a.value.dtype, a.shape) for a in arguments)


def write_elements(
    writer: SourceWriter,
    argument: PrintedArray,
    points: tuple[str, str, int],
    offset: int,
    distance: str = "(point)",
    more: int = 0,
) -> None:
    """Write a thread's stores of elements to the ring, from `offset` bytes behind `start` on.

    `points` are the first one, where they end, and the step; the first may be `more` than that.
    Each goes to the place of its `distance` in elements.
    """
    size, dtype = prod(argument.shape), argument.value.dtype
    first, end, step = points
    expr = Flattener({POINT: list(enumerate(argument.shape))})(argument.value)
    kind = index_type(size + max(step, more))
    with writer.block(f"for ({kind} point = {first}; point < {end}; point += {step})"):
        writer.bind(linear_axis(POINT, argument.shape), "point")
        compute(writer, [expr])
        place = f"bytes + ((start + {offset} + tg_u64{distance} * {dtype.itemsize}) & mask)"
        writer.line(f"*reinterpret_cast<{c_type(dtype)}*>({place}) = {value(writer, expr)};")
