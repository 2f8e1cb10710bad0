"""4K aliasing: copies whose target is just after their source, modulo the page size.

Many processors compare only the low 12 bits of addresses when they check whether a load depends on
an earlier store. There, a copy to 1 to 63 bytes past its source, modulo 4 KiB, takes up to ten
times as long. A bitwise OR of the source with itself does not.
"""

from __future__ import annotations

import numpy as np

from lowering.host.arena import Array

NEAR, PAGE = 64, 1 << 12
"""Bytes of a cache line, and the distance at which addresses alias."""

COPIED = range(1 << 11, 1 << 20)
"""Bytes of copies that are slow. Shorter copies lose less than the other call costs (0.8 µs more);
longer ones are limited by memory."""

_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def is_aliased(value: Array, out: Array) -> bool:
    """Whether a copy of one contiguous array to another suffers from aliasing."""
    ranges = value.flags.c_contiguous and out.flags.c_contiguous and value.shape == out.shape
    if not ranges or value.dtype != out.dtype or value.itemsize not in _BITS:
        return False
    return value.nbytes in COPIED and 0 < (out.ctypes.data - value.ctypes.data) % PAGE < NEAR


def bits(array: Array) -> Array:
    """The elements as unsigned integers."""
    return array.view(_BITS[array.itemsize])
