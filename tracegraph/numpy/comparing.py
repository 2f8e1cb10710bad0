"""Comparisons of whole arrays: allclose, array_equal, array_equiv."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.ir.types import broadcast_shapes
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.elementwise import isclose
from tracegraph.numpy.reductions import all
from tracegraph.numpy.ufuncs import equal, isnan, logical_and

__all__ = ["allclose", "array_equal", "array_equiv"]


@numpy_function
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close, by the rule of `isclose`.

    Shape: scalar.
    Dtype: bool.

    Raises:
        ValueError: the shapes do not broadcast.

    >>> tnp.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
    True
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


@numpy_function
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have the same shape and elements.

    Shape: scalar.
    Dtype: bool.

    >>> tnp.array_equal([1, 2], [1, 2])
    True
    """
    a1, a2 = as_array(a1), as_array(a2)
    if a1.shape != a2.shape:
        return False
    same = equal(a1, a2)
    if equal_nan:
        same = same | logical_and(isnan(a1), isnan(a2))
    return all(same)


@numpy_function
def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two arrays have the same elements once they are broadcast.

    Shape: scalar.
    Dtype: bool.

    >>> tnp.array_equiv([1, 2], [[1, 2], [1, 2]])
    True
    """
    a1, a2 = as_array(a1), as_array(a2)
    try:
        broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return all(equal(a1, a2))


def compared_with_no_number(x: Any, otherwise: bool) -> Any:
    """`x == None`, of an array: False for each element, which is known even while tracing."""
    found = np.full(x.shape, otherwise)
    return Array.sharing(found) if type(x) is Array else found
