"""What the caches of a processor keep: lines that lie far apart may push each other out."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

LINE = 64
"""Bytes of a line."""


class Cache(NamedTuple):
    """A cache of `sets` of lines; each line can be in one of them, which holds so many `ways`."""

    sets: int
    ways: int

    def lines_kept(self, step: int) -> int:
        """Lines at multiples of so many bytes that it holds at a time."""
        lines, between = divmod(step, LINE)
        return self.ways * (self.sets if between else self.sets // gcd(lines, self.sets))


FIRST, SECOND = Cache(64, 8), Cache(2048, 8)
"""Of 32 KiB and of 1 MiB."""
