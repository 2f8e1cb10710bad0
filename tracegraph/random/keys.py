"""Keys of random numbers: two words of 32 bits, with JAX's ways to make new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.creation import iota
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.numpy.shapes import reshape

__all__ = ["PRNGKey", "fold_in", "key", "split"]

_THREEFRY = get("threefry")
_WORD, _PAIR = np.dtype(np.uint32), np.dtype(np.uint64)
_UPPER = np.uint64(32)


def key(seed: Any) -> Any:
    """The key of a seed, an integer: its upper and its lower 32 bits.

    Shape: `(2,)`.
    Dtype: uint32.

    Raises:
        TypeError: the seed is not an integer, or not a single one.
        OverflowError: the seed does not fit 64 bits.

    >>> tracegraph.random.key(42)
    array([ 0, 42], dtype=uint32)
    """
    seed = as_array(seed)
    if seed.dtype.kind not in "iu" or seed.ndim:
        if seed.dtype.kind == "O":
            raise OverflowError("the seed of a key must fit 64 bits")
        raise TypeError(f"the seed of a key must be an integer, got {seed.dtype}{list(seed.shape)}")
    if seed.dtype.itemsize < _PAIR.itemsize:  # JAX does not extend the sign of a narrow seed
        seed = cast(seed, _WORD)
    return words(cast(seed, _PAIR))


PRNGKey = key


def split(key: Any, num: int | Sequence[int] = 2) -> Any:
    """New keys, made from a key and independent of each other. Do not use the old key again.

    Args:
        key: a key.
        num: how many, or the shape of an array of them.

    Shape: `(*num, 2)`.
    Dtype: uint32.

    Raises:
        TypeError: `key` is not a key, or `num` is not an integer.
        ValueError: `num` is negative.

    >>> tracegraph.random.split(tracegraph.random.key(42))
    array([[1832780943,  270669613],
           [  64467757, 2916123636]], dtype=uint32)
    """
    return words(pairs(key, shape_of(num)))


def fold_in(key: Any, data: Any) -> Any:
    """A key made from a key and an integer, such as the number of an iteration.

    Only the lower half of a 64-bit integer counts.

    Shape: `(2,)`.
    Dtype: uint32.

    Raises:
        TypeError: `key` is not a key, or `data` is not an integer.

    >>> tracegraph.random.fold_in(tracegraph.random.key(42), 1)
    array([  64467757, 2916123636], dtype=uint32)
    """
    data = as_array(data)
    if data.dtype.kind not in "iu" or data.ndim:
        raise TypeError(f"data of fold_in must be an integer, got {data.dtype}{list(data.shape)}")
    counter = cast(cast(data, _WORD), _PAIR)
    return words(apply(_THREEFRY, *_halves(key), lifted(counter)))


def shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape; an integer stands for one extent.

    Raises:
        TypeError: an extent is not an integer known while the function is traced.
        ValueError: an extent is negative.
    """
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    for extent in given:
        if not isinstance(extent, (int, np.integer)) or isinstance(extent, bool):
            raise TypeError(f"a shape must consist of static integers, got {shape!r}")
        if extent < 0:
            raise ValueError(f"extents must not be negative, got the shape {shape!r}")
    return tuple(map(int, given))


def cast(x: Any, dtype: DTypeLike) -> Any:
    """Numbers in another dtype; integers wrap."""
    return apply(get("cast"), x, dtype=np.dtype(dtype))


def pairs(key: Any, shape: tuple[int, ...]) -> Any:
    """A number of 64 random bits for each element of an array, by its place in row-major order."""
    counters = reshape(iota(int(np.prod(shape, dtype=np.int64)), _PAIR), shape)
    return apply(_THREEFRY, *_halves(key), counters)


def words(pairs: Any) -> Any:
    """Numbers of 64 bits as their two words, along a new last axis."""
    shifts = apply(get("multiply"), apply(get("subtract"), _PAIR.type(1), iota(2, _PAIR)), _UPPER)
    wide = reshape(lifted(pairs), (*pairs.shape, 1))
    return cast(apply(get("right_shift"), wide, shifts), _WORD)


def _halves(key: Any) -> tuple[Any, Any]:
    """The two words of a key.

    Raises:
        TypeError: it is not a key.
    """
    key = as_array(key)
    if key.dtype != _WORD or key.shape != (2,):
        raise TypeError(
            f"a key is an array of two uint32 as tracegraph.random.key(seed) makes it, got "
            f"{key.dtype}{list(key.shape)}; for an array of keys, map over its first axis"
        )
    key = lifted(key)
    return key[0], key[1]
