"""The text of a PrintNest: one block appends a record to the print ring.

Prints run one after the other on a device, so no other kernel moves the ring's head meanwhile.
"""

from __future__ import annotations

from math import prod

from lowering.codegen.effects.arguments import record_of, write_elements
from lowering.codegen.geometry_records import PrintGeometry
from lowering.codegen.kernel_parameters import PrintRingAddress, PrintSiteNumber
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import PrintNest


def print_site(nest: PrintNest) -> PrintSiteNumber:
    """The parameter that identifies the print, with the layout of its records."""
    return PrintSiteNumber(nest.site, record_of(nest.arguments))


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
            size = prod(argument.shape)
            if size:
                write_elements(writer, argument, ("thread", str(size), geometry.threads), offset)
        writer.line("__threadfence_system();")
    writer.line("__syncthreads();")
    writer.line(f"if (thread == 0 && fits) {ring}->head = start + {record.nbytes};")
