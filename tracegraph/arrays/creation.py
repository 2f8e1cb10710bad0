"""Creation of Arrays from other arrays, and moves between devices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.arrays.device_calls import copy
from tracegraph.arrays.leaf_types import classify
from tracegraph.dtypes import canonical_dtype
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import ArrayType
from tracegraph.tracing.tracer import Tracer


@entry_point
def asarray(x: Any, dtype: DTypeLike | None = None, *, device: str | None = None) -> Any:
    """An Array of the elements of `x`.

    Args:
        x: an array of any library, a number, or nested lists of numbers. Memory that others may
            write to is copied. A traced value stays one.
        dtype: the dtype to convert to, as NumPy converts with casting="unsafe".
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, the elements stay where they
            are.

    Raises:
        TypeError: not an array or a number, or of a dtype that arrays cannot have.
        ValueError: there is no such device.

    >>> asarray([1, 2], "float32")
    Array([1., 2.], dtype=float32)
    """
    if isinstance(x, Tracer):
        return x if dtype is None else x.astype(dtype)
    array = _as_array(x)
    if dtype is not None and canonical_dtype(dtype) != array.dtype:
        array = array.astype(dtype)
    return array if device is None else array.to_device(device)


@entry_point
def from_dlpack(x: Any) -> Any:
    """An Array of the elements of any object with ``__dlpack__``, where those are.

    The elements are copied, since the exporter may go on writing to them.

    Raises:
        TypeError: no DLPack exporter, or a dtype that arrays cannot have.

    >>> from_dlpack(np.arange(3.0))
    Array([0., 1., 2.], dtype=float64)
    """
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__, got {type(x).__qualname__}")
    return asarray(x)


def _as_array(x: Any) -> Array:
    if isinstance(x, Array):
        return x
    key, data = classify(np.asarray(x) if isinstance(x, (list, tuple)) else x)
    type_ = ArrayType(*key)
    if isinstance(data, (np.ndarray, bool, int, float, complex)):
        return Array(np.array(data, type_.dtype, order="C"))
    copied: Array = copy(data, None, donate=True)
    return copied
