"""Reuse of transposed stores: what is computed from a stored value reads the stored copy.

If the result is stored in the copy's memory order too, that is one call in that order instead of a
call and a second transposing copy. A fold reads whichever of the two has the longer inner loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.instructions import (
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    View,
)
from lowering.host.tuning.instructions.memory_orders import innermost, memory_order, normalized


def read_stored_copies(
    instructions: Sequence[Instruction], overlaps: Overlaps
) -> list[Instruction]:
    """The instructions; a store comes before the users that read its copy."""
    result = list(instructions)
    for store in instructions:
        target = _transposed(store)
        for user in [] if target is None else result:
            assert target is not None
            (value,) = store.inputs
            if _fits(user, value, target, result) or _folds_faster(user, value, target):
                moved = _read_stored(result, store, user, target, overlaps)
                result = result if moved is None else moved
    return result


def _transposed(store: Instruction) -> View | None:
    """The target of a transposing store of a temporary."""
    target = store.output
    if store.function is not numpy_calls.store or not isinstance(target, View):
        return None
    (value,) = store.inputs
    alike = (value.shape, value.dtype) == (target.shape, target.dtype)
    if not alike or not isinstance(value, Temporary | ReversedTemporary):
        return None
    return target if memory_order(value) != memory_order(target) else None


def _fits(
    user: Instruction, value: NumpyValue, target: View, instructions: Iterable[Instruction]
) -> bool:
    """Whether an instruction computes from the value only, and its result is stored like this."""
    if not user.elementwise or not isinstance(user.output, Temporary):
        return False
    if {operand for operand in user.inputs if operand.shape == value.shape} != {value}:
        return False
    readers = [each for each in instructions if user.output in each.inputs]
    stored = _transposed(readers[0]) if len(readers) == 1 else None
    return stored is not None and memory_order(stored) == memory_order(target)


def _folds_faster(user: Instruction, value: NumpyValue, target: View) -> bool:
    """Whether an instruction folds the value, and the copy has longer inner loops."""
    folds = bool(user.folded) and normalized(value, user.folded) is user.inputs[0]
    return folds and _longest_run(target) > _longest_run(value)


def _longest_run(value: NumpyValue) -> int:
    dim = innermost(value)
    return 1 if dim is None else value.shape[dim]


def _read_stored(
    instructions: list[Instruction],
    store: Instruction,
    user: Instruction,
    target: View,
    overlaps: Overlaps,
) -> list[Instruction] | None:
    """The store before its user, which reads the copy; None if another access is in the way."""
    at, used = instructions.index(store), instructions.index(user)
    touched = [each.output for each in instructions[at + 1 : used]]
    for each in instructions[used:at]:
        touched += [*each.inputs, each.output]
    if any(_overlaps_target(value, target, overlaps) for value in touched):
        return None
    output = user.output
    assert output is not None
    moved = Temporary(output.dtype, output.shape, output.dims, memory_order(target))
    made = moved if user.elementwise else output
    inputs = (target,) if user.folded else user.renamed({store.inputs[0]: target}).inputs
    result = list[Instruction]()
    for each in instructions:
        if each is user:
            result += [store] if at > used else []
            result.append(replace(user, inputs=inputs, output=made))
        elif made is moved and output in each.inputs:
            result.append(replace(each, inputs=(moved,)))
        elif each is not store or at < used:
            result.append(each)
    return result


def _overlaps_target(value: NumpyValue | None, target: View, overlaps: Overlaps) -> bool:
    buffer = getattr(value, "buffer", None)
    return buffer is not None and overlaps(buffer, target.buffer)
