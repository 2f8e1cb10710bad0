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

__all__ = ["asarray", "from_dlpack"]


@entry_point
def asarray(
    x: Any,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
    copy: bool | None = None,
) -> Array:
    """An Array of the elements of `x`.

    Args:
        x: an array of any library, a number, or nested lists of numbers. Memory that others may
            write to is copied. A traced value stays one.
        dtype: the dtype to convert to, as NumPy converts with casting="unsafe".
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``; without it, the elements stay where they
            are.
        copy: False to return an Array as it is; True to copy an Array as well, so that the result
            stays valid when `x` is donated. Other arrays are always copied.

    Raises:
        TypeError: not an array or a number, or of a dtype that arrays cannot have.
        ValueError: there is no such device, or `copy` is False and a copy is needed.

    >>> asarray([1, 2], "float32")
    Array([1., 2.], dtype=float32)
    """
    if isinstance(x, Tracer):
        array: Any = x if dtype is None else x.astype(dtype, copy=False)
    else:
        array = _named(x)
        if dtype is not None and canonical_dtype(dtype) != array.dtype:
            array = array.astype(dtype)
    if device is not None:
        array = array.to_device(device)
    if copy and array is x:
        return x.copy()  # type: ignore[no-any-return]
    if copy is False and array is not x:
        raise ValueError(
            f"copy=False, but an Array of dtype {array.dtype} on {array.device} can only be made "
            f"of this {type(x).__qualname__} by a copy; pass copy=None"
        )
    return array  # type: ignore[no-any-return]


@entry_point
def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """An Array of the elements of any object with ``__dlpack__``, where those are.

    The elements are copied, since the exporter may go on writing to them; those of an Array are
    not. `device` and `copy` are those of `tracegraph.asarray`.

    Shape: that of `x`.
    Dtype: that of `x`.

    Raises:
        TypeError: no DLPack exporter, or a dtype that arrays cannot have.
        ValueError: there is no such device, or `copy` is False and a copy is needed.

    >>> tracegraph.from_dlpack(np.arange(3.0))
    Array([0., 1., 2.], dtype=float64)
    """
    if not isinstance(x, Tracer) and not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__, got {type(x).__qualname__}")
    return asarray(x, device=device, copy=copy)


def array_of(x: Any) -> Array:
    """An Array of the elements of `x`, where those are.

    Raises:
        TypeError: not an array or a number, which the message says of it: "is of type str"; or of a
            dtype that arrays cannot have.
    """
    if type(x) is Array:
        return x
    key, data = classify(np.asarray(x) if isinstance(x, (list, tuple)) else x)
    type_ = ArrayType(*key)
    if isinstance(data, (np.ndarray, bool, int, float, complex)):
        return Array(np.array(data, type_.dtype, order="C"))
    copied: Array = copy(data, None, donate=True)
    return copied


def _named(x: Any) -> Array:
    try:
        return array_of(x)
    except TypeError as error:
        if type(error) is not TypeError:
            raise
        problem = str(error)
        if problem.startswith("is of type "):
            instead = "; pass an array, a number, or nested lists of numbers"
            problem = f"x {problem}{'' if ';' in problem else instead}"
        raise TypeError(problem) from error.__cause__
