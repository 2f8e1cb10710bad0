"""Cells: what accumulators hold, in registers, in shared memory, and for other blocks to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.codegen.offsets import offsets_of
from lowering.codegen.preamble import is_half
from lowering.plan.kernel import Accumulator
from tracegraph.ir.scalar import INDEX

TICKET_BYTES = 8  # of what numbers the blocks that share a loop
TICKET_SHARED_BYTES = 16  # of shared memory, from which all threads of a block learn its ticket


def component_dtypes(accumulator: Accumulator) -> tuple[np.dtype[Any], ...]:
    """The dtypes of what an accumulator holds: a value, and with `arg` its position."""
    dtype = accumulator.value.dtype
    value = np.dtype(np.float32) if is_half(dtype) else dtype
    return (value, INDEX) if accumulator.arg else (value,)


def component_dtypes_of(accumulators: Sequence[Accumulator]) -> list[np.dtype[Any]]:
    """The dtypes of what several accumulators hold."""
    return [cell for accumulator in accumulators for cell in component_dtypes(accumulator)]


def accumulator_bytes(accumulators: Sequence[Accumulator]) -> int:
    """Bytes that all accumulators of a reduction hold, in each thread."""
    return sum(cell.itemsize for cell in component_dtypes_of(accumulators))


def partial_bytes(nbytes: int) -> int:
    """The bytes of a value of so many with its round, or, of 16, of two halves with a round each.

    >>> [partial_bytes(nbytes) for nbytes in (2, 4, 8, 16)]
    [8, 8, 16, 32]
    """
    return max(2 * nbytes, 8)


def partial_offsets(accumulators: Sequence[Accumulator], slots: int, tickets: int) -> list[int]:
    """Where in a workspace each cell's results begin, after the tickets, and where the last end."""
    told = [slots * partial_bytes(cell.itemsize) for cell in component_dtypes_of(accumulators)]
    return offsets_of([tickets * TICKET_BYTES, *told])[1:]
