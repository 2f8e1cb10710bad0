"""Calls on many short rows: done column by column.

NumPy starts an inner loop for each row unless all that a call touches are ranges of memory in one
order. For rows of a few elements (points in space, less their mean) that takes several times as
long as a loop along each column, although its elements do not lie next to each other. Folds along
such rows read a copy in which columns lie together, and those of few enough columns one in which
each is a range; of running folds of many rows, each step is a call on a whole column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from lowering.host import numpy_calls as functions
from lowering.host.instructions import (
    DynamicView,
    Instruction,
    Method,
    NumpyValue,
    Static,
    Temporary,
    innermost,
    is_range,
    memory_order,
)

MOST_COLUMNS, MOST_OUTER, MOST_FOLDED = 4, 8, 16
"""Columns for which it pays; of what is made of rows and columns alone; and of folds."""

LANES, MOST_STEPS = 512, 16
"""Rows from which a running fold pays step by step; along memory, with so many steps at most."""

ROWS, FOLDED_ROWS = 2048, 4096
"""Rows for each column from which it pays: a column costs two microseconds; and those from which it
pays for folds, however many columns there are: with fewer, a copy takes less."""

SHORT_FOLD, MANY_FOLDS = 8, 64
"""Elements of a row, and rows, for which a fold pays that reads a copy."""


def copy_short_folds(instructions: Sequence[Instruction]) -> list[Instruction]:
    """The instructions, with a copy for each fold that takes less time of one."""
    result: list[Instruction] = []
    for each in instructions:
        if each.folded and _pays_to_turn(each.inputs[0], each.folded):
            (value,) = each.inputs
            copy = _turned(value, each.folded)
            made = Instruction("write", functions.store, (value,), copy, elementwise=True)
            result += [made, replace(each, inputs=(copy,))]
        else:
            result.append(each)
    return result


def _pays_to_turn(value: NumpyValue, folded: Sequence[int]) -> bool:
    """Whether rows are folded that are short and many; or what is folded lies across rows that are
    short, but fewer than to go column by column.
    """
    dim, size = innermost(value), prod(value.shape)
    if dim in folded:
        row = prod(value.shape[each] for each in folded)
        return row <= SHORT_FOLD and size >= MANY_FOLDS * row
    if dim is None or value.shape[dim] > MOST_FOLDED:
        return False
    return MANY_FOLDS <= size // value.shape[dim] < FOLDED_ROWS


def _turned(value: NumpyValue, folded: Sequence[int]) -> Temporary:
    """A copy to be: folded along memory if that is not what the value is, or else across it."""
    order = memory_order(value) or range(len(value.shape))
    kept = [dim for dim in order if dim not in folded]
    along = innermost(value) not in folded
    moved = (*kept, *folded) if along else (*folded, *kept)
    in_order = moved == tuple(sorted(moved))
    return Temporary(value.dtype, value.shape, value.dims, None if in_order else moved)


def columnwise(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The instructions, with those on many short rows done column by column."""
    return tuple(map(_by_columns, instructions))


def _by_columns(instruction: Instruction) -> Instruction:
    function, output, inputs = instruction.function, instruction.output, instruction.inputs
    if output is None or any(isinstance(register, DynamicView) for register in (*inputs, output)):
        return instruction  # it may be a range, or none
    if isinstance(function, Method) and function.name == "accumulate":
        (axis, *_) = function.before
        if _runs_many(output, axis):
            return replace(instruction, function=functions.stepwise(function.ufunc, axis))
        return instruction
    folds = isinstance(function, Method)
    dim = innermost(inputs[0] if folds else output)
    if dim is None or not output.shape or output.shape[dim] == 1:
        return instruction
    pays = _folds_many(inputs[0], dim) if folds else _pays(inputs, output, dim)
    if not pays or not (folds or functions.is_pointwise(instruction)):
        return instruction
    return replace(instruction, function=functions.in_columns(function, dim))


def _runs_many(output: NumpyValue, axis: int) -> bool:
    steps = output.shape[axis]
    if innermost(output) == axis and steps > MOST_STEPS:
        return False
    return prod(output.shape) >= LANES * steps


def _folds_many(value: NumpyValue, dim: int) -> bool:
    columns = value.shape[dim]
    return columns <= MOST_FOLDED and prod(value.shape) >= FOLDED_ROWS * columns


def _pays(inputs: Sequence[NumpyValue], output: NumpyValue, dim: int) -> bool:
    full = [register for register in inputs if register.shape == output.shape]
    columns, size = output.shape[dim], prod(output.shape)
    if columns > (MOST_COLUMNS if full else MOST_OUTER) or size < ROWS * columns * columns:
        return False
    order = memory_order(output)
    in_order = (_is_dense(r) and memory_order(r) == order for r in (*full, output))
    many = [register for register in inputs if prod(register.shape) > 1]
    return len(full) < len(many) or not all(in_order)


def _is_dense(register: NumpyValue) -> bool:
    return isinstance(register, Static) or is_range(register)
