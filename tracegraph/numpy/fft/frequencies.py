"""The frequencies of a transform's result, and the order in which they stand."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.numpy.creation import placed
from tracegraph.numpy.dispatching.dispatch import as_array, copied, is_ours, lifted, numpy_function
from tracegraph.numpy.dispatching.statics import static_parameters
from tracegraph.numpy.elementwise import astype
from tracegraph.numpy.flips import roll
from tracegraph.numpy.ufuncs import multiply, true_divide

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]


@static_parameters
def fftfreq(
    n: int, d: Any = 1.0, device: str | None = None, *, dtype: DTypeLike | None = None
) -> Any:
    """The frequencies of the elements of `fft`, in cycles per unit of the sample spacing `d`.

    Shape: (n,).
    Dtype: float64, or `dtype`.

    Raises:
        ValueError: `n` is not an integer.
        ZeroDivisionError: `n` or `d` is 0, and not traced.

    >>> tnp.fft.fftfreq(4, 0.5)
    array([ 0. ,  0.5, -1. , -0.5])
    """
    n = _count(n)
    half = (n - 1) // 2 + 1
    numbers = np.concatenate([np.arange(half), np.arange(-(n // 2), 0)])
    return _scaled(numbers, n, d, device, dtype)


@static_parameters
def rfftfreq(
    n: int, d: Any = 1.0, device: str | None = None, *, dtype: DTypeLike | None = None
) -> Any:
    """The frequencies of the elements of `rfft`, in cycles per unit of the sample spacing `d`.

    Shape: (n // 2 + 1,).
    Dtype: float64, or `dtype`.

    Raises:
        ValueError: `n` is not an integer.
        ZeroDivisionError: `n` or `d` is 0, and not traced.

    >>> tnp.fft.rfftfreq(4, 0.5)
    array([0. , 0.5, 1. ])
    """
    n = _count(n)
    return _scaled(np.arange(n // 2 + 1), n, d, device, dtype)


def _count(n: int) -> int:
    if not hasattr(n, "__index__"):
        raise ValueError("n should be an integer")
    return index(n)


def _scaled(numbers: Any, n: int, d: Any, device: str | None, dtype: DTypeLike | None) -> Any:
    unit = true_divide(1.0, multiply(n, d)) if is_ours([d]) else 1.0 / (n * d)
    found = multiply(numbers, unit)
    found = found if dtype is None else astype(found, dtype)
    return placed(copied(lifted(found)), device)


@numpy_function
def fftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """The frequency 0 moved to the middle of the axes, of all by default.

    Shape: that of `x`.
    Dtype: that of `x`.

    Raises:
        IndexError: an axis is out of range.

    >>> tnp.fft.fftshift([0, 1, -2, -1])
    array([-2, -1,  0,  1])
    """
    return _shifted(as_array(x), axes, 1)


@numpy_function
def ifftshift(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    """The inverse of `fftshift`: from the middle of the axes, frequency 0 is moved to their start.

    Shape: that of `x`.
    Dtype: that of `x`.

    Raises:
        IndexError: an axis is out of range.

    >>> tnp.fft.ifftshift([-2, -1, 0, 1])
    array([ 0,  1, -2, -1])
    """
    return _shifted(as_array(x), axes, -1)


def _shifted(x: Any, axes: int | Sequence[int] | None, sign: int) -> Any:
    if axes is None:
        axes = range(x.ndim)
    chosen = [index(axes)] if hasattr(axes, "__index__") else [*axes]
    return roll(x, [sign * (x.shape[k] // 2) for k in chosen], tuple(chosen))
