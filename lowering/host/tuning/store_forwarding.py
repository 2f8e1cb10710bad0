"""Where the instructions of a nest write: straight to buffers, as early as nothing is disturbed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from math import prod

from lowering.host import numpy_calls as functions
from lowering.host.instructions import (
    DynamicView,
    Instruction,
    NumpyValue,
    Temporary,
    View,
    is_range,
    memory_order,
)
from lowering.host.tuning.wrapped_loads import PieceCopy
from lowering.plan.buffer import Buffer

SMALL_BYTES = 1 << 13
"""Bytes that NumPy copies while Python looks up a few places in an array."""

Overlaps = Callable[[Buffer, Buffer], bool]
"""Whether two buffers share memory."""


def save_overwritten(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """Let a store that would read what an earlier store of the nest overwrites read a copy."""
    result: list[Instruction] = []
    written: list[Buffer] = []
    first = 0  # where the first store stands
    for each in instructions:
        stored = stored_buffer(each)
        if stored is None:
            result.append(each)
            continue
        first = first if written else len(result)
        for register in each.inputs:
            buffer = read_buffer(register)
            if buffer is not None and any(overlaps(buffer, other) for other in written):
                order = memory_order(register)
                copy = Temporary(register.dtype, register.shape, register.dims, order)
                saved = Instruction("write", functions.store, (register,), copy, elementwise=True)
                result.insert(first, saved)
                each = each.renamed({register: copy})
        result.append(each)
        written.append(stored)
    return result


def stored_buffer(instruction: Instruction) -> Buffer | None:
    """The buffer that an instruction writes to."""
    return read_buffer(instruction.output) if instruction.kind == "write" else None


def read_buffer(register: NumpyValue | None) -> Buffer | None:
    """The buffer in which a register lies."""
    return register.buffer if isinstance(register, View | DynamicView) else None


def forward_stores(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """Let the instruction that makes a stored value write it straight to the buffer.

    That is right where nothing that still has to be read would be overwritten.
    """
    result = list(instructions)
    for position in range(len(result) - 1, -1, -1):
        copy = result[position]
        if copy.function is not functions.store or not isinstance(copy.inputs[0], Temporary):
            continue
        value, target = copy.inputs[0], copy.output
        if not isinstance(target, View | DynamicView):
            continue
        made = next(i for i, each in enumerate(result) if each.output is value)
        if _may_forward(result, made, position, overlaps):
            del result[position]
            result = [each.renamed({value: target}) for each in result]
    return result


def _may_forward(
    instructions: Sequence[Instruction], made: int, position: int, overlaps: Overlaps
) -> bool:
    value, target = instructions[position].inputs[0], instructions[position].output
    assert isinstance(target, View | DynamicView)
    assert target.buffer is not None
    if (value.shape, value.dtype) != (target.shape, target.dtype):
        return False
    if instructions[made].flat and not is_range(target):
        return False
    if isinstance(instructions[made].function, PieceCopy) and _is_small_result(target):
        return False
    if memory_order(value) != memory_order(target):
        # one call along the memory of what is read, and a copy, take less time, and so do readers
        readers = sum(value in each.inputs for each in instructions)
        if readers > 1 or not _is_copy(instructions[made]):
            return False
    first = made + 1 if instructions[made].elementwise else made
    later = {read_buffer(r) for i in instructions[first:] for r in i.inputs}
    return not any(b is not None and overlaps(b, target.buffer) for b in later)


def _is_small_result(target: View | DynamicView) -> bool:
    """Whether a copy takes less time than to look up places in an array that each call makes."""
    buffer = target.buffer
    return buffer is not None and buffer.space == "output" and target.nbytes <= SMALL_BYTES


def compute_in_place(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """Let a chain of elementwise instructions that ends in a buffer work in that buffer throughout.

    That is right where, meanwhile, nothing else reads or writes there.
    """
    last: dict[NumpyValue, int] = {}
    makers: dict[NumpyValue, int] = {}
    reads: dict[Buffer, list[int]] = {}
    writes: dict[Buffer, list[int]] = {}
    seen: set[NumpyValue] = set()  # through other registers, too
    for position, each in enumerate(instructions):
        last.update(dict.fromkeys(each.inputs, position))
        for read in filter(None, map(read_buffer, each.inputs)):
            reads.setdefault(read, []).append(position)
        written = stored_buffer(each)
        if written is not None:
            writes.setdefault(written, []).append(position)
        if each.kind == "assign":
            seen.update(each.inputs)
        if each.output is not None:
            makers[each.output] = position
    places: dict[NumpyValue, View] = {}
    for position in range(len(instructions) - 1, -1, -1):
        each = instructions[position]
        target = places.get(each.output) if isinstance(each.output, Temporary) else each.output
        if not (isinstance(target, View) and each.elementwise) or each.keeps:
            continue
        end = makers[target]
        for value in each.inputs:
            if not isinstance(value, Temporary) or last[value] != position or value in seen:
                continue
            made = makers[value]
            if isinstance(instructions[made].function, PieceCopy):
                continue  # places in an array that never moves need not be looked up in each call
            first = made + 1 if instructions[made].elementwise else made
            busy = _within(reads, first, end + 1, target, overlaps)
            if may_share(value, target) and not (
                busy or _within(writes, first, end, target, overlaps)
            ):
                places[value] = target
                break
    placed = [each.renamed(places) for each in instructions]
    return [each for each in placed if each.output not in each.inputs or not _is_copy(each)]


def _is_copy(instruction: Instruction) -> bool:
    return instruction.function is functions.store


def _within(
    touched: Mapping[Buffer, Sequence[int]], start: int, stop: int, target: View, overlaps: Overlaps
) -> bool:
    """Whether memory of the target is touched from `start` on and before `stop`."""
    return any(
        overlaps(buffer, target.buffer)
        for buffer, positions in touched.items()
        if bisect_left(positions, start) < bisect_left(positions, stop)
    )


def may_share(one: NumpyValue, other: NumpyValue) -> bool:
    """Whether a call may read one and write the other in the same memory: they are of one shape and
    dtype, and their elements in one order.

    Not single numbers: NumPy takes three times as long for one in place.
    """
    if (one.shape, one.dtype) != (other.shape, other.dtype) or prod(one.shape) == 1:
        return False
    return memory_order(one) == memory_order(other)
