"""Distinct elements, for arrays whose elements are known: how many there are depends on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.arrays.creation import asarray
from tracegraph.numpy.dispatch import as_array, numpy_function
from tracegraph.tracing.tracer import Tracer


@numpy_function
def unique_all(x: Any, /) -> Any:
    """The distinct elements in ascending order, their first positions, places, and counts.

    Shape: one axis of each result; that of `x` of the places, `inverse_indices`.
    Dtype: that of `x`; int64 of positions, places and counts.

    Raises:
        ShapeDependentError: `x` is traced.

    >>> tnp.unique_all([2, 1, 2]).indices
    array([1, 0])
    """
    return _found("unique_all", x)


@numpy_function
def unique_counts(x: Any, /) -> Any:
    """The distinct elements in ascending order, and how often each occurs.

    Shape: one axis.
    Dtype: that of `x`; int64 of counts.

    Raises:
        ShapeDependentError: `x` is traced.

    >>> tnp.unique_counts([2, 1, 2]).counts
    array([1, 2])
    """
    return _found("unique_counts", x)


@numpy_function
def unique_inverse(x: Any, /) -> Any:
    """The distinct elements in ascending order, and for each element its place among them.

    Shape: one axis; that of `x` of the places, `inverse_indices`.
    Dtype: that of `x`; int64 of places.

    Raises:
        ShapeDependentError: `x` is traced.

    >>> tnp.unique_inverse([2, 1, 2]).inverse_indices
    array([1, 0, 1])
    """
    return _found("unique_inverse", x)


@numpy_function
def unique_values(x: Any, /) -> Any:
    """The distinct elements.

    Shape: one axis.
    Dtype: that of `x`.

    Raises:
        ShapeDependentError: `x` is traced.

    >>> np.sort(tnp.unique_values([2, 1, 2]))
    array([1, 2])
    """
    return _found("unique_values", x)


def _found(name: str, x: Any) -> Any:
    """What NumPy's function gives for an Array, as Arrays where that is."""
    x = as_array(x)
    if isinstance(x, Tracer):
        raise errors.ShapeDependentError(x, f"numpy.{name}")
    results = getattr(np, name)(np.asarray(x))
    if isinstance(results, np.ndarray):
        return asarray(results, device=x.device)
    return type(results)(*(asarray(r, device=x.device) for r in results))
