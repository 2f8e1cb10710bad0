"""The text of a PrintNest: one block appends a record to the print ring.

Prints run one after the other on a device, so no other kernel moves the ring's head meanwhile.
"""

from __future__ import annotations

from math import prod

from lowering.codegen.effects.print_records import Record
from lowering.codegen.expressions import compute, index_type, value
from lowering.codegen.flatten import POINT, Flattener, linear_axis
from lowering.codegen.geometry_records import PrintGeometry
from lowering.codegen.kernel_parameters import PrintRingAddress, PrintSiteNumber
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import PrintedArray, PrintNest
from tracegraph.ir.types import ArrayType


def print_site(nest: PrintNest) -> PrintSiteNumber:
    """The parameter that identifies the print, with the layout of its records."""
    types = (ArrayType(a.value.dtype, a.shape) for a in nest.arguments)
    return PrintSiteNumber(nest.site, Record.of(types))


def write_print(writer: SourceWriter, nest: PrintNest, geometry: PrintGeometry) -> None:
    """Write the nest; `thread` is declared.

    A record that does not fit is counted and dropped.
    """
    site = print_site(nest)
    record, ring = site.record, writer.names[PrintRingAddress()]
    writer.line("tg_u64* const place = reinterpret_cast<tg_u64*>(shared);")
    with writer.block("if (thread == 0)"):
        writer.line(f"place[0] = {ring}->head;")
        writer.line(f"place[1] = place[0] + {record.nbytes} - {ring}->tail <= {ring}->capacity;")
        writer.line(f"if (!place[1]) {ring}->lost = {ring}->lost + 1;")
    writer.line("__syncthreads();")
    writer.line("const tg_u64 start = place[0];")
    writer.line("const bool fits = place[1] != 0;")
    with writer.block("if (fits)"):
        writer.line(f"const tg_u64 mask = {ring}->capacity - 1;")
        writer.line(f"unsigned char* const bytes = (unsigned char*)({ring} + 1);")
        with writer.block("if (thread == 0)"):
            writer.line("tg_u64* const head = reinterpret_cast<tg_u64*>(bytes + (start & mask));")
            writer.line(f"head[0] = {writer.names[site]};")
            writer.line(f"head[1] = {record.nbytes};")
        for argument, offset in zip(nest.arguments, record.offsets, strict=True):
            if prod(argument.shape):
                _write_argument(writer, argument, offset, geometry.threads)
        writer.line("__threadfence_system();")
    writer.line("__syncthreads();")
    writer.line(f"if (thread == 0 && fits) {ring}->head = start + {record.nbytes};")


def _write_argument(
    writer: SourceWriter, argument: PrintedArray, offset: int, threads: int
) -> None:
    size, dtype = prod(argument.shape), argument.value.dtype
    expr = Flattener({POINT: list(enumerate(argument.shape))})(argument.value)
    kind = index_type(size + threads)
    with writer.block(f"for ({kind} point = thread; point < {size}; point += {threads})"):
        writer.bind(linear_axis(POINT, argument.shape), "point")
        compute(writer, [expr])
        place = f"bytes + ((start + {offset} + tg_u64(point) * {dtype.itemsize}) & mask)"
        writer.line(f"*reinterpret_cast<{c_type(dtype)}*>({place}) = {value(writer, expr)};")
