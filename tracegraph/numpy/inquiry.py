"""Shapes and dtypes of arrays, and what follows from them: they are known while tracing."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.typing import DTypeLike

from tracegraph.dtypes import bfloat16
from tracegraph.ir.types import result_type as common_dtype
from tracegraph.ir.types import type_of
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.dispatching.output import Casting
from tracegraph.tracing.operators import ArrayOperators

__all__ = [
    "can_cast", "common_type", "diag_indices_from", "finfo", "iinfo", "iscomplexobj", "isrealobj",
    "ndim", "result_type", "shape", "size", "tril_indices_from", "triu_indices_from",
]  # fmt: skip

NDArray = np.ndarray[Any, Any]


@numpy_function
def shape(a: Any) -> tuple[int, ...]:
    """The extents.

    >>> tnp.shape([[1, 2], [3, 4]])
    (2, 2)
    """
    return tuple(as_array(a).shape)


@numpy_function
def ndim(a: Any) -> int:
    """The number of axes.

    >>> tnp.ndim([[1, 2], [3, 4]])
    2
    """
    return len(as_array(a).shape)


@numpy_function
def size(a: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """The number of elements, of all or along one or several axes.

    Raises:
        AxisError: an axis is out of range.
        ValueError: an axis is named twice.

    >>> tnp.size([[1, 2], [3, 4]], 0)
    2
    """
    a = as_array(a)
    axes = range(a.ndim) if axis is None else normalize_axis_tuple(axis, a.ndim)
    return math.prod(a.shape[k] for k in axes)


@numpy_function
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The common dtype of arrays, dtypes and Python scalars (which are weak).

    Raises:
        TypeError: there is no common dtype.

    >>> tnp.result_type(np.float32, 1)
    dtype('float32')
    """
    types = [
        type_of(x if isinstance(x, (ArrayOperators, int, float, complex)) else _sample(x))
        for x in arrays_and_dtypes
    ]
    return common_dtype(*types) if len(types) > 1 else types[0].dtype


def can_cast(from_: Any, to: DTypeLike, casting: Casting = "safe") -> bool:
    """Whether one dtype, or that of an array, converts to another without loss of values.

    Raises:
        TypeError: `from_` is a Python number, or there is no such dtype.

    >>> tnp.can_cast(np.int32, np.float32)
    False
    """
    own = isinstance(from_, ArrayOperators)
    return np.can_cast(from_.dtype if own else from_, to, casting)


def finfo(dtype: Any) -> np.finfo[Any]:
    """The limits of a floating-point or complex dtype, or of that of an array.

    `numpy.finfo` takes no arrays, those of NumPy included, and does not know bfloat16.

    Raises:
        ValueError: the dtype is neither.

    >>> tnp.finfo(np.zeros(3, np.float32)).bits
    32
    """
    held = _held(dtype)
    limits: np.finfo[Any] = ml_dtypes.finfo(held) if held == bfloat16 else np.finfo(held)
    return limits


def iinfo(int_type: Any) -> np.iinfo:
    """The limits of an integer dtype, or of that of an array, which `numpy.iinfo` does not take.

    Raises:
        ValueError: the dtype is not one of integers.

    >>> tnp.iinfo(np.zeros(3, np.int8)).max
    127
    """
    return np.iinfo(_held(int_type))


def _held(x: Any) -> Any:
    """The dtype of an array; NumPy reads that of anything else."""
    is_array = isinstance(x, (ArrayOperators, np.ndarray))
    return x.dtype if is_array else x


def _sample(x: Any) -> Any:
    """An array, or for a dtype, an array of it."""
    return x if isinstance(x, (np.ndarray, np.generic)) else np.empty((), x)


@numpy_function
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    >>> tnp.iscomplexobj([1j])
    True
    """
    return bool(as_array(x).dtype.kind == "c")


@numpy_function
def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    >>> tnp.isrealobj([1j])
    False
    """
    return not iscomplexobj(x)


@numpy_function
def common_type(*arrays: Any) -> type:
    """The class of the floating-point or complex scalars that all arrays convert to.

    Raises:
        TypeError: an array does not hold numbers.

    >>> tnp.common_type(np.float32([1]), np.int64([2])).__name__
    'float64'
    """
    return np.common_type(*(np.empty(0, as_array(a).dtype) for a in arrays))


@numpy_function
def diag_indices_from(arr: Any) -> tuple[NDArray, ...]:
    """The indices of the main diagonal of an array, as NumPy arrays, one for each axis.

    Raises:
        ValueError: there are fewer than two axes, or their extents differ.

    >>> tnp.diag_indices_from(np.eye(2))
    (array([0, 1]), array([0, 1]))
    """
    return np.diag_indices_from(np.broadcast_to(0, as_array(arr).shape))


@numpy_function
def tril_indices_from(arr: Any, k: int = 0) -> tuple[NDArray, NDArray]:
    """The indices of a matrix on and below its k-th diagonal, as NumPy arrays.

    Raises:
        ValueError: there are not two axes.

    >>> tnp.tril_indices_from(np.eye(2))
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    return np.tril_indices_from(np.broadcast_to(0, as_array(arr).shape), k)


@numpy_function
def triu_indices_from(arr: Any, k: int = 0) -> tuple[NDArray, NDArray]:
    """The indices of a matrix on and above its k-th diagonal, as NumPy arrays.

    Raises:
        ValueError: there are not two axes.

    >>> tnp.triu_indices_from(np.eye(2))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    return np.triu_indices_from(np.broadcast_to(0, as_array(arr).shape), k)
