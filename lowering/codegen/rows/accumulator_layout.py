"""Accumulator layout: the components of accumulators, and their sizes in each kind of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.codegen.offsets import offsets_of
from lowering.plan.nests.kernel import Accumulator
from tracegraph.dtypes import is_half
from tracegraph.ir.scalar import INDEX

TICKET_BYTES = 8  # of the counter that numbers the blocks of a split loop
TICKET_SHARED_BYTES = 16  # of shared memory, to broadcast a ticket to the threads of a block


def component_dtypes(accumulator: Accumulator) -> tuple[np.dtype[Any], ...]:
    """The dtypes of an accumulator's components: a value, and with `arg` its position."""
    dtype = accumulator.value.dtype
    value = np.dtype(np.float32) if is_half(dtype) else dtype
    return (value, INDEX) if accumulator.arg else (value,)


def component_dtypes_of(accumulators: Sequence[Accumulator]) -> list[np.dtype[Any]]:
    """The dtypes of the components of several accumulators."""
    return [dtype for accumulator in accumulators for dtype in component_dtypes(accumulator)]


def accumulator_bytes(accumulators: Sequence[Accumulator]) -> int:
    """Bytes of all accumulators of a reduction in each thread."""
    return sum(dtype.itemsize for dtype in component_dtypes_of(accumulators))


def partial_bytes(nbytes: int) -> int:
    """The bytes of a published value of `nbytes`: it carries its epoch; of 16 bytes, each half
    does.

    >>> [partial_bytes(nbytes) for nbytes in (2, 4, 8, 16)]
    [8, 8, 16, 32]
    """
    return max(2 * nbytes, 8)


def partial_offsets(accumulators: Sequence[Accumulator], slots: int, tickets: int) -> list[int]:
    """The offsets in a workspace of each component's partials, after the tickets, and their end."""
    sizes = [slots * partial_bytes(d.itemsize) for d in component_dtypes_of(accumulators)]
    return offsets_of([tickets * TICKET_BYTES, *sizes])[1:]
