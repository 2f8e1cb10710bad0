"""Operands of the functions of networks: real arrays of floating point."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

import tracegraph.numpy as tnp
from tracegraph.dtypes import bfloat16
from tracegraph.numpy.dispatching.dispatch import as_array

_F = TypeVar("_F", bound=Callable[..., Any])

_HALF = (np.dtype(np.float16), bfloat16)


def real(function: str, x: Any) -> Any:
    """An array of real numbers.

    Raises:
        TypeError: it is complex.
    """
    x = as_array(x)
    if x.dtype.kind == "c":
        raise TypeError(f"nn.{function} takes real numbers, got {x.dtype}")
    return x


def floating(function: str, x: Any) -> Any:
    """An array of floating point; integers become float64.

    Raises:
        TypeError: it is complex.
    """
    x = real(function, x)
    return as_array(x, np.float64) if x.dtype.kind in "biu" else x


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """`x` where the condition holds, else `y`; numbers take the dtype of the array."""
    dtype = getattr(x, "dtype", None) or y.dtype
    one, other = (as_array(z, dtype) if isinstance(z, (int, float)) else z for z in (x, y))
    return tnp.where(condition, one, other)


def between(x: Any, low: float, high: float) -> Any:
    """`x`, and the nearer bound where it is outside, with slope 0 there, and 1 at a bound."""
    return chosen(x > high, high, chosen(x < low, low, x))


def of_floats(function: _F) -> _F:
    """A function of an array of floating point first, that of any numbers.

    float16 and bfloat16 are computed in float32. There are no warnings of NumPy's.
    """

    @wraps(function)
    def called(x: Any, *args: Any, **kwargs: Any) -> Any:
        x = floating(function.__name__, x)
        with np.errstate(all="ignore"):
            if x.dtype not in _HALF:
                return function(x, *args, **kwargs)
            return as_array(function(as_array(x, np.float32), *args, **kwargs), x.dtype)

    return cast(_F, called)
