"""C++ literals that keep the exact value and dtype of a constant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lowering.codegen.preamble import c_type
from tracegraph.dtypes import is_half
from tracegraph.ir.scalar import Const

_FLOAT, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def constant(const: Const) -> str:
    """The C++ literal of a constant, with exactly its dtype and value.

    >>> from tracegraph.ir.scalar import const
    >>> constant(const(0.1, np.dtype(np.float64))), constant(const(-7, np.dtype(np.int64)))
    ('0x1.999999999999ap-4', '(-7ll)')
    """
    value, dtype = const.value, const.dtype
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return _integer(int(value.real), dtype)
    if dtype.kind == "c":
        part = _FLOAT if dtype.itemsize == _DOUBLE.itemsize else _DOUBLE
        return f"{c_type(dtype)}({_floating(value.real, part)}, {_floating(value.imag, part)})"
    if is_half(dtype):
        return f"{c_type(dtype)}{{{int(np.array(value.real, dtype).view(np.uint16)):#06x}}}"
    return _floating(value.real, dtype)


def wide_constant(const: Const) -> str:
    """The C++ literal of a constant in the type that its dtype is computed in.

    >>> from tracegraph.ir.scalar import const
    >>> wide_constant(const(1.5, np.dtype(np.float16)))
    '0x1.8000000000000p+0f'
    """
    return _floating(const.value.real, _FLOAT) if is_half(const.dtype) else constant(const)


def _integer(value: int, dtype: np.dtype[Any]) -> str:
    unsigned = "u" if dtype.kind == "u" else ""
    if dtype.itemsize < 4:
        return f"{c_type(dtype)}({value})"  # C++ has no literals of these types
    suffix = unsigned + ("ll" if dtype.itemsize == 8 else "")
    if value >= 0:
        return f"{value}{suffix}"
    if value == np.iinfo(dtype).min:
        return f"({value + 1}{suffix} - 1)"  # C++ reads -N as the negation of N, which overflows
    return f"({value}{suffix})"


def _floating(value: float, dtype: np.dtype[Any]) -> str:
    single = dtype == _FLOAT
    if not math.isfinite(value):
        bits = np.array(value, dtype).view(np.uint32 if single else np.uint64)
        return f"tg_bits<{c_type(dtype)}>({int(bits):#x}{'u' if single else 'ull'})"
    text = value.hex() + ("f" if single else "")
    return f"({text})" if text.startswith("-") else text
