"""Rounding of numbers to what blocks, threads and memory are counted in."""

from __future__ import annotations


def ceil_div(number: int, divisor: int) -> int:
    """The least number of pieces of `divisor` that have all of a number."""
    return -(-number // divisor)


def round_up(number: int, unit: int) -> int:
    """The least multiple of a unit that is not below the number.

    >>> round_up(1000, 256)
    1024
    """
    return ceil_div(number, unit) * unit


def power_of_two(number: int) -> int:
    """The least power of two that is not below the number."""
    return 1 << max(number - 1, 0).bit_length()


def share_of(number: int, parts: int, unit: int) -> int:
    """What each of several parts has of a number, in whole units; the last may have less.

    >>> share_of(1000, 3, 32)
    352
    """
    return round_up(ceil_div(number, parts), unit)
