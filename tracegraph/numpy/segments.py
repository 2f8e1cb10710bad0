"""Segmented reduction: `np.add.reduceat(x, starts)`, as a gather and a fold.

Each segment is gathered into a row, padded with the identity, and the rows are folded.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph import numpy as functions
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.dispatching.ufunc_methods import (
    OF_MAGNITUDES,
    REDUCTIONS,
    combiner_of,
)
from tracegraph.numpy.elementwise import where as choose
from tracegraph.numpy.index_checks import require_in_range
from tracegraph.numpy.ordered_folds import folded_in_order
from tracegraph.numpy.reductions import folded, in_fold_dtype, masked
from tracegraph.tracing.operators import ArrayOperators


def reduceat(
    ufunc: np.ufunc,
    array: Any,
    indices: Any,
    axis: int | None = 0,
    dtype: DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """`ufunc.reduceat`: elements folded from each index up to the next, along an axis.

    The last segment goes up to the end. Where an index is not less than the next one, the result is
    the element there. Segments with static bounds are gathered with others of about their length,
    so that at most twice the elements of all are read. With traced bounds each may be as long as
    the axis, and so much is read for each; bounds out of range are clamped.

    Raises:
        IndexError: a static index is out of range, or the axis has no elements.
        TypeError: there is no axis, the indices are not integers, or the ufunc does not combine
            values of this dtype.
        ValueError: there is not one axis of indices, or more than one axis to fold.
    """
    combiner = combiner_of(ufunc, "reduceat")
    label = f"{ufunc.__name__}.reduceat"
    array = as_array(array)
    if array.ndim == 0:
        raise TypeError("cannot reduceat on a scalar")
    axes = tuple(range(array.ndim)) if axis is None else axis
    axes = axes if isinstance(axes, tuple) else (axes,)
    if len(axes) != 1:
        raise ValueError("reduceat does not allow multiple axes")
    k = normalize_axis_index(operator.index(axes[0]), array.ndim)
    a = functions.moveaxis(lifted(in_fold_dtype(ufunc, array, dtype, out)), k, 0)
    traced = isinstance(indices, ArrayOperators)
    starts = as_array(indices) if traced else _static(indices)
    if starts.ndim != 1:
        raise ValueError(f"the indices of {label} have one axis, got the shape {starts.shape}")
    if starts.dtype.kind not in "iub":
        raise TypeError(f"the indices of {label} are integers, got {starts.dtype}")
    size = a.shape[0]
    if size == 0 and starts.shape[0]:
        raise IndexError(f"index 0 out-of-bounds in {label} [0, 0)")
    if traced:
        require_in_range({0: starts}, (size,), "starts are limited to it", from_end=False)
        starts = functions.clip(as_array(starts, np.int64), 0, max(size - 1, 0))
        ends = functions.append(starts[1:], size)[: starts.shape[0]]
        result = _folded(ufunc, combiner, a, starts, functions.maximum(ends - starts, 1), size)
    else:
        result = _in_groups(ufunc, combiner, a, _in_range(starts, size, label))
    return stored(label, functions.moveaxis(result, 0, k), out, "unsafe")


def _static(indices: Any) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Indices as NumPy converts them: an array if that loses nothing, numbers like `int`."""
    if isinstance(indices, np.ndarray):
        return indices.astype(np.intp, casting="safe")
    return np.array(indices, np.intp)


def _in_range(starts: Any, size: int, label: str) -> Any:
    outside = starts[(starts < 0) | (starts >= size)]
    if outside.size:
        raise IndexError(f"index {outside[0]} out-of-bounds in {label} [0, {size})")
    return starts


def _in_groups(ufunc: np.ufunc, combiner: Any, a: Any, starts: Any) -> Any:
    """The folds of segments with static bounds, grouped by the power of two above their lengths."""
    lengths = np.maximum(np.append(starts[1:], a.shape[0])[: starts.size] - starts, 1)
    classes = np.ceil(np.log2(lengths)).astype(int)
    groups = [np.flatnonzero(classes == each) for each in np.unique(classes)]
    if not groups:
        return a[:0]
    parts = [
        _folded(ufunc, combiner, a, starts[group], lengths[group], int(lengths[group].max()))
        for group in groups
    ]
    if len(parts) == 1:
        return parts[0]
    return functions.concatenate(parts)[np.argsort(np.concatenate(groups))]


def _folded(ufunc: np.ufunc, combiner: Any, a: Any, starts: Any, lengths: Any, longest: int) -> Any:
    """Elements folded along the first axis: `lengths` of them, at least one, from each start."""
    first = a[starts]
    if longest <= 1:
        return first
    places, ones = np.arange(longest), (1,) * (a.ndim - 1)
    rows = a[functions.minimum(starts[:, None] + places, a.shape[0] - 1)]
    within = functions.reshape(places < lengths[:, None], (*rows.shape[:2], *ones))
    if combiner is None:
        later, is_later = (functions.moveaxis(x[:, 1:], 1, 0) for x in (rows, within))
        return folded_in_order(ufunc, first, later, is_later)
    if combiner.name in OF_MAGNITUDES:
        rows = functions.absolute(rows)
    rows = masked(rows, within, combiner.identity(a.dtype))
    result = folded(REDUCTIONS.get(combiner.name, f"{combiner.name}_reduce"), rows, (1,), False)
    return choose(functions.reshape(lengths == 1, (-1, *ones)), first, result)
