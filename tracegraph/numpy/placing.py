"""Functions that write to their first argument, an array that the user's code has made."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph import tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.eager import any_of_bfloat16, any_on_device, apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import (
    CAST,
    as_array,
    is_python_number,
    lifted,
    numpy_function,
)
from tracegraph.numpy.dispatching.output import Casting, mask_of, require_writable
from tracegraph.numpy.elementwise import where as choose
from tracegraph.numpy.index_modes import limited, require_integers
from tracegraph.numpy.shapes import reshape
from tracegraph.numpy.ufuncs import not_equal, remainder, subtract
from tracegraph.tracing.conversions import called_function, written_array_advice
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.local_writes import LocalWrites
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.tracer import Tracer

P = ParamSpec("P")

__all__ = ["copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"]


def check_local(name: str, target: Any) -> None:
    """Require an array that may be written to.

    Raises:
        TracerWriteError: an argument of the traced function.
        ImmutableArrayError: an Array that is read-only.
        UnsupportedByTracerError: an array of NumPy's, while a function is traced.
    """
    require_writable(name, (target,), {})
    if not isinstance(target, LocalWrites):
        calling, text = called_function() or (name, "")
        if calling != name and calling in FUNCTIONS:  # NumPy's full_like calls copyto
            raise UnsupportedByTracerError(
                f"{text}, with an array of NumPy's to write to,",
                f"write tracegraph.numpy.{calling}, with the same arguments",
            )
        raise UnsupportedByTracerError(
            f"numpy.{name} to {type(target).__module__}.{type(target).__name__}",
            written_array_advice(target),
        )
    target.check_writable()


def _writer(fun: Callable[P, None]) -> Callable[P, None]:
    """A function that writes to its first argument; to an Array in host memory, NumPy's does."""
    first = next(iter(signature(fun).parameters))
    numpys: Callable[..., None] = getattr(np, fun.__name__)

    @wraps(fun)
    def writing(*args: P.args, **kwargs: P.kwargs) -> None:
        target = args[0] if args else kwargs.get(first)
        if type(target) is not Array:
            return fun(*args, **kwargs)
        leaves = tree.leaves((args, kwargs))
        if (
            any_on_device(leaves)
            or any_of_bfloat16(leaves)
            or any(isinstance(x, Tracer) for x in leaves)
        ):
            return fun(*args, **kwargs)
        return numpys(*args, **kwargs)

    return writing


_STRICT = ("no", "equiv", "safe")
"""Rules for conversions that allow less than an assignment does."""


@numpy_function
@_writer
def copyto(dst: Any, src: Any, casting: Casting = "same_kind", where: Any = True) -> None:
    """Write `src`, where the mask is true, to `dst`, an array made in the traced function.

    Returns nothing; `src` is broadcast to the shape of `dst`, and cast to its dtype.

    Raises:
        TypeError: the dtype of `src` does not convert to that of `dst` by the rule `casting`, or
            the mask is an array of numbers.
        ValueError: `src` does not broadcast to the shape of `dst`.
        TracerWriteError: `dst` is an argument of the traced function.
        ImmutableArrayError: `dst` is an Array that is read-only.
        UnsupportedByTracerError: `dst` was not made where it is traced.

    >>> def doubled(x):
    ...     y = tnp.zeros(2)
    ...     tnp.copyto(y, x + x)
    ...     return y
    >>> np.asarray(tracegraph.jit(doubled)(np.array([1.0, 2.0])))
    array([2., 4.])
    """
    check_local("copyto", dst)
    if casting in _STRICT and not is_python_number(src):
        given = as_array(src).dtype
        if not np.can_cast(given, dst.dtype, casting):
            raise TypeError(
                f"numpy.copyto cannot write {given} to an array of {dst.dtype} by {casting=}"
            )
    source = as_array(src, dst.dtype) if casting == "unsafe" else src
    dst.assign(source if where is True else choose(mask_of(where), source, dst), "copyto")


@numpy_function
@_writer
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at positions in the ravelled array, the values repeated as often as needed.

    Returns nothing. Values are cast to the dtype of `a`; where a position is named twice, the last
    value stays. Static positions must be in range. Traced ones out of range write nothing; with
    mode "wrap" they are taken modulo the size, with "clip" limited to the range.

    Raises:
        IndexError: a static position is out of range.
        TypeError: the positions are an array whose dtype does not convert to int64 by "safe".
        TracerWriteError: `a` is an argument of the traced function.
        ImmutableArrayError: `a` is an Array that is read-only.
        UnsupportedByTracerError: `a` was not made where it is traced.

    >>> def ends(x):
    ...     y = tnp.zeros(4)
    ...     tnp.put(y, [0, -1], x)
    ...     return y
    >>> np.asarray(tracegraph.jit(ends)(np.array([1.0, 2.0])))
    array([1., 0., 0., 2.])
    """
    check_local("put", a)
    where = as_array(_safe("put", ind, np.dtype(np.int64)), np.int64)
    where = reshape(where, (where.size,))
    values = _cycled(v, a.dtype, where.size)
    if values is None or where.size == 0:
        return
    if a.size == 0:
        raise IndexError("cannot replace elements of an empty array")
    where = limited(where, a.size, mode)
    a.assign(reshape(reshape(a, (a.size,)).at[where].set(values), a.shape), "put")


@numpy_function
@_writer
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write values where a mask is true: those at the same places in the ravelled arrays.

    Returns nothing. Values are cast to the dtype of `a`, and repeated up to its size.

    Raises:
        TypeError: the dtype of an array of values does not convert by "safe".
        ValueError: the mask has another size.
        TracerWriteError: `a` is an argument of the traced function.
        ImmutableArrayError: `a` is an Array that is read-only.
        UnsupportedByTracerError: `a` was not made where it is traced.

    >>> def limited(x):
    ...     y = x.copy()
    ...     tnp.putmask(y, x > 2, [10, 20])
    ...     return y
    >>> np.asarray(tracegraph.jit(limited)(np.array([1, 2, 3, 4])))
    array([ 1,  2, 10, 20])
    """
    check_local("putmask", a)
    mask = _mask_of("putmask", mask, a)
    values = _cycled(_safe("putmask", values, a.dtype), a.dtype, a.size)
    if values is not None:
        a.assign(choose(mask, reshape(values, a.shape) if values.ndim else values, a), "putmask")


@numpy_function
@_writer
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values where a mask is true: the k-th value at the k-th true element.

    Returns nothing. Values are cast to the dtype of `arr`, and repeated as often as needed.

    Raises:
        TypeError: the dtype of an array of values does not convert by "safe".
        ValueError: the mask has another size, or there are no values.
        TracerWriteError: `arr` is an argument of the traced function.
        ImmutableArrayError: `arr` is an Array that is read-only.
        UnsupportedByTracerError: `arr` was not made where it is traced.

    >>> def limited(x):
    ...     y = x.copy()
    ...     tnp.place(y, x > 2, [10, 20])
    ...     return y
    >>> np.asarray(tracegraph.jit(limited)(np.array([3, 2, 1, 4])))
    array([10,  2,  1, 20])
    """
    check_local("place", arr)
    mask = _mask_of("place", mask, arr)
    values = as_array(_safe("place", vals, arr.dtype), arr.dtype)
    values = reshape(values, (values.size,))
    if values.size == 0:
        if isinstance(mask, Tracer) or mask.any():
            raise ValueError("cannot place values from an empty array")
        return
    if arr.size == 0:
        return
    flat = apply(CAST, reshape(lifted(mask), (arr.size,)), dtype=np.dtype(np.int64))
    order = remainder(subtract(apply(get("cumsum"), flat, axis=0), 1), values.size)
    arr.assign(choose(mask, reshape(lifted(values)[order], arr.shape), arr), "place")


@numpy_function
@_writer
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write values at indices along an axis, for each position of the other axes.

    Returns nothing. Values are broadcast to the shape of the indices, and cast to the dtype of
    `arr`. Without an axis, indices are positions in the ravelled array. Traced indices out of
    range write nothing.

    Raises:
        ValueError: `indices` has another number of axes, or the values do not broadcast.
        AxisError: the axis is out of range.
        IndexError: a static index is out of range, or they are not integers.
        TracerWriteError: `arr` is an argument of the traced function.
        ImmutableArrayError: `arr` is an Array that is read-only.
        UnsupportedByTracerError: `arr` was not made where it is traced.

    >>> def marked(x):
    ...     y = tnp.zeros_like(x)
    ...     tnp.put_along_axis(y, tnp.argmax(x, 1, keepdims=True), 1, axis=1)
    ...     return y
    >>> np.asarray(tracegraph.jit(marked)(np.array([[3, 7, 5], [8, 2, 1]])))
    array([[0, 1, 0],
           [1, 0, 0]])
    """
    check_local("put_along_axis", arr)
    indices = as_array(indices)
    require_integers(indices)
    if axis is None:
        target, axis = reshape(arr, (arr.size,)), 0
    else:
        target, axis = arr, normalize_axis_index(axis, arr.ndim)
    if indices.ndim != target.ndim:
        raise ValueError(
            f"indices of shape {indices.shape} and arr of shape {target.shape} must have the same "
            "number of dimensions"
        )
    mesh = list(np.ogrid[tuple(slice(n) for n in target.shape)])
    at = tuple(indices if k == axis else along for k, along in enumerate(mesh))
    arr.assign(reshape(target.at[at].set(values), arr.shape), "put_along_axis")


@numpy_function
@_writer
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write a value, or values one after another, to the main diagonal.

    Returns nothing. Values are cast to the dtype of `a`, and repeated as often as needed. With
    `wrap`, the diagonal of a tall matrix starts again below its last column.

    Raises:
        ValueError: there are fewer than two axes, or more than two of different extents.
        TracerWriteError: `a` is an argument of the traced function.
        ImmutableArrayError: `a` is an Array that is read-only.
        UnsupportedByTracerError: `a` was not made where it is traced.

    >>> def without_diagonal(x):
    ...     y = x.copy()
    ...     tnp.fill_diagonal(y, 0)
    ...     return y
    >>> np.asarray(tracegraph.jit(without_diagonal)(np.array([[1, 2], [3, 4]])))
    array([[0, 2],
           [3, 0]])
    """
    check_local("fill_diagonal", a)
    if a.ndim < 2:
        raise ValueError(f"array must be at least 2-d, got shape {a.shape}")
    end = None
    if a.ndim == 2:
        step = a.shape[1] + 1
        end = None if wrap else a.shape[1] * a.shape[1]
    elif len(set(a.shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {a.shape}")
    else:
        step = 1 + int(np.cumprod(a.shape[:-1]).sum())
    places = slice(None, end, step)
    values = _cycled(val, a.dtype, len(range(a.size)[places]))
    if values is not None:
        flat = reshape(a, (a.size,)).at[places].set(values)
        a.assign(reshape(flat, a.shape), "fill_diagonal")


def _safe(name: str, values: Any, dtype: np.dtype[Any]) -> Any:
    """The values themselves; as in NumPy, those of an array must keep their values."""
    is_array = isinstance(values, (np.ndarray, ArrayOperators)) and not is_python_number(values)
    if is_array and not np.can_cast(values.dtype, dtype, "safe"):
        raise TypeError(
            f"numpy.{name}: values of {values.dtype} do not convert to {dtype} by the rule 'safe'; "
            f"use values.astype({str(dtype)!r})"
        )
    return values


def _cycled(values: Any, dtype: np.dtype[Any], count: int) -> Any:
    """Values repeated to a number of elements, from the first on; None if there are none."""
    values = as_array(values, dtype)
    flat = reshape(values, (values.size,))
    if flat.size == 0:
        return None
    if flat.size >= count:
        return flat[:count]
    return flat[0] if flat.size == 1 else lifted(flat)[np.arange(count) % flat.size]


def _mask_of(name: str, mask: Any, target: Any) -> Any:
    """A mask as booleans in the shape of the target."""
    mask = as_array(mask)
    if mask.size != target.size:
        raise ValueError(
            f"{name}: mask and data must be the same size, got shapes {mask.shape} and "
            f"{target.shape}"
        )
    mask = reshape(mask, target.shape)
    return mask if mask.dtype == np.bool_ else not_equal(mask, mask.dtype.type(0))
