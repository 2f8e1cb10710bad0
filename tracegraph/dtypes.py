"""Dtypes: those that arrays may have, and what printed programs and messages call them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

BOOL = np.dtype(np.bool_)
bfloat16 = np.dtype(ml_dtypes.bfloat16)

SHORT_NAMES: dict[np.dtype[Any], str] = {
    BOOL: "bool",
    **{np.dtype(f"int{n}"): f"i{n}" for n in (8, 16, 32, 64)},
    **{np.dtype(f"uint{n}"): f"u{n}" for n in (8, 16, 32, 64)},
    np.dtype(np.float16): "f16",
    bfloat16: "bf16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.complex64): "c64",
    np.dtype(np.complex128): "c128",
}
"""Every dtype that arrays may have, with its name in printed programs."""

_INSTANCES = {dtype: dtype for dtype in SHORT_NAMES}
"""For each dtype NumPy's own instance: `ufunc.at` is fast only for that one."""


def canonical_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The supported NumPy dtype that `dtype` names, in native byte order.

    Raises:
        TypeError: the dtype is not one of `SHORT_NAMES` (strings, objects, dates, structures, …).

    >>> canonical_dtype("float32")
    dtype('float32')
    """
    known = _INSTANCES.get(dtype) if isinstance(dtype, np.dtype) else None
    if known is not None:
        return known
    try:
        found = np.dtype(dtype).newbyteorder("=")
    except TypeError as error:  # a name that NumPy does not know, such as a library's own dtype
        raise _unsupported(dtype) from error
    if found not in SHORT_NAMES:
        raise _unsupported(found)
    return _INSTANCES[found]


def _unsupported(dtype: DTypeLike) -> TypeError:
    accepted = ", ".join(str(d) for d in SHORT_NAMES)
    return TypeError(f"dtype {dtype} is not supported; use one of {accepted}")


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is float16 or bfloat16: stored in two bytes, computed in float32."""
    return dtype == np.float16 or dtype == bfloat16


def type_text(dtype: np.dtype[Any], shape: Iterable[int]) -> str:
    """The type of an array in programs and messages; also of one that arrays here cannot have.

    >>> type_text(np.dtype("float32"), (4, 4))
    'f32[4,4]'
    """
    return f"{SHORT_NAMES.get(dtype, str(dtype))}[{','.join(map(str, shape))}]"
