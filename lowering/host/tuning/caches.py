"""Set-associative caches: lines at a large power-of-two distance conflict."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

LINE = 64
"""Bytes of a cache line."""


class Cache(NamedTuple):
    """A cache of `sets` sets of `ways` lines; an address determines the set of its line."""

    sets: int
    ways: int

    def lines_kept(self, step: int) -> int:
        """How many lines at multiples of `step` bytes it holds at a time."""
        lines, between = divmod(step, LINE)
        return self.ways * (self.sets if between else self.sets // gcd(lines, self.sets))


FIRST, SECOND = Cache(64, 8), Cache(2048, 8)
"""Caches of 32 KiB and 1 MiB: the smallest of x86-64 servers since 2017."""
