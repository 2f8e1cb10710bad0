"""Write-after-read hazards between the stores of a nest."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.host.code import Overlaps
from lowering.host.interpreter import numpy_calls
from lowering.host.interpreter.instructions import (
    DynamicView,
    Instruction,
    NumpyValue,
    Temporary,
    View,
)
from lowering.plan.nests.buffer import Buffer


def copy_overwritten(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions; what a store reads after an earlier store overwrote it is copied first.

    A nest loads everything before it stores. On the host a load may be a view of its buffer, which
    is read when the store runs.
    """
    result: list[Instruction] = []
    written: list[Buffer] = []
    first = 0  # the position of the first store
    for instruction in instructions:
        stored = stored_buffer(instruction)
        if stored is None:
            result.append(instruction)
            continue
        first = first if written else len(result)
        for value in instruction.inputs:
            buffer = buffer_of(value)
            if buffer is not None and any(overlaps(buffer, other) for other in written):
                copy = Temporary(value.dtype, value.shape, value.dims)
                made = Instruction("write", numpy_calls.store, (value,), copy)
                result.insert(first, made)
                instruction = instruction.reading({value: copy})
        result.append(instruction)
        written.append(stored)
    return result


def stored_buffer(instruction: Instruction) -> Buffer | None:
    """The buffer that an instruction writes to."""
    return buffer_of(instruction.output) if instruction.kind == "write" else None


def buffer_of(value: NumpyValue | None) -> Buffer | None:
    """The buffer that a value is a window of."""
    return value.buffer if isinstance(value, View | DynamicView) else None
