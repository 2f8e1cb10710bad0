"""LLVM types of dtypes, and literals of constants.

A value is one register for each of its parts: a complex number has two. A bool is an `i1` in a
register and a byte in memory; 16-bit floats are their bits in both.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tracegraph.dtypes import is_half
from tracegraph.ir.scalar import Const

Parts = tuple[str, ...]
"""The registers of a value, or literals, one for each part."""

_REAL = {4: "float", 8: "double"}


@cache
def memory_parts(dtype: np.dtype[Any]) -> Parts:
    """The types that the parts of an element have in memory.

    >>> memory_parts(np.dtype(bool)), memory_parts(np.dtype(np.complex64))
    (('i8',), ('float', 'float'))
    """
    if dtype.kind == "b":
        return ("i8",)
    if dtype.kind == "c":
        return (_REAL[dtype.itemsize // 2],) * 2
    if dtype.kind in "iu" or is_half(dtype):
        return (f"i{8 * dtype.itemsize}",)
    return (_REAL[dtype.itemsize],)


@cache
def register_parts(dtype: np.dtype[Any]) -> Parts:
    """The types that the parts of a value have in registers.

    >>> register_parts(np.dtype(bool))
    ('i1',)
    """
    return ("i1",) if dtype.kind == "b" else memory_parts(dtype)


@cache
def element_type(dtype: np.dtype[Any]) -> str:
    """The type of an element in memory: a complex number is a structure.

    >>> element_type(np.dtype(np.complex128))
    '{ double, double }'
    """
    parts = memory_parts(dtype)
    return parts[0] if len(parts) == 1 else "{ " + ", ".join(parts) + " }"


def literal(constant: Const) -> Parts:
    """The literals of a constant."""
    if constant.bits:
        return _literal_of_bits(constant.bits, constant.dtype)
    return number(constant.value, constant.dtype)


def number(value: Any, dtype: np.dtype[Any]) -> Parts:
    """The literals of a number as a value of a dtype.

    >>> number(-1, np.dtype(np.uint8)), number(1.5, np.dtype(np.float32))
    (('-1',), ('0x3FF8000000000000',))
    """
    with np.errstate(all="ignore"):
        return _literal_of_bits(np.asarray(value).astype(dtype).tobytes(), dtype)


@cache
def _literal_of_bits(bits: bytes, dtype: np.dtype[Any]) -> Parts:
    if dtype.kind == "b":
        return ("true",) if any(bits) else ("false",)
    if dtype.kind in "iu" or is_half(dtype):
        signed = np.dtype(f"i{dtype.itemsize}")
        return (str(np.frombuffer(bits, signed).item()),)
    size = dtype.itemsize // len(memory_parts(dtype))
    return tuple(_real_literal(part) for part in np.frombuffer(bits, f"f{size}"))


def _real_literal(value: Any) -> str:
    """LLVM writes floats of all sizes as the bits of a double."""
    return f"0x{np.float64(value).view(np.uint64).item():016X}"
