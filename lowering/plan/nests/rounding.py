"""Rounding of sizes to whole blocks, threads and bytes."""

from __future__ import annotations


def ceil_div(number: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-number // divisor)


def round_up(number: int, unit: int) -> int:
    """The number, rounded up to a multiple of the unit.

    >>> round_up(1000, 256)
    1024
    """
    return ceil_div(number, unit) * unit


def power_of_two(number: int) -> int:
    """The number, rounded up to a power of two."""
    return 1 << max(number - 1, 0).bit_length()


def share_of(number: int, parts: int, unit: int) -> int:
    """The size of each of several equal parts, in whole units; the last may be smaller.

    >>> share_of(1000, 3, 32)
    352
    """
    return round_up(ceil_div(number, parts), unit)
