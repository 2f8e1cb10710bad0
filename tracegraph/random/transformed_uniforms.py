"""Distributions that are a function of uniform numbers.

Their results are differentiable in the parameters. Inverse distribution functions are precise in
the tails that the mantissas of uniform numbers reach.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

import tracegraph.numpy as tnp
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.random.keys import shape_of, split
from tracegraph.random.uniform import Shape, floating, is_known, uniform, within
from tracegraph.special import erfinv, logit

__all__ = [
    "categorical", "cauchy", "exponential", "gumbel", "laplace", "logistic", "normal", "pareto",
    "rayleigh", "weibull_min",
]  # fmt: skip


def parameters(dtype: np.dtype[Any], *values: Any) -> list[Any]:
    """Parameters of a distribution, in the dtype of its result."""
    return [lifted(as_array(value, dtype)) for value in values]


def shape_for(shape: Shape | None, *values: Any) -> tuple[int, ...]:
    """The shape of a result; unless given, that to which the parameters broadcast."""
    if shape is None:
        return np.broadcast_shapes(*(v.shape for v in values))
    return shape_of(shape)


def normal(key: Any, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Standard normal numbers; of a complex dtype, both parts have the variance 1/2.

    They are JAX's up to rounding.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of floating-point numbers.
        ValueError: `shape` is negative.

    >>> tracegraph.random.normal(tracegraph.random.key(42), (), np.float32).round(3)
    np.float32(-0.028)
    """
    if np.dtype(dtype).kind == "c":
        part = np.dtype(f"f{np.dtype(dtype).itemsize // 2}")
        root = np.asarray(sqrt(2), part)[()]
        re, im = (normal(k, shape, part) for k in split(key))
        return apply(get("complex"), re / root, im / root)
    target = floating(dtype)
    lowest = np.nextafter(target.type(-1), target.type(0))
    drawn = uniform(key, shape, target, lowest, target.type(1))
    return apply(get("multiply"), target.type(sqrt(2)), erfinv(drawn))


def exponential(key: Any, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Exponentially distributed numbers, with mean 1.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative.

    >>> tracegraph.random.exponential(tracegraph.random.key(0), (2,), np.float32).round(3)
    array([2.95 , 3.843], dtype=float32)
    """
    return tnp.negative(tnp.log1p(tnp.negative(uniform(key, shape, dtype))))


def gumbel(key: Any, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Numbers of the standard Gumbel distribution.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative.

    >>> tracegraph.random.gumbel(tracegraph.random.key(0), (2,), np.float32).round(3)
    array([2.923, 3.833], dtype=float32)
    """
    target = floating(dtype)
    drawn = uniform(key, shape, target, _tiny(target), target.type(1))
    return tnp.negative(tnp.log(tnp.negative(tnp.log(drawn))))


def _tiny(dtype: np.dtype[Any]) -> Any:
    return dtype.type(ml_dtypes.finfo(dtype).tiny)


def laplace(key: Any, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Numbers of the standard Laplace distribution.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative.

    >>> tracegraph.random.laplace(tracegraph.random.key(0), (2,), np.float32).round(3)
    array([-2.257, -3.15 ], dtype=float32)
    """
    target = floating(dtype)
    lowest = np.nextafter(target.type(-1), target.type(0))
    drawn = uniform(key, shape, target, lowest, target.type(1))
    return tnp.sign(drawn) * tnp.log1p(tnp.negative(tnp.absolute(drawn)))


def logistic(key: Any, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Numbers of the standard logistic distribution.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative.

    >>> tracegraph.random.logistic(tracegraph.random.key(0), (2,), np.float32).round(3)
    array([2.896, 3.822], dtype=float32)
    """
    target = floating(dtype)
    return logit(uniform(key, shape, target, _tiny(target), target.type(1)))


def cauchy(key: Any, shape: Shape = (), dtype: DTypeLike = np.float64) -> Any:
    """Numbers of the standard Cauchy distribution.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative.

    >>> tracegraph.random.cauchy(tracegraph.random.key(0), (2,), np.float32).round(3)
    array([ 6.027, 14.838], dtype=float32)
    """
    target = floating(dtype)
    drawn = uniform(key, shape, target, ml_dtypes.finfo(target).eps, target.type(1))
    return tnp.tan(target.type(pi) * (drawn - target.type(0.5)))


def rayleigh(
    key: Any, scale: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64
) -> Any:
    """Lengths of vectors of two normal numbers with standard deviation `scale`.

    Shape: `shape`; by default that of `scale`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `scale` does not broadcast to it.

    >>> tracegraph.random.rayleigh(tracegraph.random.key(0), 1.0, (2,), np.float32).round(3)
    array([2.429, 2.773], dtype=float32)
    """
    target = floating(dtype)
    known = scale
    (scale,) = parameters(target, scale)
    extents = shape_for(shape, scale)
    with np.errstate(over="ignore", invalid="ignore"):
        found = scale * tnp.sqrt(target.type(2) * exponential(key, extents, target))
    if not (is_known(known) and known < np.inf):
        found = tnp.where(tnp.isinf(scale), scale, found)
    return within(found, extents, "scale")


def pareto(key: Any, b: Any, shape: Shape | None = None, dtype: DTypeLike = np.float64) -> Any:
    """Numbers x from 1 with the density b / x**(b + 1).

    Shape: `shape`; by default that of `b`.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or `b` does not broadcast to it.

    >>> tracegraph.random.pareto(tracegraph.random.key(0), 2.0, (2,), np.float32).round(3)
    array([4.371, 6.833], dtype=float32)
    """
    target, known = floating(dtype), b
    (b,) = parameters(target, b)
    extents = shape_for(shape, b)
    with np.errstate(all="ignore"):
        exponent = exponential(key, extents, target) / b
        if not (is_known(known) and known != 0):
            exponent = tnp.where(b == 0, target.type(np.inf), exponent)
        return within(tnp.exp(exponent), extents, "b")


def weibull_min(
    key: Any,
    scale: Any,
    concentration: Any,
    shape: Shape | None = None,
    dtype: DTypeLike = np.float64,
) -> Any:
    """Numbers of the Weibull distribution: `scale` times exponential ones to 1 / concentration.

    Shape: `shape`; by default that to which the parameters broadcast.

    Raises:
        TypeError: `key` is not a key; `dtype` is not of real floating-point numbers.
        ValueError: `shape` is negative, or parameters do not broadcast to it.

    >>> tracegraph.random.weibull_min(tracegraph.random.key(0), 1.0, 2.0, (2,), np.float32).round(3)
    array([1.718, 1.96 ], dtype=float32)
    """
    target = floating(dtype)
    known = scale, concentration
    scale, concentration = parameters(target, scale, concentration)
    extents = shape_for(shape, scale, concentration)
    drawn = exponential(key, extents, target)
    limits = ml_dtypes.finfo(target)
    least = (limits.nmant + 2) / (-limits.minexp - 1)  # powers leave the range below
    if is_known(known[0]) and is_known(known[1]) and known[0] < np.inf and known[1] >= least:
        found = scale * tnp.power(drawn, target.type(1) / concentration)
    else:
        found = _weibull(drawn, scale, concentration)
    return within(found, extents, "a parameter")


def _weibull(x: Any, scale: Any, concentration: Any) -> Any:
    """The product of `scale` and x**(1 / concentration), by logarithms of powers out of range.

    Operands of the way that is not taken are 1, so that derivatives by it are finite.
    """
    zero, one = x.dtype.type(0), x.dtype.type(1)
    with np.errstate(all="ignore"):
        logarithm = tnp.log(tnp.where(x > 0, x, one))
        logarithm = tnp.where(logarithm == 0, zero, logarithm / concentration)
        inside = tnp.absolute(logarithm) < -np.log(np.float64(_tiny(x.dtype)))
        power = tnp.power(tnp.where(inside, x, one), one / concentration)
        beyond = tnp.exp(tnp.log(tnp.where(scale > 0, scale, one)) + logarithm)
        found = tnp.where(inside, scale * power, tnp.where(scale > 0, beyond, scale))
        return tnp.where((x == 0) & (concentration < np.inf), zero, found)


def categorical(key: Any, logits: Any, axis: int = -1, shape: Shape | None = None) -> Any:
    """Positions along an axis, with probabilities proportional to exp(logits).

    Args:
        key: a key.
        logits: logarithms of probabilities, up to a constant.
        axis: the axis along which a position is drawn.
        shape: of the result; it ends with the shape of `logits` without the axis, the default.

    Dtype: int64.

    Logits of 16 bits are added to noise of float32; otherwise the positions are JAX's.

    Raises:
        TypeError: `key` is not a key; `logits` are not of real floating-point numbers.
        ValueError: `shape` does not end with that of `logits` without the axis.
        AxisError: the axis is out of range.

    >>> tracegraph.random.categorical(tracegraph.random.key(0), np.log([0.2, 0.8]), shape=(6,))
    array([1, 0, 1, 1, 1, 0])
    """
    logits = lifted(as_array(logits))
    if (
        floating(logits.dtype).itemsize == 2
    ):  # noise of 11 bits and fewer has too many equal numbers
        logits = logits.astype(np.float32)
    target = logits.dtype
    axis = np.lib.array_utils.normalize_axis_index(axis, logits.ndim)
    batch = logits.shape[:axis] + logits.shape[axis + 1 :]
    extents = batch if shape is None else shape_of(shape)
    front = extents[: len(extents) - len(batch)]
    if extents[len(front) :] != batch:
        raise ValueError(f"the shape {extents} must end with {batch}, that of logits without axis")
    noise = gumbel(key, (*front, *logits.shape), target)
    return tnp.argmax(noise + logits, axis=len(front) + axis)
