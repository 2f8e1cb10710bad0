"""Checks of traced indices, in `tracegraph.check_indices` blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tracegraph.errors import index_range_text
from tracegraph.ir.effects import Failure, require_allowed
from tracegraph.ir.op import get
from tracegraph.modes import are_indices_checked
from tracegraph.numpy import ufuncs
from tracegraph.numpy.dispatch import as_array
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


def _is_in_range(index: Tracer, first: int, end: int) -> Any:
    wide: Any = np.uint64 if index.dtype.kind == "u" else np.int64
    index = as_array(index, wide)
    inside = ufuncs.less(index, wide(end))
    if index.dtype.kind == "i":
        inside = ufuncs.logical_and(inside, ufuncs.greater_equal(index, wide(first)))
    return inside if index.ndim == 0 else inside.all()
