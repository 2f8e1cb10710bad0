"""The text of a PrintNest: one block writes a record into the print ring.

Prints run one after the other on a device, so that no other kernel moves the ring's head.
"""

from __future__ import annotations

from math import prod

from lowering.codegen.expressions import compute, index_type, value
from lowering.codegen.flatten import POINT, Flattener, linear_axis
from lowering.codegen.geometry_records import PrintShape
from lowering.codegen.parameters import PrintRing, PrintSite
from lowering.codegen.preamble import c_type
from lowering.codegen.print_records import Record
from lowering.codegen.source_writer import Body
from lowering.plan.kernel import PrintedArray, PrintNest
from tracegraph.ir.types import ArrayType


def print_site(nest: PrintNest) -> PrintSite:
    """The parameter that says which print it is, and how its records lie."""
    types = (ArrayType(a.value.dtype, a.shape) for a in nest.arguments)
    return PrintSite(nest.site, Record.of(types))


def write_print(body: Body, nest: PrintNest, shape: PrintShape) -> None:
    """Write the nest; `thread` is declared.

    A record that does not fit is counted, and not written.
    """
    site = print_site(nest)
    record, ring = site.record, body.names[PrintRing()]
    body.line("tg_u64* const place = reinterpret_cast<tg_u64*>(shared);")
    with body.block("if (thread == 0)"):
        body.line(f"place[0] = {ring}->head;")
        body.line(f"place[1] = place[0] + {record.nbytes} - {ring}->tail <= {ring}->capacity;")
        body.line(f"if (!place[1]) {ring}->lost = {ring}->lost + 1;")
    body.line("__syncthreads();")
    body.line("const tg_u64 start = place[0];")
    body.line("const bool fits = place[1] != 0;")
    with body.block("if (fits)"):
        body.line(f"const tg_u64 mask = {ring}->capacity - 1;")
        body.line(f"unsigned char* const bytes = (unsigned char*)({ring} + 1);")
        with body.block("if (thread == 0)"):
            body.line("tg_u64* const head = reinterpret_cast<tg_u64*>(bytes + (start & mask));")
            body.line(f"head[0] = {body.names[site]};")
            body.line(f"head[1] = {record.nbytes};")
        for argument, offset in zip(nest.arguments, record.offsets, strict=True):
            if prod(argument.shape):
                _write_argument(body, argument, offset, shape.threads)
        body.line("__threadfence_system();")
    body.line("__syncthreads();")
    body.line(f"if (thread == 0 && fits) {ring}->head = start + {record.nbytes};")


def _write_argument(body: Body, argument: PrintedArray, offset: int, threads: int) -> None:
    size, dtype = prod(argument.shape), argument.value.dtype
    expr = Flattener({POINT: list(enumerate(argument.shape))})(argument.value)
    kind = index_type(size + threads)
    with body.block(f"for ({kind} point = thread; point < {size}; point += {threads})"):
        body.bind(linear_axis(POINT, argument.shape), "point")
        compute(body, [expr])
        place = f"bytes + ((start + {offset} + tg_u64(point) * {dtype.itemsize}) & mask)"
        body.line(f"*reinterpret_cast<{c_type(dtype)}*>({place}) = {value(body, expr)};")
