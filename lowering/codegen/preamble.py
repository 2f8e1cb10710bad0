"""The CUDA C++ that every unit begins with, and the C++ types of dtypes."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from tracegraph.dtypes import BOOL, SHORT_NAMES, bfloat16, is_half

_C_TYPES: dict[np.dtype[Any], str] = {
    BOOL: "bool",
    np.dtype(np.float16): "tg_half",
    bfloat16: "tg_bfloat16",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.complex64): "tg_c64",
    np.dtype(np.complex128): "tg_c128",
}


def c_type(dtype: np.dtype[Any]) -> str:
    """The C++ type that an element of a dtype has in memory.

    >>> c_type(np.dtype(np.int16)), c_type(np.dtype(np.float16))
    ('tg_i16', 'tg_half')
    """
    return _C_TYPES.get(dtype) or f"tg_{SHORT_NAMES[dtype]}"


def value_type(dtype: np.dtype[Any]) -> str:
    """The C++ type that scalar expressions are computed in: float for 16-bit floats, else `c_type`.

    >>> value_type(np.dtype(np.float16))
    'float'
    """
    return "float" if is_half(dtype) else c_type(dtype)


def kind(dtype: np.dtype[Any]) -> str:
    """The key of a dtype in `Elementwise.c`: 'b', 'i', 'u', 'f' (bfloat16 too) or 'c'.

    >>> kind(bfloat16)
    'f'
    """
    return "f" if dtype == bfloat16 else dtype.kind


_PARTS = (
    "preamble.cuh",
    "half.cuh",
    "complex.cuh",
    "special.cuh",
    "random.cuh",
    "cluster.cuh",
    "partials.cuh",
    "atomics.cuh",
    "dependents.cuh",
    "prefetch.cuh",
    "persistent.cuh",
)


@cache
def preamble() -> str:
    """The files of `device`, joined. All names begin with ``tg_``."""
    package = files("lowering.codegen").joinpath("device")
    return "\n".join(package.joinpath(name).read_text("utf-8") for name in _PARTS)
