"""Short rows: calls on many short rows run column by column.

NumPy starts an inner loop for each row, unless all arrays of a call are contiguous in one memory
order. For rows of a few elements (points in space minus their mean), a strided loop along each
column is several times as fast. Folds along such rows read a transposed copy. Running folds of many
rows take one call per step, on a whole column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.instructions import (
    DynamicView,
    Instruction,
    NumpyValue,
    Static,
    Temporary,
    UfuncMethod,
)
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.tuning.instructions.branch_free_selection import where as select
from lowering.host.tuning.instructions.columnwise_calls import in_columns, stepwise
from lowering.host.tuning.instructions.memory_orders import innermost, is_contiguous, memory_order
from lowering.host.tuning.instructions.pointwise import is_pointwise

MOST_COLUMNS, MOST_OUTER, MOST_FOLDED = 4, 8, 16
"""Most columns: of calls with an operand of the output's shape, of outer products, and of folds.
Measured at 2,000 rows of float32: x - row takes 10 µs by rows; by columns 8 if there are 4, and 13
if there are 6. An outer product of 8 columns takes 17 and 15; a maximum over rows of 12, 61 and
29."""

LANES, MOST_STEPS = 512, 16
"""Least rows of a running fold that runs step by step; and most steps along the innermost axis: a
step is one call, of 0.3 µs."""

ROWS, FOLDED_ROWS = 2048, 4096
"""Least rows per column: a column costs two microseconds. And least rows of a fold by columns: with
fewer, a transposed copy is faster."""

SHORT_FOLD, MANY_FOLDS = 8, 64
"""Most elements of a row, and least rows, of a fold that reads a transposed copy. A sum of 64 rows
of 8 float32 takes 2.1 µs, or 1.6 with the copy; of 5,000 rows 89 and 18."""


def copy_short_folds(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions, with a transposed copy for each fold that is faster on one."""
    result: list[Instruction] = []
    for each in instructions:
        if each.folded and _pays_to_transpose(each.inputs[0], each.folded):
            (value,) = each.inputs
            copy = _transposed(value, each.folded)
            made = Instruction("write", numpy_calls.store, (value,), copy, elementwise=True)
            result += [made, replace(each, inputs=(copy,))]
        else:
            result.append(each)
    return result


def _pays_to_transpose(value: NumpyValue, folded: Sequence[int]) -> bool:
    """Whether a fold runs along many short rows, or across short rows that are too few for calls by
    column.
    """
    dim, size = innermost(value), prod(value.shape)
    if dim in folded:
        row = prod(value.shape[each] for each in folded)
        return row <= SHORT_FOLD and size >= MANY_FOLDS * row
    if dim is None or value.shape[dim] > MOST_FOLDED:
        return False
    return MANY_FOLDS <= size // value.shape[dim] < FOLDED_ROWS


def _transposed(value: NumpyValue, folded: Sequence[int]) -> Temporary:
    """The copy that a fold reads: the folded axes are innermost if they are not in the value."""
    order = memory_order(value) or range(len(value.shape))
    kept = [dim for dim in order if dim not in folded]
    along = innermost(value) not in folded
    permuted = (*kept, *folded) if along else (*folded, *kept)
    in_order = permuted == tuple(sorted(permuted))
    return Temporary(value.dtype, value.shape, value.dims, None if in_order else permuted)


def columnwise(program: NestProgram, overlaps: Overlaps) -> NestProgram:
    """The program, with calls on many short rows split into columns."""
    return program.with_instructions(list(map(_by_columns, program.instructions)))


def _by_columns(instruction: Instruction) -> Instruction:
    function, output, inputs = instruction.function, instruction.output, instruction.inputs
    if output is None or any(isinstance(value, DynamicView) for value in (*inputs, output)):
        return instruction  # its strides are not known
    if isinstance(function, UfuncMethod) and function.name == "accumulate":
        (axis, *_) = function.before
        if _has_many_runs(output, axis):
            return replace(instruction, function=stepwise(function.ufunc, axis))
        return instruction
    folds = isinstance(function, UfuncMethod)
    dim = innermost(inputs[0] if folds else output)
    if dim is None or not output.shape or output.shape[dim] == 1:
        return instruction
    pays = _has_many_rows(inputs[0], dim) if folds else _pays(inputs, output, dim)
    if not pays or not (folds or is_pointwise(instruction) or function is select):
        return instruction
    return replace(instruction, function=in_columns(function, dim))


def _has_many_runs(output: NumpyValue, axis: int) -> bool:
    steps = output.shape[axis]
    if innermost(output) == axis and steps > MOST_STEPS:
        return False
    return prod(output.shape) >= LANES * steps


def _has_many_rows(value: NumpyValue, dim: int) -> bool:
    columns = value.shape[dim]
    return columns <= MOST_FOLDED and prod(value.shape) >= FOLDED_ROWS * columns


def _pays(inputs: Sequence[NumpyValue], output: NumpyValue, dim: int) -> bool:
    full = [value for value in inputs if value.shape == output.shape]
    columns, size = output.shape[dim], prod(output.shape)
    if columns > (MOST_COLUMNS if full else MOST_OUTER) or size < ROWS * columns * columns:
        return False
    order = memory_order(output)
    in_order = (_is_dense(r) and memory_order(r) == order for r in (*full, output))
    many = [value for value in inputs if prod(value.shape) > 1]
    return len(full) < len(many) or not all(in_order)


def _is_dense(value: NumpyValue) -> bool:
    return isinstance(value, Static) or is_contiguous(value)
