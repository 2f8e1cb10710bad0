"""Negative-stride normalisation of views: one copy in memory order serves several readers.

NumPy vectorises its loops for positive strides; on a reversed view they take up to ten times as
long. A fold over a whole axis needs no copy: it reads the axis in memory order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.hazards import Overlaps, stored_buffer
from lowering.host.evaluation.instructions import (
    DynamicView,
    Instruction,
    ReversedTemporary,
    Temporary,
    View,
)
from lowering.host.tuning.instructions.memory_orders import memory_order, negative_dims, normalized
from lowering.host.tuning.instructions.pointwise import is_pointwise
from lowering.host.tuning.instructions.reversed_chains import (
    LEAST_ELEMENTS,
    count_reversals,
    normalize_chains,
)

FEWEST = 2
"""Least readers of a view that is copied; one suffices if it needs `positive_strides`."""


def normalize_strides(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions with fewer calls that read and write in opposite directions.

    Chains are normalised if that leaves fewer of these calls.
    """
    ways = filter(None, (instructions, normalize_chains(instructions)))
    copied = [copy_reversed(each, overlaps) for each in ways]
    return min(copied, key=count_reversals, default=[])


def copy_reversed(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions with a copy of each reversed view that several of them read.

    A view that is written between its readers stays.
    """
    readers: dict[View | DynamicView | ReversedTemporary, list[int]] = {}
    result = list(map(_folding_in_order, instructions))
    for position, each in enumerate(result):
        for value in dict.fromkeys(each.inputs):
            if isinstance(value, View | DynamicView | ReversedTemporary) and _reads_reversed(
                value, each
            ):
                readers.setdefault(value, []).append(position)
    copies: list[tuple[int, Instruction]] = []
    for view, positions in readers.items():
        between = instructions[positions[0] : positions[-1]]
        written = [stored_buffer(each) for each in between]
        source = None if isinstance(view, ReversedTemporary) else view.buffer
        if source is not None and any(
            buffer is not None and overlaps(buffer, source) for buffer in written
        ):
            continue
        if len(positions) < FEWEST and not instructions[positions[0]].positive_strides:
            continue
        outputs = [result[p].output for p in positions]
        orders = {memory_order(output) for output in outputs if output is not None}
        order = orders.pop() if len(orders) == 1 else memory_order(view)
        copy = Temporary(view.dtype, view.shape, view.dims, order)
        for position in positions:
            result[position] = result[position].renamed({view: copy})
        made = Instruction("write", numpy_calls.store, (view,), copy, elementwise=True)
        copies.append((positions[0], made))
    for position, made in sorted(copies, key=lambda copy: -copy[0]):
        result.insert(position, made)
    return result


def _folding_in_order(instruction: Instruction) -> Instruction:
    """The instruction; a fold reads its operand with positive strides."""
    if not instruction.folded:
        return instruction
    (value,) = instruction.inputs
    found = normalized(value, instruction.folded)
    return instruction if found is value else replace(instruction, inputs=(found,))


def _reads_reversed(view: View | DynamicView | ReversedTemporary, reader: Instruction) -> bool:
    if reader.positive_strides and negative_dims(view):
        return True
    if prod(view.shape) < LEAST_ELEMENTS or reader.output is None or reader.kind != "write":
        return False
    called = isinstance(reader.function, np.ufunc) or is_pointwise(reader)
    return called and bool(negative_dims(view))
