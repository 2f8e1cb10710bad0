"""Making Arrays of other arrays, and moving them between devices."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.dtypes import canonical_dtype
from tracegraph.ir.types import ArrayType
from tracegraph.staging.leaf_types import classify
from tracegraph.tracing.tracer import Tracer

if TYPE_CHECKING:
    from tracegraph.staging.jitted import Jitted


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
    if device is not None and canonical_device(device) != array.device:
        array = _move(array, canonical_device(device))
    return array


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


def canonical_device(device: str) -> str:
    """The full name of a device: ``"cuda"`` is ``"cuda:0"``."""
    return f"{device}:0" if device == "cuda" else device


def _as_array(x: Any) -> Array:
    if isinstance(x, Array):
        return x
    key, data = classify(np.asarray(x) if isinstance(x, (list, tuple)) else x)
    type_ = ArrayType(*key)
    if isinstance(data, (np.ndarray, bool, int, float, complex)):
        return Array(np.array(data, type_.dtype, order="C"))
    return _copy_to(data, None)


def _move(array: Array, device: str) -> Array:
    if device == "host":
        return Array(array.__array__())
    in_host_memory = isinstance(array.data, np.ndarray) and not array.weak
    return _copy_to(array.data if in_host_memory else array, device)


def _copy_to(x: Any, device: str | None) -> Array:
    copied: Array = _copier(device, not isinstance(x, Array)).launch(x)
    return copied


def _identity(x: Any) -> Any:
    return x


@lru_cache(maxsize=64)
def _copier(device: str | None, donating: bool) -> Jitted:
    """The identity, compiled: outputs never alias inputs, so it is a copy.

    Donated memory that is not tracegraph's own is copied, too: straight to where the result is.
    """
    from tracegraph.staging.jit import jit  # built on eager dispatch, which is built on Array

    return jit(_identity, donate_argnums=0 if donating else (), device=device)
