"""Functions that sum over an axis of scores or features, and classes as rows."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

import tracegraph.numpy as tnp
from tracegraph import errors, special
from tracegraph.nn.activations import sigmoid
from tracegraph.nn.operands import chosen, of_floats, real
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.special import logsumexp as logsumexp

__all__ = ["glu", "log_softmax", "logsumexp", "one_hot", "softmax", "standardize"]

Axis = int | Sequence[int] | None


@of_floats
def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """exp(x) / sum(exp(x)) over the axes: the last by default, others than in `special.softmax`.

    Args:
        x: real numbers.
        axis: one axis, several, or None for all.
        where: booleans: what elements take part; the results of others are 0.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        AxisError: an axis is out of range.
        TypeError: `x` is complex.

    >>> tracegraph.nn.softmax([[1.0, 1.0], [1000.0, 0.0]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    return special.softmax(_masked(x, where), axis)


@of_floats
def log_softmax(x: Any, axis: Axis = -1, where: Any = None) -> Any:
    """The logarithm of softmax, finite where that is zero; of elements outside, minus infinity.

    Args:
        x: real numbers.
        axis: as in `softmax`: the last by default.
        where: as in `softmax`.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        AxisError: an axis is out of range.
        TypeError: `x` is complex.

    >>> tracegraph.nn.log_softmax([1000.0, 0.0])
    array([    0., -1000.])
    """
    return special.log_softmax(_masked(x, where), axis)


def _masked(x: Any, where: Any) -> Any:
    return x if where is None else chosen(as_array(where, bool), x, -np.inf)


@of_floats
def glu(x: Any, axis: int = -1) -> Any:
    """The first half of an axis times sigmoid of the second.

    Shape: that of `x`, with half the extent along `axis`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        ValueError: the extent is odd.
        AxisError: there is no such axis.
        TypeError: `x` is complex.

    >>> tracegraph.nn.glu([3.0, 4.0, 0.0, 1000.0])
    array([1.5, 4. ])
    """
    axis = normalize_axis_index(axis, x.ndim)
    if x.shape[axis] % 2:
        raise ValueError(
            f"nn.glu splits an axis into halves, got an extent of {x.shape[axis]} along axis "
            f"{axis} of shape {x.shape}; pass an even one"
        )
    values, gates = tnp.split(x, 2, axis)
    return values * sigmoid(gates)


@of_floats
def standardize(
    x: Any,
    axis: Axis = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
) -> Any:
    """``(x - mean) / sqrt(variance + epsilon)``, as layers that normalize compute it.

    Args:
        x: real numbers.
        axis: over which mean and variance are computed: one axis, several, or None for all.
        mean: the mean, if it is known; it broadcasts.
        variance: the same of the variance.
        epsilon: keeps the quotient finite where the variance is 0.

    The variance is the mean of squared deviations, which does not cancel as differences of squares
    do.

    Shape: that of `x`.
    Dtype: that of `x`; float64 for integers.

    Raises:
        AxisError: an axis is out of range.
        TypeError: `x` is complex.

    >>> tracegraph.nn.standardize([1.0, 3.0], epsilon=0.0)
    array([-1.,  1.])
    """
    apart = x - (tnp.mean(x, axis=axis, keepdims=True) if mean is None else mean)
    if variance is None:
        own = apart if mean is None else x - tnp.mean(x, axis=axis, keepdims=True)
        variance = tnp.mean(own * own, axis=axis, keepdims=True)
    return apart / tnp.sqrt(variance + epsilon)


def one_hot(x: Any, num_classes: int, *, dtype: DTypeLike = np.float64, axis: int = -1) -> Any:
    """Rows that are 1 at the class and 0 elsewhere, also for classes out of range.

    Args:
        x: integers from 0.
        num_classes: the length of a row, known while the function is traced.
        dtype: that of the result.
        axis: where the rows are in the result.

    Shape: that of `x`, with `num_classes` at `axis`.
    Dtype: `dtype`, float64 by default.

    Raises:
        TypeError: `x` is complex, or `num_classes` is a traced value.
        ValueError: `num_classes` is negative.
        AxisError: the result has no such axis.

    >>> tracegraph.nn.one_hot([0, 2, 3], 3)
    array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """
    x = real("one_hot", x)
    count = _number_of_classes(num_classes)
    rows = tnp.expand_dims(x, axis)
    position = axis % rows.ndim
    extents = [1] * rows.ndim
    extents[position] = -1
    classes = np.arange(count, dtype=np.int64).reshape(extents)
    return as_array(rows == classes, dtype)


def _number_of_classes(num_classes: Any) -> int:
    try:
        count = operator.index(num_classes)
    except TypeError:
        raise TypeError(
            "num_classes of nn.one_hot is an int that is known while the function is traced, got "
            f"{errors.value_text(num_classes)}; pass a number, or name it in static_argnames of jit"
        ) from None
    if count < 0:
        raise ValueError(f"num_classes is at least 0, got {count}: it is the length of a row")
    return count
