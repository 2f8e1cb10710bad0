"""Permutations, and elements drawn from an array."""

from __future__ import annotations

from math import ceil, log, prod
from typing import Any

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.random.keys import cast, shape_of, split
from tracegraph.random.transformed_uniforms import gumbel
from tracegraph.random.uniform import Shape, bits, randint, uniform

__all__ = ["choice", "permutation"]

_WORD = np.dtype(np.uint32)


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """An array with its slices along an axis in random order, or the integers below `x` in random
    order: JAX's.

    Args:
        key: a key.
        x: an array; or a number of integers.
        axis: the axis along which slices are moved.
        independent: whether each row along the axis has an order of its own.

    Shape: that of `x`, or `(x,)`.
    Dtype: that of `x`, or int64.

    Raises:
        TypeError: `key` is not a key.
        ValueError: the number of integers is negative.
        AxisError: the axis is out of range.

    >>> np.sort(tracegraph.random.permutation(tracegraph.random.key(0), 5))
    array([0, 1, 2, 3, 4])
    """
    if isinstance(x, (int, np.integer)):
        (count,) = shape_of(int(x))
        return _shuffled(key, tnp.arange(count), 0)
    x = lifted(as_array(x))
    axis = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
    if independent or x.ndim == 1:
        return _shuffled(key, x, axis)
    order = _shuffled(key, tnp.arange(x.shape[axis]), 0)
    return tnp.take(x, order, axis=axis)


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """The rows of `x` in random order: sorted by random words, again and again.

    Words of 32 bits may be equal. After these rounds, two elements had equal ones in all of them
    with a probability of less than one in the number of elements.
    """
    rounds = ceil(3 * log(max(1, x.size)) / log(np.iinfo(_WORD).max))
    for _ in range(rounds):
        key, own = split(key)
        order = tnp.argsort(bits(own, x.shape, _WORD), axis)
        x = tnp.take_along_axis(x, order, axis)
    return x


def choice(
    key: Any, a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Elements of an array along an axis, or integers below `a`: JAX's.

    With probabilities and without replacement, they are nearly always JAX's.

    Args:
        key: a key.
        a: an array; or a positive integer.
        shape: how many are drawn, which takes the place of the axis.
        replace: whether an element may be drawn more than once.
        p: the probability of each; by default equal ones.
        axis: the axis along which elements are drawn.

    Raises:
        TypeError: `key` is not a key.
        ValueError: there is nothing to draw from, or less than to draw without replacement; or `p`
            has another length.
        AxisError: the axis is out of range.

    >>> tracegraph.random.choice(tracegraph.random.key(0), np.array([2.0, 3.0, 5.0]), (4,))
    array([2., 5., 5., 5.])
    """
    extents = shape_of(shape)
    single = isinstance(a, (int, np.integer))
    array = None if single else lifted(as_array(a))
    if array is not None:
        axis = np.lib.array_utils.normalize_axis_index(axis, array.ndim)
    count, draws = int(a) if array is None else array.shape[axis], prod(extents)
    if count < 1:
        raise ValueError("choice needs at least one element to draw from")
    if not replace and draws > count:
        raise ValueError(
            f"choice cannot draw {draws} elements from {count} without replacement; draw fewer, or "
            "pass replace=True"
        )
    if p is not None:
        p = _probabilities(p, count)
    if replace:
        places = randint(key, extents, 0, count) if p is None else _by_sums(key, p, extents)
    elif p is None:
        places = tnp.reshape(permutation(key, count)[:draws], extents)
    else:
        # the largest of Gumbel noise and logarithms: Vieira, "Gumbel-max trick and weighted
        # reservoir sampling", 2014
        noise = gumbel(key, (count,), p.dtype) + apply(get("log"), p)
        places = tnp.reshape(tnp.top_k(noise, draws)[1], extents)
    return places if array is None else tnp.take(array, places, axis=axis)


def _probabilities(p: Any, count: int) -> Any:
    p = lifted(as_array(p))
    if p.shape != (count,):
        raise ValueError(f"p must have a probability for each of {count}, got shape {p.shape}")
    if p.dtype.itemsize == 2:  # sums and numbers of 11 bits and fewer would miss elements
        return cast(p, np.float32)
    return cast(p, p.dtype if p.dtype.kind == "f" else np.float64)


def _by_sums(key: Any, p: Any, shape: tuple[int, ...]) -> Any:
    """Places with these probabilities, by their running sum.

    Probabilities whose sum leaves the range of normal numbers are made relative to the largest.
    """
    largest, limits = tnp.max(p), np.finfo(p.dtype)
    inside = (largest > limits.tiny / limits.eps) & (largest < limits.max / max(p.size, 1))
    sums = tnp.cumsum(p / tnp.where(inside, p.dtype.type(1), largest))
    drawn = sums[-1] * (p.dtype.type(1) - uniform(key, shape, p.dtype))
    return tnp.searchsorted(sums, drawn)
