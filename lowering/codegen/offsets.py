"""Offsets: where arrays that follow each other begin, such that they may be accessed by vectors."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from lowering.fusion.access_patterns import VECTOR_BYTES
from lowering.plan.rounding import round_up


def offsets_of(sizes: Iterable[int]) -> list[int]:
    """Where arrays of so many bytes begin, and where the last ends, with what pads it.

    >>> offsets_of([4, 40])
    [0, 16, 64]
    """
    padded = (round_up(nbytes, VECTOR_BYTES) for nbytes in sizes)
    return list(accumulate(padded, initial=0))
