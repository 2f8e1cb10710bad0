"""Store forwarding: instructions write to buffers directly, without a temporary and a copy."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import prod

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.hazards import Overlaps, buffer_of, stored_buffer
from lowering.host.evaluation.instructions import (
    DynamicView,
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    View,
)
from lowering.host.tuning.expressions.wrapped_loads import PieceCopy
from lowering.host.tuning.instructions.memory_orders import is_contiguous, memory_order
from lowering.host.tuning.instructions.pointwise import is_copy
from lowering.plan.nests.buffer import Buffer

LONG_ROW = 1024
"""Elements of a row from which calls on rows that are apart in memory are as fast as on an array
without gaps, which NumPy goes through at once: a further row takes it 15 ns."""

SMALL_BYTES = 1 << 13
"""Bytes that NumPy copies in the time in which Python indexes an array a few times: 0.3 µs."""


def forward_stores(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions; one that computes a stored value writes it to the buffer.

    The condition: it overwrites nothing that is read later.
    """
    result = list(instructions)
    for position in range(len(result) - 1, -1, -1):
        copy = result[position]
        if copy.function is not numpy_calls.store or not isinstance(copy.inputs[0], Temporary):
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
    if instructions[made].flat and not is_contiguous(target):
        return False
    if isinstance(instructions[made].function, PieceCopy) and _is_small_result(target):
        return False
    if memory_order(value) != memory_order(target):
        # a transposing copy is faster than a transposing call, and so are other readers
        readers = sum(value in each.inputs for each in instructions)
        if readers > 1 or not is_copy(instructions[made]):
            return False
    first = made + 1 if instructions[made].elementwise else made
    later = {buffer_of(r) for i in instructions[first:] for r in i.inputs}
    return not any(b is not None and overlaps(b, target.buffer) for b in later)


def _is_small_result(target: View | DynamicView) -> bool:
    """Whether a copy is faster than to index an array that each call makes."""
    buffer = target.buffer
    return buffer is not None and buffer.space == "output" and target.nbytes <= SMALL_BYTES


def compute_in_place(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions; an elementwise chain that ends in a buffer works in that buffer throughout.

    The condition: nothing else reads or writes the buffer meanwhile.
    """
    last: dict[NumpyValue, int] = {}
    makers: dict[NumpyValue, int] = {}
    reads: dict[Buffer, list[int]] = {}
    writes: dict[Buffer, list[int]] = {}
    aliased: set[NumpyValue] = set()
    for position, each in enumerate(instructions):
        last.update(dict.fromkeys(each.inputs, position))
        for read in filter(None, map(buffer_of, each.inputs)):
            reads.setdefault(read, []).append(position)
        written = stored_buffer(each)
        if written is not None:
            writes.setdefault(written, []).append(position)
        if each.kind == "assign":
            aliased.update(each.inputs)
        if each.output is not None:
            makers[each.output] = position
    places: dict[NumpyValue, View] = {}
    for position in range(len(instructions) - 1, -1, -1):
        each = instructions[position]
        target = places.get(each.output) if isinstance(each.output, Temporary) else each.output
        if not (isinstance(target, View) and each.elementwise) or each.keeps:
            continue
        if not is_contiguous(target) and target.shape[-1] < LONG_ROW:
            continue
        end = makers[target]
        for value in each.inputs:
            if not isinstance(value, Temporary) or last[value] != position or value in aliased:
                continue
            made = makers[value]
            if isinstance(instructions[made].function, PieceCopy):
                continue  # parts of a temporary have fixed addresses
            first = made + 1 if instructions[made].elementwise else made
            busy = _within(reads, first, end + 1, target, overlaps)
            if may_share(value, target) and not (
                busy or _within(writes, first, end, target, overlaps)
            ):
                places[value] = target
                break
    placed = [each.renamed(places) for each in instructions]
    return [each for each in placed if each.output not in each.inputs or not is_copy(each)]


def _within(
    touched: Mapping[Buffer, Sequence[int]], start: int, stop: int, target: View, overlaps: Overlaps
) -> bool:
    """Whether an access from `start` to `stop` overlaps the target."""
    return any(
        overlaps(buffer, target.buffer)
        for buffer, positions in touched.items()
        if bisect_left(positions, start) < bisect_left(positions, stop)
    )


def may_share(one: NumpyValue, other: NumpyValue) -> bool:
    """Whether a call may read one value and write the other in the same memory: they have the same
    shape, dtype and memory order.

    Single numbers may not: NumPy takes three times as long in place.
    """
    if (one.shape, one.dtype) != (other.shape, other.dtype) or prod(one.shape) == 1:
        return False
    return memory_order(one) == memory_order(other)


def reuses_input(instruction: Instruction, value: Temporary) -> bool:
    """Whether the output may take the memory of an input that is read for the last time."""
    output = instruction.output
    assert output is not None
    reversed_ = (r for r in instruction.inputs if isinstance(r, ReversedTemporary))
    return (
        instruction.elementwise
        and may_share(value, output)
        and not any(r.base is value for r in reversed_)
    )
