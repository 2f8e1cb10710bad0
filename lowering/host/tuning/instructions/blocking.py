"""Loop blocking: a large nest runs all its instructions on one block, then on the next.

Intermediate values of a block stay in the cache, and so do cache lines that are read across their
memory order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import prod
from operator import attrgetter

from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.instructions import (
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    View,
)
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.tuning.caches import LINE, SECOND
from lowering.host.tuning.instructions.memory_orders import innermost
from lowering.plan.nests.buffer import Buffer

BLOCK_BYTES = 1 << 19
"""About the bytes of each intermediate value in a block. Six calls on 2^22 float32 take 8.0 ms in
blocks of 512 KiB, 7.3 in blocks of 128 KiB, 8.8 in blocks of 1 MiB, and 12.8 as a whole."""

LARGE_BYTES, HUGE_BYTES = 1 << 20, 1 << 24
"""Least bytes of the largest value of a nest in blocks: if an instruction reads what another made,
and if they only read the same arrays. Smaller values stay in a cache. With 32 MiB of third-level
cache, the six calls break even at 4 MiB; three calls that read the same 32 MiB gain 4 %."""

GATHERED_BYTES = 1 << 22
"""Bytes of several gathered arrays from which they evict each other: those of four second-level
caches."""

STRIP, WIDE_STRIP = 32, 128
"""Least elements of a strip: two cache lines of 32-bit numbers; more if all lines stay cached. They
follow from the size of a line, not from a timing."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockedProgram(NestProgram):
    """A program of which the first `invariant` instructions run once, the others for each block.

    Blocks have `length` elements along the `axis`; the last may be shorter.
    """

    axis: int = 0
    length: int = 1
    invariant: int = 0

    def shape(self, value: NumpyValue) -> tuple[int, ...]:
        """The shape of the part of a value that one block needs."""
        if self.axis not in value.dims:
            return value.shape
        dim = value.dims[self.axis]
        return (*value.shape[:dim], self.length, *value.shape[dim + 1 :])

    @property
    def pinned(self) -> Sequence[Instruction]:
        """The instructions whose outputs all blocks read."""
        return self.instructions[: self.invariant]


def block(program: NestProgram, overlaps: Overlaps) -> NestProgram:
    """The program in blocks, if that pays."""
    axis, length = choose_block(program.instructions, program.extents)
    if axis is None:
        return program
    before = [made for made in program.instructions if not varies(made, axis)]
    each = [made for made in program.instructions if varies(made, axis)]
    given = {f.name: getattr(program, f.name) for f in fields(program)}
    given["instructions"] = (*before, *each)
    return BlockedProgram(**given, axis=axis, length=length, invariant=len(before))


def choose_block(
    instructions: Sequence[Instruction], extents: tuple[int, ...]
) -> tuple[int | None, int]:
    """The axis of the blocks and the extent of one; None and 1 for a nest that runs whole.

    A nest runs whole if it is small, if no instruction reads what another made, or if one needs
    every axis whole.
    """
    written = [i.output for i in instructions if i.kind == "write" and i.output is not None]
    if any(i.kind == "effect" for i in instructions) or not written:
        return None, 1
    largest = max(written, key=attrgetter("nbytes"))
    if largest.nbytes < LARGE_BYTES:
        return None, 1
    if (strip := _strip(instructions)) is not None:
        return strip
    if len(written) < 2:
        return None, 1
    if largest.nbytes < HUGE_BYTES and not _has_large_intermediates(instructions):
        return None, 1
    if _alternates_gathers(instructions):
        return None, 1
    blocks = max(2, largest.nbytes // BLOCK_BYTES)
    axes = [axis for axis in largest.dims if all(_is_local(i, axis) for i in instructions)]
    if sum(extents[axis] > 1 for axis in largest.dims) > 1:  # blocks would shorten inner loops
        accessed = {r for i in instructions for r in (*i.inputs, i.output) if r is not None}
        fastest = {_fastest_axis(r) for r in accessed if r.nbytes >= LARGE_BYTES // 2}
        axes = [axis for axis in axes if axis not in fastest | {_fastest_axis(largest)}]
    if not axes:
        return None, 1
    axis = next((a for a in axes if extents[a] >= blocks), max(axes, key=extents.__getitem__))
    length = -(-extents[axis] // blocks)
    return (axis, length) if length < extents[axis] else (None, 1)


def _has_large_intermediates(instructions: Sequence[Instruction]) -> bool:
    """Whether an instruction makes a large value that a later one reads."""
    made: set[NumpyValue] = set()
    for each in instructions:
        if not made.isdisjoint(each.inputs):
            return True
        if each.output is not None and each.output.nbytes >= LARGE_BYTES:
            made.add(each.output)
    return False


def _alternates_gathers(instructions: Sequence[Instruction]) -> bool:
    """Whether each block would gather from several whole arrays, which evict each other from the
    cache: the nest takes half the time if it runs whole.
    """
    sources: dict[Buffer, int] = {}
    for each in instructions:
        for r in each.inputs:
            if isinstance(r, View) and r.shape and not r.dims and any(i.dims for i in each.inputs):
                sources[r.buffer] = r.nbytes
    return len(sources) > 1 and sum(sources.values()) >= GATHERED_BYTES


def _fastest_axis(value: NumpyValue) -> int | None:
    """The innermost axis in memory."""
    fastest = innermost(value)
    return next((axis for axis, dim in value.dims.items() if dim == fastest), None)


def _is_local(instruction: Instruction, axis: int) -> bool:
    """Whether a part of the output along the axis needs only the same part of the inputs."""
    if not varies(instruction, axis):
        return True
    if any(
        isinstance(r, ReversedTemporary) and r.dims.get(axis) in r.along for r in instruction.inputs
    ):
        return False
    output = instruction.output
    return output is not None and axis in output.dims and axis not in instruction.whole_axes


def varies(instruction: Instruction, axis: int) -> bool:
    """Whether the instruction runs once per block along the axis, not once before all blocks."""
    output = instruction.output
    written = instruction.kind == "write" and output is not None and axis in output.dims
    return written or any(axis in value.dims for value in instruction.inputs)


# -- strips ------------------------------------------------------------------------------------


def _strip(instructions: Sequence[Instruction]) -> tuple[int, int] | None:
    """Strip mining: the innermost axis of a large output whose input is read across its memory
    order, and the extent of a strip whose cache lines stay in the cache.

    It pays if the lines of the whole axis would evict each other. Otherwise it pays only if nothing
    is read in order: that is slower in short pieces.
    """
    for each in instructions:
        if each.output is None or each.output.nbytes < LARGE_BYTES:
            continue
        axis = _fastest_axis(each.output)
        if axis is None or not all(_is_local(i, axis) for i in instructions):
            continue
        across = [r for r in _read_along(each, axis) if _is_across(r, axis)]
        kept = min((SECOND.lines_kept(_step(r, axis)) for r in across), default=0)
        extent = each.output.shape[each.output.dims[axis]]
        if across and 2 * extent > kept:
            return axis, max(STRIP, kept // 8)
        if across and not any(_reads_in_order(i, axis) for i in instructions):
            return axis, max(WIDE_STRIP, extent // (each.output.nbytes // BLOCK_BYTES))
    return None


def _read_along(instruction: Instruction, axis: int) -> list[View | Temporary]:
    """The inputs of more than one element along an axis."""
    inputs = (r for r in instruction.inputs if isinstance(r, View | Temporary))
    return [r for r in inputs if axis in r.dims and r.shape[r.dims[axis]] > 1]


def _is_across(value: View | Temporary, axis: int) -> bool:
    return _fastest_axis(value) != axis and _step(value, axis) >= LINE


def _reads_in_order(instruction: Instruction, axis: int) -> bool:
    """Whether it writes along an axis in memory order, and reads an input in that order."""
    output = instruction.output
    if output is None or _fastest_axis(output) != axis:
        return False
    return not all(_is_across(r, axis) for r in _read_along(instruction, axis))


def _step(value: View | Temporary, axis: int) -> int:
    """Bytes from an element to the next one along an axis."""
    dim = value.dims[axis]
    if isinstance(value, View):
        return abs(value.strides[dim])
    order = list(value.order or range(len(value.shape)))
    inner = order[order.index(dim) + 1 :]
    return value.dtype.itemsize * prod(value.shape[each] for each in inner)
