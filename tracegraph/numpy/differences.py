"""Differences of neighbours, and integration, along an axis."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, laid_out, numpy_function
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.joining import concatenate
from tracegraph.numpy.reductions import cumsum, sum
from tracegraph.numpy.shapes import broadcast_to, ravel, reshape
from tracegraph.numpy.ufuncs import (
    absolute,
    add,
    divide,
    equal,
    greater,
    less,
    logical_and,
    multiply,
    not_equal,
    remainder,
    subtract,
)
from tracegraph.tracing.layouts import copy_order

__all__ = ["diff", "ediff1d", "gradient", "trapezoid", "unwrap"]


@numpy_function
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, n times.

    `prepend` and `append` are values, or arrays, to put before and after; None stands for none, and
    where `n` is 0, they are left out.

    Shape: that of `a`, the extent of the axis less by `n`.
    Dtype: that of `a`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: `n` is negative, or there are no axes.

    >>> tnp.diff([1, 4, 9])
    array([3, 5])
    """
    n = index(n)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    a = as_array(a)
    if n == 0:
        return a
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    axis = normalize_axis_index(axis, a.ndim)
    ends = [_end(e, a.shape, axis) for e in (prepend, append)]
    if prepend is not None or append is not None:
        a = concatenate([part for part in (ends[0], a, ends[1]) if part is not None], axis)
    before = (slice(None),) * axis
    combine = not_equal if a.dtype == np.bool_ else subtract
    for _ in range(n):
        a = combine(a[(*before, slice(1, None))], a[(*before, slice(None, -1))])
    return a


def _end(part: Any, shape: tuple[int, ...], axis: int) -> Any:
    if part is None:
        return None
    part = as_array(part)
    if part.ndim:
        return part
    return broadcast_to(part, (*shape[:axis], 1, *shape[axis + 1 :]))


@numpy_function
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule.

    Shape: that of `y` without the axis.
    Dtype: floating point or complex; integers become float64.

    Raises:
        AxisError: the axis is out of range.
        ValueError: the shapes do not broadcast.

    >>> tnp.trapezoid([1.0, 3.0], dx=2.0)
    np.float64(4.0)
    """
    y = as_array(y)
    axis = normalize_axis_index(axis, y.ndim)
    widths = dx
    if x is not None:
        x = as_array(x)
        widths = diff(x, axis=-1 if x.ndim == 1 else axis)
        if x.ndim == 1:
            widths = reshape(widths, (-1,) + (1,) * (y.ndim - axis - 1))
    before = (slice(None),) * axis
    ends = add(y[(*before, slice(1, None))], y[(*before, slice(None, -1))])
    return sum(divide(multiply(widths, ends), 2.0), axis)


@numpy_function
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours in the ravelled array, between further elements.

    Shape: one axis; one element less than `ary`, and those of `to_begin` and `to_end`.
    Dtype: that of `ary`.

    Raises:
        TypeError: `to_begin` or `to_end` is of a wider kind than `ary`.

    >>> tnp.ediff1d([1, 4, 9], to_begin=0)
    array([0, 3, 5])
    """
    ary = ravel(as_array(ary))
    parts = [subtract(ary[1:], ary[:-1])]
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        if end is None:
            continue
        end = as_array(end)
        if not np.can_cast(end.dtype, ary.dtype, casting="same_kind"):
            raise TypeError(
                f"dtype of `{name}`, {end.dtype}, must be compatible with that of the input, "
                f"{ary.dtype}, under the `same_kind` rule."
            )
        end = ravel(as_array(end, ary.dtype))
        parts = [end, *parts] if name == "to_begin" else [*parts, end]
    return concatenate(parts) if len(parts) > 1 else parts[0]


@numpy_function
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """Phases without jumps: multiples of the period are added along an axis.

    Differences of neighbours of at least `discont`, by default half a period, are jumps.

    Shape: that of `p`.
    Dtype: the common one of `p` and `period`.

    Raises:
        AxisError: the axis is out of range.
        ValueError: there is no axis.

    >>> tnp.unwrap([0, 1, 2, 0, 1], period=3)
    array([0, 1, 2, 3, 4])
    """
    p = as_array(p)
    steps = diff(p, axis=axis)
    axis = normalize_axis_index(axis, p.ndim)
    limit = period / 2 if discont is None else discont
    dtype = result_type(type_of(steps), type_of(period))
    whole = dtype.kind in "iu"
    high, rest = divmod(period, 2) if whole else (period / 2, 0)
    within = add(remainder(subtract(steps, -high), period), -high)
    if rest == 0:
        upwards = logical_and(equal(within, -high), greater(steps, 0))
        within = where(upwards, as_array(high, within.dtype), within)
    correction = subtract(within, steps)
    none = as_array(0, correction.dtype)
    correction = where(less(absolute(steps), limit), none, correction)
    before = (slice(None),) * axis
    rest_of_p = add(p[(*before, slice(1, None))], cumsum(correction, axis))
    parts = [p[(*before, slice(None, 1))], rest_of_p]
    found = concatenate([as_array(part, dtype) for part in parts], axis)
    return laid_out(found, copy_order(p, "K"))


@numpy_function
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives along axes, by central differences, one-sided ones of `edge_order` at the ends.

    Distances are one number, or for each axis a number or the positions of its elements.

    Shape: that of `f`; a tuple of such arrays if there are several axes.
    Dtype: that of `f`; integers become float64.

    Raises:
        AxisError: an axis is out of range.
        TypeError: there are neither one nor as many distances as axes.
        ValueError: an axis has fewer than `edge_order + 1` elements; positions have another
            shape; `edge_order` is greater than 2.

    >>> tnp.gradient([1.0, 2.0, 4.0, 7.0])
    array([1. , 1.5, 2.5, 3. ])
    """
    f = as_array(f)
    axes = tuple(range(f.ndim)) if axis is None else normalize_axis_tuple(axis, f.ndim)
    distances = _distances(f, axes, varargs)
    if edge_order > 2:
        raise ValueError("'edge_order' greater than 2 not supported")
    dtype = f.dtype if f.dtype.kind in "fcV" else np.dtype(np.float64)
    f = as_array(f, np.float64) if f.dtype.kind in "iu" else f
    found = []
    for k, step in zip(axes, distances, strict=True):
        if f.shape[k] < edge_order + 1:
            raise ValueError(
                f"axis {k} of shape {f.shape} is too small to calculate a numerical gradient, at "
                "least (edge_order + 1) elements are required."
            )
        slopes = _slopes(f, k, step, edge_order, dtype)
        found.append(laid_out(slopes, copy_order(f, "K")))
    return found[0] if len(found) == 1 else tuple(found)


def _distances(f: Any, axes: tuple[int, ...], spacings: tuple[Any, ...]) -> list[Any]:
    """For each axis a distance, or the distances of neighbours as a vector."""
    if not spacings:
        return [1.0] * len(axes)
    if len(spacings) == 1 and np.ndim(spacings[0]) == 0:
        return list(spacings) * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"gradient takes one distance, or one for each of {len(axes)} axes, got {len(spacings)}"
        )
    steps: list[Any] = []
    for k, positions in zip(axes, spacings, strict=True):
        if np.ndim(positions) == 0:
            steps.append(positions)
            continue
        positions = as_array(positions)
        if positions.ndim != 1:
            raise ValueError("distances must be either scalars or 1d")
        if positions.shape[0] != f.shape[k]:
            raise ValueError(
                f"when 1d, distances must match the length of the corresponding dimension: got "
                f"{positions.shape[0]} for axis {k} of shape {f.shape}"
            )
        step = diff(as_array(positions, np.float64) if positions.dtype.kind in "iu" else positions)
        uniform = not is_ours((step,)) and bool((step == step[0]).all())
        steps.append(step[0] if uniform else step)
    return steps


def _slopes(f: Any, axis: int, step: Any, edge_order: int, dtype: np.dtype[Any]) -> Any:
    """Derivatives along one axis."""
    uniform = np.ndim(step) == 0

    def part(start: int | None, stop: int | None) -> Any:
        return f[(*(slice(None),) * axis, slice(start, stop))]

    def along(vector: Any) -> Any:
        return reshape(vector, (-1,) + (1,) * (f.ndim - axis - 1))

    def weighted(weights: tuple[Any, Any, Any], first: int) -> Any:
        """The sum of three neighbours of one end."""
        ends = [first + k + 1 or None for k in range(3)]
        terms = [w * part(e - 1 if e else -1, e) for w, e in zip(weights, ends, strict=True)]
        return terms[0] + terms[1] + terms[2]

    if uniform:
        middle = (part(2, None) - part(None, -2)) / (2.0 * step)
    else:
        left, right = step[:-1], step[1:]
        a = along(-right / (left * (left + right)))
        b = along((right - left) / (left * right))
        c = along(left / (right * (left + right)))
        middle = a * part(None, -2) + b * part(1, -1) + c * part(2, None)
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / (step if uniform else step[0])
        last = (part(-1, None) - part(-2, -1)) / (step if uniform else step[-1])
    elif uniform:
        first = weighted((-1.5 / step, 2.0 / step, -0.5 / step), 0)
        last = weighted((0.5 / step, -2.0 / step, 1.5 / step), -3)
    else:
        p, q = step[0], step[1]
        first = weighted((-(2.0 * p + q) / (p * (p + q)), (p + q) / (p * q), -p / (q * (p + q))), 0)
        p, q = step[-2], step[-1]
        last = weighted((q / (p * (p + q)), -(q + p) / (p * q), (2.0 * q + p) / (q * (p + q))), -3)
    return concatenate([as_array(x, dtype) for x in (first, middle, last)], axis)
