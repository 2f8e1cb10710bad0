"""Offsets of consecutive arrays that are aligned for vector accesses."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from lowering.plan.nests.rounding import round_up
from lowering.plan.target.hardware import VECTOR_BYTES


def offsets_of(sizes: Iterable[int]) -> list[int]:
    """The begin of each array, given their sizes in bytes, and the padded end of the last.

    >>> offsets_of([4, 40])
    [0, 16, 64]
    """
    padded = (round_up(nbytes, VECTOR_BYTES) for nbytes in sizes)
    return list(accumulate(padded, initial=0))
