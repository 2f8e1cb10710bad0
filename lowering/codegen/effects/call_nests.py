"""The text of a CallNest: one block sends a call through the callback ring, and takes the answer.

Calls run one after the other on a stream, so no other kernel moves the ring's head meanwhile. The
block waits for room in the ring, and for the answer, until the stop flag is up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

from lowering.codegen.effects.arguments import record_of, write_elements
from lowering.codegen.expressions import index_type
from lowering.codegen.geometry_records import PrintGeometry
from lowering.codegen.kernel_parameters import (
    Answer,
    CallRingAddress,
    CallSiteNumber,
    Parameter,
    StopFlagAddress,
)
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.kernel import CallNest, PrintedArray
from lowering.plan.records.call_records import (
    FIRST,
    FRAME_BYTES,
    FRAME_HEAD_BYTES,
    LAST,
    answer_offset,
    argument_bytes,
    frame_elements,
)
from lowering.plan.records.print_records import HEAD_BYTES, Record


def call_parameters(nest: CallNest) -> Iterator[Parameter]:
    """The parameters of a call besides buffers."""
    yield CallRingAddress()
    yield _site(nest)
    yield StopFlagAddress()
    if nest.results:
        yield _answer(nest)


def write_call(writer: SourceWriter, nest: CallNest, geometry: PrintGeometry) -> None:
    """Write the nest; `thread` is declared."""
    writer.line("tg_u64* const place = reinterpret_cast<tg_u64*>(shared);")
    number = "0"
    if nest.results:
        answer = writer.names[_answer(nest)]
        number = "number"
        writer.line("tg_u64 number = 0;")
        writer.line(f"if (thread == 0) {answer}->asked = number = {answer}->asked + 1;")
    writer.line("bool sent;")
    record = _site(nest).record
    if argument_bytes(record) <= FRAME_BYTES:
        _write_whole(writer, nest, number, geometry.threads)
    else:
        _write_parts(writer, nest, number, geometry.threads)
    if nest.results:
        _write_answer(writer, nest, geometry.threads)


def _site(nest: CallNest) -> CallSiteNumber:
    """The parameter that identifies the call, with the layout of its arguments."""
    return CallSiteNumber(nest.site, record_of(nest.arguments))


def _answer(nest: CallNest) -> Answer:
    return Answer(nest.site, Record.of(buffer.type for buffer in nest.results))


def _write_whole(writer: SourceWriter, nest: CallNest, number: str, threads: int) -> None:
    """Write a call of one frame."""
    record = _site(nest).record
    with _frame(writer, nest, str(argument_bytes(record)), str(FIRST | LAST), number):
        for argument, offset in zip(nest.arguments, record.offsets, strict=True):
            size = prod(argument.shape)
            if size:
                _write_elements(writer, argument, ("0", str(size)), offset - HEAD_BYTES, threads)


def _write_parts(writer: SourceWriter, nest: CallNest, number: str, threads: int) -> None:
    """Write a call of many frames: one without arguments, then some for each argument."""
    with _frame(writer, nest, "0", str(FIRST), number):
        pass
    arguments = [argument for argument in nest.arguments if prod(argument.shape)]
    for argument in arguments:
        size, itemsize = prod(argument.shape), argument.value.dtype.itemsize
        most = frame_elements(itemsize)
        kind = index_type(size + most)
        with writer.block(f"for ({kind} first = 0; sent && first < {size}; first += {most})"):
            writer.line(f"const {kind} end = first + {most} < {size} ? first + {most} : {size};")
            nbytes = f"(tg_u64(end - first) * {itemsize} + 15) / 16 * 16"
            marks = f"(end == {size} ? {LAST} : 0)" if argument is arguments[-1] else "0"
            with _frame(writer, nest, nbytes, marks, number):
                _write_elements(writer, argument, ("first", "end"), 0, threads)


@contextmanager
def _frame(
    writer: SourceWriter, nest: CallNest, nbytes: str, marks: str, number: str
) -> Iterator[None]:
    """Write a frame around what writes its arguments, behind `start` in the ring."""
    ring, stop = writer.names[CallRingAddress()], writer.names[StopFlagAddress()]
    writer.line(f"const tg_u64 content = {nbytes};")
    writer.line(f"sent = tg_reserve({ring}, content, {stop}, place, thread);")
    with writer.block("if (sent)"):
        writer.line(f"const tg_u64 start = place[0], mask = {ring}->capacity - 1;")
        writer.line(f"unsigned char* const bytes = (unsigned char*)({ring} + 1);")
        with writer.block("if (thread == 0)"):
            head = f"{{{writer.names[_site(nest)]}, content, {marks}, {number}}}"
            writer.line(f"*reinterpret_cast<tg_frame*>(bytes + (start & mask)) = {head};")
        yield
        writer.line(f"tg_send_frame({ring}, start, content, thread);")


def _write_elements(
    writer: SourceWriter, argument: PrintedArray, span: tuple[str, str], offset: int, threads: int
) -> None:
    """Write elements of an argument, from some bytes behind the frame's head on."""
    first, end = span
    distance = "(point)" if first == "0" else f"(point - {first})"
    points, most = (
        (f"{first} + thread", end, threads),
        frame_elements(argument.value.dtype.itemsize),
    )
    write_elements(writer, argument, points, FRAME_HEAD_BYTES + offset, distance, most)


def _write_answer(writer: SourceWriter, nest: CallNest, threads: int) -> None:
    """Write the wait for the answer, and the stores of its results: zeros if there is none."""
    answer, stop = writer.names[_answer(nest)], writer.names[StopFlagAddress()]
    record = _answer(nest).record
    writer.line(f"const bool answered = sent && tg_await({answer}, number, {stop}, place, thread);")
    writer.line(f"const unsigned char* const results = (const unsigned char*){answer};")
    for position, buffer in enumerate(nest.results):
        size, kind = buffer.type.size, c_type(buffer.type.dtype)
        if not size:
            continue
        index = index_type(size + threads)
        with writer.block(f"for ({index} point = thread; point < {size}; point += {threads})"):
            at = f"{answer_offset(record, position)} + tg_u64(point) * {buffer.type.dtype.itemsize}"
            writer.line(
                f"{writer.pointers[buffer]}[point] = tg_answered<{kind}>(results + {at}, answered);"
            )
