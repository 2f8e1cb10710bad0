"""In which blocks a nest runs: along which axis, and how long each is.

Values that one instruction hands on to the next stay in the cache that way, and lines of what is
read across memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import attrgetter

from lowering.host.instructions import (
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    View,
    innermost,
)
from lowering.host.tuning.caches import LINE, SECOND
from lowering.plan.buffer import Buffer

BLOCK_BYTES = 1 << 19
"""About what each intermediate value of a block takes: several fit a second-level cache, and what
is read from memory is read for long enough that the next of it is foreseen."""

LARGE_BYTES, HUGE_BYTES = 1 << 20, 1 << 24
"""What the largest value of a nest takes at least that is run in blocks: where values are handed on
within it, and where its instructions do no more than read the same."""

GATHERED_BYTES = 1 << 22
"""Bytes of several arrays that a cache does not hold while elements are gathered by turns."""

STRIP, WIDE_STRIP = 32, 128
"""Elements of a strip: two cache lines of 32-bit numbers; and where all lines stay in the cache."""


def choose_block(
    instructions: Sequence[Instruction], extents: tuple[int, ...]
) -> tuple[int | None, int]:
    """The axis to run in blocks along, and the extent of a block.

    There is none for a nest that is small, or of which no instruction reads what another makes, or
    that has an instruction that needs all of every axis.
    """
    written = [i.output for i in instructions if i.kind == "write" and i.output is not None]
    if any(i.kind == "effect" for i in instructions) or not written:
        return None, 1
    largest = max(written, key=attrgetter("nbytes"))
    if largest.nbytes < LARGE_BYTES:
        return None, 1
    if (strip := _strip(instructions)) is not None:
        return strip
    if len(written) < 2 or (largest.nbytes < HUGE_BYTES and not _hands_on(instructions)):
        return None, 1
    if _gathers_by_turns(instructions):
        return None, 1
    blocks = max(2, largest.nbytes // BLOCK_BYTES)
    axes = [axis for axis in largest.dims if all(_keeps(i, axis) for i in instructions)]
    if sum(extents[axis] > 1 for axis in largest.dims) > 1:  # many short runs take longer than one
        touched = {r for i in instructions for r in (*i.inputs, i.output) if r is not None}
        fastest = {_fastest_axis(r) for r in touched if r.nbytes >= LARGE_BYTES // 2}
        axes = [axis for axis in axes if axis not in fastest | {_fastest_axis(largest)}]
    if not axes:
        return None, 1
    axis = next((a for a in axes if extents[a] >= blocks), max(axes, key=extents.__getitem__))
    length = -(-extents[axis] // blocks)
    return (axis, length) if length < extents[axis] else (None, 1)


def _hands_on(instructions: Sequence[Instruction]) -> bool:
    """Whether a large value is made by one instruction and read by a later one."""
    made: set[NumpyValue] = set()
    for each in instructions:
        if not made.isdisjoint(each.inputs):
            return True
        if each.output is not None and each.output.nbytes >= LARGE_BYTES:
            made.add(each.output)
    return False


def _gathers_by_turns(instructions: Sequence[Instruction]) -> bool:
    """Whether each block would gather elements from all over several arrays, which push each other
    out of the cache: all at once, they take half the time.
    """
    sources: dict[Buffer, int] = {}
    for each in instructions:
        for r in each.inputs:
            if isinstance(r, View) and r.shape and not r.dims and any(i.dims for i in each.inputs):
                sources[r.buffer] = r.nbytes
    return len(sources) > 1 and sum(sources.values()) >= GATHERED_BYTES


def _fastest_axis(register: NumpyValue) -> int | None:
    """The axis along which elements lie next to each other."""
    fastest = innermost(register)
    return next((axis for axis, dim in register.dims.items() if dim == fastest), None)


def _keeps(instruction: Instruction, axis: int) -> bool:
    """Whether a part of the output along the axis comes from the same part of the inputs."""
    if not varies(instruction, axis):
        return True
    if any(
        isinstance(r, ReversedTemporary) and r.dims.get(axis) in r.along for r in instruction.inputs
    ):
        return False
    output = instruction.output
    return output is not None and axis in output.dims and axis not in instruction.whole_axes


def varies(instruction: Instruction, axis: int) -> bool:
    """Whether each block along the axis runs the instruction on a part of its own."""
    output = instruction.output
    written = instruction.kind == "write" and output is not None and axis in output.dims
    return written or any(axis in register.dims for register in instruction.inputs)


# -- strips ------------------------------------------------------------------------------------


def _strip(instructions: Sequence[Instruction]) -> tuple[int, int] | None:
    """An axis along which a large array is written in order, while another is read across, and how
    much of it to work on at a time, so that lines of the one that is read stay in the cache.

    So it is where all of them would push each other out. Where they would not, strips still pay if
    nothing is read in order, for that takes longer in short pieces.
    """
    for each in instructions:
        if each.output is None or each.output.nbytes < LARGE_BYTES:
            continue
        axis = _fastest_axis(each.output)
        if axis is None or not all(_keeps(i, axis) for i in instructions):
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
    """What it reads that has more than one element along an axis."""
    inputs = (r for r in instruction.inputs if isinstance(r, View | Temporary))
    return [r for r in inputs if axis in r.dims and r.shape[r.dims[axis]] > 1]


def _is_across(register: View | Temporary, axis: int) -> bool:
    return _fastest_axis(register) != axis and _step(register, axis) >= LINE


def _reads_in_order(instruction: Instruction, axis: int) -> bool:
    """Whether it writes elements in order along an axis, and so reads some."""
    output = instruction.output
    if output is None or _fastest_axis(output) != axis:
        return False
    return not all(_is_across(r, axis) for r in _read_along(instruction, axis))


def _step(register: View | Temporary, axis: int) -> int:
    """Bytes from an element to the next one along an axis."""
    dim = register.dims[axis]
    if isinstance(register, View):
        return abs(register.strides[dim])
    order = list(register.order or range(len(register.shape)))
    inner = order[order.index(dim) + 1 :]
    return register.dtype.itemsize * prod(register.shape[each] for each in inner)
