"""Histograms: how many elements, or which sum of weights, each bin has."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from tracegraph.arrays.eager import as_numpy
from tracegraph.errors import ShapeDependentError
from tracegraph.ir.types import result_type, type_of
from tracegraph.numpy.axes import transpose
from tracegraph.numpy.counting import bincount
from tracegraph.numpy.differences import diff
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    is_ours,
    lifted,
    numpy_function,
    unchecked,
)
from tracegraph.numpy.dispatching.statics import tracers_in
from tracegraph.numpy.elementwise import imag, real, where
from tracegraph.numpy.generated import linspace
from tracegraph.numpy.grids import require_size
from tracegraph.numpy.joining import stack
from tracegraph.numpy.reductions import max, min, sum
from tracegraph.numpy.searching import count_before
from tracegraph.numpy.shapes import reshape
from tracegraph.numpy.ufuncs import (
    add,
    divide,
    equal,
    greater_equal,
    less_equal,
    logical_and,
    multiply,
    subtract,
)
from tracegraph.tracing.tracer import Tracer

__all__ = ["histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]

Range = tuple[Any, Any] | None


@numpy_function
def histogram_bin_edges(a: Any, bins: Any = 10, range: Range = None, weights: Any = None) -> Any:
    """The edges of the bins that `histogram` uses.

    `bins` is the number of bins, or their edges. The range is by default that of the elements.

    Shape: one axis, one more than there are bins.
    Dtype: that of floating-point elements, else float64; of given edges, theirs.

    Raises:
        ShapeDependentError: the number of bins is to be estimated from traced elements.
        ValueError: there is no bin, static edges fall, or a static range is empty or not finite.
        TypeError: `bins` is neither an integer nor an array.

    >>> tnp.histogram_bin_edges([1.0, 2.0, 5.0], bins=2)
    array([1., 3., 5.])
    """
    return _edges(_elements(a), bins, range)


@numpy_function
def histogram(
    a: Any, bins: Any = 10, range: Range = None, density: bool | None = None, weights: Any = None
) -> tuple[Any, Any]:
    """How many elements are in each bin, and the edges of the bins.

    `bins` is the number of bins, or their edges. A bin includes its lower edge; the last bin also
    includes its upper edge. Elements outside of all bins are not counted, nor is NaN.

    Shape: one axis of the bins, and one of the edges.
    Dtype: int64, or that of the weights; float64 with `density`.

    Raises:
        ShapeDependentError, TypeError: as `histogram_bin_edges`.
        ValueError: as there, or the weights have another shape.

    >>> tnp.histogram([1.0, 2.0, 5.0], bins=2)
    (array([2, 1]), array([1., 3., 5.]))
    """
    a = as_array(a)
    if weights is not None:
        weights = as_array(weights)
        if weights.shape != a.shape:
            raise ValueError("weights should have the same shape as a.")
        weights = reshape(weights, (-1,))
    a = _elements(a)
    edges = _edges(a, bins, range)
    count = edges.shape[0] - 1
    found = _weighed(_bins_of(a, edges), weights, count)
    if not density:
        return found, edges
    widths = as_array(diff(edges), np.float64)
    return divide(divide(found, widths), sum(found)), edges


@numpy_function
def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Range] | None = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Any, Any]:
    """How many points are in each box of a grid, and the edges of the boxes for each axis.

    `sample` has a point in each row, or is a list of coordinates, an array for each axis. `bins`
    and `range` are as in `histogram`, one for all axes or one for each.

    Shape: the numbers of bins; a list of edges.
    Dtype: float64.

    Raises:
        TypeError: a number of bins is not an integer, or the weights do not convert to float64.
        ValueError: there is not one entry for each axis, or as in `histogram_bin_edges`.

    >>> tnp.histogramdd([[0.0, 1.0], [1.0, 0.0]], bins=2)[0]
    array([[0., 1.],
           [1., 0.]])
    """
    columns = _columns(sample)
    rank = len(columns)
    bins_of_axes = [bins] * rank if _is_number(bins) else [*bins]
    if len(bins_of_axes) != rank:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * rank if range is None else [*range]
    if len(ranges) != rank:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_axis_edges(*of_axis) for of_axis in zip(columns, bins_of_axes, ranges, strict=True)]
    counts = [e.shape[0] - 1 for e in edges]
    box: Any = None
    inside: Any = True
    for column, own, count in zip(columns, edges, counts, strict=True):
        at = _bins_of(column, own)
        inside = logical_and(inside, less_equal(at, count - 1))
        box = at if box is None else add(multiply(box, count), at)
    total = prod(counts)
    require_size(counts)
    box = where(inside, box, total)
    histogram = bincount(box, weights, length=total)
    histogram = reshape(as_array(histogram, np.float64), tuple(counts))
    if density:
        number = sum(histogram)
        for axis, own in enumerate(edges):
            widths = reshape(diff(own), (-1,) + (1,) * (rank - 1 - axis))
            histogram = divide(histogram, widths)
        histogram = divide(histogram, number)
    return histogram, edges


@numpy_function
def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Sequence[Range] | None = None,
    density: bool | None = None,
    weights: Any = None,
) -> tuple[Any, Any, Any]:
    """How many points (x, y) are in each box of a grid, and its edges along x and y.

    `bins` is a number or edges for both axes, or a pair of these.

    Shape: the numbers of bins; one axis of edges each.
    Dtype: float64.

    Raises:
        TypeError: as `histogramdd`.
        ValueError: as there, or x and y differ in length.

    >>> tnp.histogram2d([0.0, 0.5, 1.0], [0.0, 1.0, 1.0], bins=2)[0]
    array([[1., 0.],
           [0., 2.]])
    """
    x, y = as_array(x), as_array(y)
    if x.shape[:1] != y.shape[:1]:
        raise ValueError("x and y must have the same length.")
    if not _is_number(bins) and len(bins) not in (1, 2):
        bins = [as_array(bins)] * 2
    found, edges = histogramdd([x, y], bins, range, density, weights)
    return found, *edges


def _is_number(bins: Any) -> bool:
    return not isinstance(bins, (list, tuple)) and np.ndim(bins) == 0


def _elements(a: Any) -> Any:
    a = as_array(a)
    return reshape(unchecked(a, np.uint8) if a.dtype == np.bool_ else a, (-1,))


def _columns(sample: Any) -> list[Any]:
    """The coordinates of the points along each axis."""
    if isinstance(sample, (list, tuple)):
        sample = transpose(stack([reshape(as_array(column), (-1,)) for column in sample]))
    sample = as_array(sample)
    if sample.ndim == 2:
        return [sample[:, k] for k in range(sample.shape[1])]
    return [reshape(sample, (-1,))]


def _edges(a: Any, bins: Any, range: Range) -> Any:
    if isinstance(bins, str):
        if isinstance(a, Tracer) or is_ours(range or ()):
            raise ShapeDependentError(
                a if isinstance(a, Tracer) else next(tracers_in(range)),
                f"numpy.histogram with bins={bins!r}",
                "numpy.histogram(x, bins=n)",
            )
        return np.histogram_bin_edges(as_numpy(a), bins, range)
    if is_ours((bins,)) and not _is_number(bins):
        edges = as_array(bins)
        if edges.ndim != 1:
            raise ValueError("`bins` must be 1d, when an array")
        return edges
    bins = index(bins) if isinstance(bins, Tracer) else bins  # raises, as it decides a shape
    known = a if isinstance(a, np.ndarray) else np.empty(0, a.dtype)
    is_given = range is not None and not is_ours(range)
    edges = np.histogram_bin_edges(known, bins, range if is_given else None)  # raises for bad ones
    is_found = range is None and known.size == a.size
    if is_given or is_found or not _is_number(bins):
        return edges
    dtype = np.dtype(np.float64) if a.dtype.kind in "iu" else a.dtype
    if range is not None:
        dtype = result_type(*map(type_of, range), type_of(a))
        dtype = np.dtype(np.float64) if dtype.kind in "iu" else dtype
    return linspace(*_ends(a, range), index(bins) + 1, dtype=dtype)


def _ends(a: Any, range: Range) -> tuple[Any, Any]:
    """The range, that of the elements by default; an empty one becomes 1 wide."""
    first, last = (min(a), max(a)) if range is None else range
    if a.dtype.kind in "iu":
        first, last = as_array(first, np.float64), as_array(last, np.float64)
    half = where(equal(first, last), 0.5, 0.0)
    half = as_array(half, first.dtype) if hasattr(first, "dtype") else half
    return subtract(first, half), add(last, half)


def _axis_edges(column: Any, bins: Any, range: Range) -> Any:
    """The edges along one axis of a grid: float64, or of the dtype of the ends or given edges."""
    if not _is_number(bins):
        return _edges(column, bins, None)
    bins = index(bins) if isinstance(bins, Tracer) else bins
    np.histogramdd(np.empty((0, 1)), [bins])  # raises for a wrong number of bins
    if range is not None and not is_ours(range):
        return np.histogramdd(np.empty((0, 1)), [bins], [range])[1][0]
    if column.size == 0 and range is None:
        return np.linspace(0, 1, index(bins) + 1)
    return linspace(*_ends(column, range), index(bins) + 1)


def _bins_of(a: Any, edges: Any) -> Any:
    """The number of the bin of each element; the number of bins for elements outside of all."""
    count = edges.shape[0] - 1
    dtype = result_type(type_of(a), type_of(edges))
    a, edges = as_array(lifted(a), dtype), as_array(lifted(edges), dtype)
    at = subtract(count_before(edges, a, "right"), 1)
    last = edges[-1]
    at = where(equal(a, last), count - 1, at)
    inside = logical_and(greater_equal(a, edges[0]), less_equal(a, last))
    return where(inside, at, count)


def _weighed(bins: Any, weights: Any, count: int) -> Any:
    """How many elements each bin has, or the sums of their weights, in the dtype of these."""
    if weights is None or weights.dtype.kind != "c":
        found = bincount(bins, weights, length=count)
        return found if weights is None else as_array(found, weights.dtype)
    parts = [bincount(bins, part(weights), length=count) for part in (real, imag)]
    return as_array(add(parts[0], multiply(parts[1], 1j)), weights.dtype)
