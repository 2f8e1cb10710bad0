"""`x.view(dtype)`: the bits of an array as elements of another dtype."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.array import Array
from tracegraph.arrays.array_views import computed_view_on_device
from tracegraph.arrays.eager import apply, apply_view
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.numpy.joining import stack
from tracegraph.numpy.shapes import reshape
from tracegraph.numpy.ufuncs import bitwise_or, left_shift, right_shift
from tracegraph.ops.convert import has_bits
from tracegraph.tracing import views
from tracegraph.tracing.tracer import Tracer

_CAST = get("cast")


def viewed(x: Any, dtype: DTypeLike | None = None) -> Any:
    """`x.view(dtype)`: the bits of an array as elements of another dtype; without one, the array.

    Elements of another size take up more or less of the last axis. A traced array is written to
    through the result, as in NumPy.

    Raises:
        TypeError: not a dtype.
        UnsupportedByTracerError: a dtype is a floating-point one of 16 bits; or elements of another
            size of an array that is not laid out by rows.
        ValueError: the elements of the last axis are no whole number of others, or there is no
            axis.
    """
    if isinstance(dtype, int):  # a shape, as PyTorch's
        raise TypeError(
            f"x.view takes a dtype, got {dtype}; to change a shape, write x.reshape(...)"
        )
    target = x.dtype if dtype is None else np.dtype(dtype)
    if target == x.dtype:
        return x
    if type(x) is Array and isinstance(x.data, np.ndarray):
        return Array.sharing(x.data.view(target))
    if has_bits(target) and has_bits(x.dtype) and target.itemsize == x.dtype.itemsize:
        return apply_view(get("bits"), x, dtype=target)
    if not (_has_words(target) and _has_words(x.dtype)):
        raise UnsupportedByTracerError(
            f"ndarray.view from {x.dtype} to {target}",
            "it takes booleans, integers, floats of 32 or 64 bits, and complex numbers of such; "
            "use .astype to convert values",
        )
    _require_whole(x, target)
    if not views.has_layout(x):
        return _with_bits(x, target)
    if target.itemsize != x.dtype.itemsize and not _is_dense(x):
        raise UnsupportedByTracerError(
            f"ndarray.view from {x.dtype} to {target} of an array with gaps in its last axis",
            "write x.copy().view(...)",
        )
    if not isinstance(x, Tracer):
        return computed_view_on_device(_with_bits(x, target), x, _with_bits)
    return views.attach_computed(_with_bits(x, target), x, _with_bits)


def _is_dense(x: Any) -> bool:
    """Whether the elements along the last axis are next to each other."""
    return x.shape[-1] == 1 or x.size == 0 or views.strides_of(x)[-1] == 1


def _has_words(dtype: np.dtype[Any]) -> bool:
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    return dtype == np.bool_ or has_bits(part)


def _require_whole(x: Any, target: np.dtype[Any]) -> None:
    size = x.dtype.itemsize
    if size == target.itemsize:
        return
    if x.ndim == 0:
        raise ValueError(
            f"an array without axes of {x.dtype} is no array of {target}, whose size differs"
        )
    if x.shape[-1] * size % target.itemsize:
        raise ValueError(
            f"the last axis of {x.shape} elements of {x.dtype} is no whole number of {target}"
        )


def _with_bits(x: Any, target: np.dtype[Any]) -> Any:
    """An array of the target dtype with the same bits, in the order of memory."""
    count = x.shape[-1] * x.dtype.itemsize // target.itemsize if x.ndim else 0
    shape = (*x.shape[:-1], count) if x.ndim else ()
    words, part = _words(x), _word_of(target)
    words = _resized(words, part)
    if target.kind != "c":
        return reshape(_from_word(words, target), shape)
    pairs = reshape(_from_word(words, np.dtype(f"f{target.itemsize // 2}")), (*shape, 2))
    return apply(get("complex"), pairs[..., 0], pairs[..., 1])


def _word_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The unsigned integers of the size of a number, or of a part of a complex one."""
    return np.dtype(f"u{dtype.itemsize // 2 if dtype.kind == 'c' else dtype.itemsize}")


def _words(x: Any) -> Any:
    """The bits of an array as unsigned integers, of complex numbers two in a further last axis."""
    word = _word_of(x.dtype)
    if x.dtype.kind == "c":
        parts = [apply(get("bits"), apply(get(p), x), dtype=word) for p in ("real", "imag")]
        return stack(parts, -1)
    if x.dtype == np.bool_:
        return apply(_CAST, x, dtype=word)
    return x if x.dtype == word else apply(get("bits"), x, dtype=word)


def _from_word(words: Any, target: np.dtype[Any]) -> Any:
    if target == np.bool_:
        return apply(_CAST, words, dtype=target)
    return words if words.dtype == target else apply(get("bits"), words, dtype=target)


def _resized(words: Any, target: np.dtype[Any]) -> Any:
    """Words split into smaller ones, or joined to larger ones, along all that is in a row."""
    size = words.dtype.itemsize
    if size == target.itemsize:
        return words
    if size > target.itemsize:
        shifts = _shifts(size // target.itemsize, target.itemsize, words.dtype)
        return apply(_CAST, right_shift(words[..., None], shifts), dtype=target)
    parts = target.itemsize // size
    rows = reshape(words, (words.size // parts, parts))
    shifted = left_shift(apply(_CAST, rows, dtype=target), _shifts(parts, size, target))
    result = shifted[:, 0]
    for k in range(1, parts):
        result = bitwise_or(result, shifted[:, k])
    return result


def _shifts(count: int, size: int, dtype: np.dtype[Any]) -> Any:
    """The bits that each part of a word is shifted by, in the order of memory."""
    order = range(count) if sys.byteorder == "little" else reversed(range(count))
    return np.array([8 * size * k for k in order], dtype)
