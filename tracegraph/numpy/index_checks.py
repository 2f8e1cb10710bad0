"""Checks of traced indices, in `tracegraph.check_indices` blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph.arrays.eager import apply
from tracegraph.errors import RepeatedIndexError, index_range_text, repeated_index_text
from tracegraph.ir.effects import Failure, require_allowed
from tracegraph.ir.op import get
from tracegraph.modes import are_indices_checked
from tracegraph.numpy import ufuncs
from tracegraph.numpy.creation import full
from tracegraph.numpy.dispatching.dispatch import as_array, lifted
from tracegraph.numpy.shapes import broadcast_to
from tracegraph.tracing.trace import current_trace
from tracegraph.tracing.tracer import Tracer
from tracegraph.user_source import user_source


def require_in_range(
    arrays: Mapping[int, Any], shape: tuple[int, ...], unchecked: str, *, from_end: bool = True
) -> None:
    """Record that the traced ones of these indices into axes must be in range.

    Does nothing outside of a `check_indices` block. `unchecked` says what happens there. Negative
    indices count `from_end`, or are out of range.

    Raises:
        EffectInConditionError: it is in the condition of a loop.
    """
    if not are_indices_checked():
        return
    trace = current_trace()
    for axis, index in arrays.items():
        if trace is None or not isinstance(index, Tracer):
            continue
        require_allowed(
            "a checked index (of a check_indices block; check_indices(False) exempts it)"
        )
        message = index_range_text(index, axis, shape[axis], unchecked)
        failure = Failure("IndexRangeError", message, user_source())
        first = -shape[axis] if from_end else 0
        is_in_range = _is_in_range(index, first, shape[axis])
        trace.perform(get("require"), [is_in_range], {"failure": failure})


def require_distinct(arrays: Sequence[Any], shape: Sequence[int], extents: Sequence[int]) -> None:
    """Check the promise that index arrays, broadcast to a shape, name no element twice.

    `extents` are those of the indexed axes. NumPy's arrays are checked at once. If one is traced,
    a `check_indices` block records the check, which counts how often each element is named.

    Raises:
        RepeatedIndexError: NumPy's arrays name an element twice.
        EffectInConditionError: traced ones are in the condition of a loop.
    """
    trace = current_trace()
    if all(isinstance(array, np.ndarray) for array in arrays):
        _require_distinct_now(arrays, shape, extents)
        return
    if trace is None or not any(isinstance(array, Tracer) for array in arrays):
        return
    if not are_indices_checked() or prod(shape) < 2:
        return
    require_allowed("a checked index (of a check_indices block; check_indices(False) exempts it)")
    failure = Failure("RepeatedIndexError", repeated_index_text(), user_source())
    indices = [broadcast_to(lifted(as_array(array, np.int64)), tuple(shape)) for array in arrays]
    none, ones = full(tuple(extents), np.int32(0)), full(tuple(shape), np.int32(1))
    every_axis = {"dims": tuple(range(len(extents))), "starts": (), "steps": ()}
    counts = apply(get("scatter_add"), none, ones, *indices, **every_axis)
    trace.perform(get("require"), [ufuncs.less(counts, 2).all()], {"failure": failure})


def _require_distinct_now(
    arrays: Sequence[np.ndarray[Any, Any]], shape: Sequence[int], extents: Sequence[int]
) -> None:
    wrapped = [np.where(i < 0, i + n, i) for i, n in zip(arrays, extents, strict=True)]
    places = np.ravel_multi_index([np.broadcast_to(i, shape) for i in wrapped], extents)
    if np.unique(places).size < places.size:
        raise RepeatedIndexError(repeated_index_text())


def _is_in_range(index: Tracer, first: int, end: int) -> Any:
    wide: Any = np.uint64 if index.dtype.kind == "u" else np.int64
    index = as_array(index, wide)
    inside = ufuncs.less(index, wide(end))
    if index.dtype.kind == "i":
        inside = ufuncs.logical_and(inside, ufuncs.greater_equal(index, wide(first)))
    return inside if index.ndim == 0 else inside.all()
