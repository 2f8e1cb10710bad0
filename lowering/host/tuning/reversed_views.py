"""Views that calls read backwards: copied once where more than one call would read them.

NumPy's loops are vectorised for elements that follow each other; those of a reversed view take up
to ten times as long. A fold of all that lies along an axis reads it forwards whichever way it is
seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from lowering.host import numpy_calls as functions
from lowering.host.instructions import (
    DynamicView,
    Instruction,
    ReversedTemporary,
    Temporary,
    View,
    backwards,
    forwards,
    memory_order,
)
from lowering.host.tuning.store_forwarding import Overlaps, stored_buffer

FEWEST = 2
"""Calls that read a view for which a copy pays; one, of those that run `forwards`."""

LEAST_ELEMENTS = 256
"""Elements of such a view: with fewer, a call takes longer than all of them."""


def copy_reversed(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions, with a copy of each view that several of them read backwards.

    Not of one that changes from one of them to the next.
    """
    readers: dict[View | DynamicView | ReversedTemporary, list[int]] = {}
    result = list(map(_folding_forwards, instructions))
    for position, each in enumerate(result):
        for register in dict.fromkeys(each.inputs):
            if isinstance(register, View | DynamicView | ReversedTemporary) and _is_read_backwards(
                register, each
            ):
                readers.setdefault(register, []).append(position)
    copies: list[tuple[int, Instruction]] = []
    for view, positions in readers.items():
        between = instructions[positions[0] : positions[-1]]
        written = [stored_buffer(each) for each in between]
        source = None if isinstance(view, ReversedTemporary) else view.buffer
        if source is not None and any(
            buffer is not None and overlaps(buffer, source) for buffer in written
        ):
            continue
        if len(positions) < FEWEST and not instructions[positions[0]].forwards:
            continue
        outputs = [result[p].output for p in positions]
        orders = {memory_order(output) for output in outputs if output is not None}
        order = orders.pop() if len(orders) == 1 else memory_order(view)
        copy = Temporary(view.dtype, view.shape, view.dims, order)
        for position in positions:
            result[position] = result[position].renamed({view: copy})
        made = Instruction("write", functions.store, (view,), copy, elementwise=True)
        copies.append((positions[0], made))
    for position, made in sorted(copies, key=lambda copy: -copy[0]):
        result.insert(position, made)
    return result


def _folding_forwards(instruction: Instruction) -> Instruction:
    """The instruction, reading what it folds from the first element to the last."""
    if not instruction.folded:
        return instruction
    (value,) = instruction.inputs
    turned = forwards(value, instruction.folded)
    return instruction if turned is value else replace(instruction, inputs=(turned,))


def _is_read_backwards(view: View | DynamicView | ReversedTemporary, reader: Instruction) -> bool:
    if reader.forwards and backwards(view):
        return True
    if prod(view.shape) < LEAST_ELEMENTS or reader.output is None or reader.kind != "write":
        return False
    called = isinstance(reader.function, np.ufunc) or functions.is_pointwise(reader)
    return called and bool(backwards(view))
