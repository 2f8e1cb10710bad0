"""Layouts of results: NumPy lays out `x.T + 1` by columns, as its operand is.

That decides what `ravel("K")` reads, and whether `reshape` and `ravel` are views of the result. A
result that is not laid out by rows has its axes in the order of falling strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tracegraph.ir.op import Elementwise, Op, Reduction, Scan
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.tracer import Tracer
from tracegraph.tracing.views import (
    by_strides,
    has_layout,
    is_column_major,
    memory_order,
    strides_of,
)

Ints = tuple[int, ...]


def result_order(op: Op, args: Sequence[Any], attrs: Mapping[str, Any], shape: Ints) -> Ints | None:
    """The axes of an op's result by falling strides, as NumPy lays it out; None if by rows."""
    if not any(has_layout(x) and x.axis_order is not None for x in args):
        return None
    if isinstance(op.form, (Elementwise, Scan)) or op.name in ("concatenate", "sort", "roll"):
        laid_out = [found for x in args if (found := _layout(x)) is not None]
        return _met(tuple(laid_out), len(shape)) if laid_out else None
    if isinstance(op.form, Reduction) and has_layout(args[0]) and not op.name.startswith("arg"):
        kept = [axis for axis in memory_order(args[0]) if axis not in attrs["axes"]]
        left = sorted(kept)
        return _unless_sorted(tuple(left.index(axis) for axis in kept))
    return None


def set_order(result: Tracer, order: Ints | None) -> None:
    """Lay a new result out with its axes in an order by falling strides; None: by rows."""
    result.axis_order = order
    if order is not None:
        result.owner.uses.transposes = True


def copy_order(x: Any, order: str) -> Ints | None:
    """The order of the axes of a new array for `x` and an order of NumPy's: C, F, A or K."""
    if order == "K":
        return packed_order(strides_of(x) if has_layout(x) else x.strides)
    in_columns = order == "F" or (order == "A" and has_layout(x) and is_column_major(x))
    return _unless_sorted(tuple(range(x.ndim))[::-1]) if in_columns else None


def packed_order(strides: Ints) -> Ints | None:
    """The order of the axes of a new array, for which these strides stand; None: by rows."""
    return _unless_sorted(by_strides(strides))


def reading_order(x: Tracer) -> Ints:
    """The axes in the order in which `ravel("K")` reads elements; repeated ones as by rows."""
    laid_out = _layout(x)
    found = None if laid_out is None else _met((laid_out,), x.ndim)
    return tuple(range(x.ndim)) if found is None else found


def _unless_sorted(order: Ints) -> Ints | None:
    return None if order == tuple(range(len(order))) else order


def _layout(x: Any) -> tuple[Ints, Ints] | None:
    """Extents and strides, in elements or bytes, of an operand that has axes."""
    if has_layout(x):
        return (x.shape, strides_of(x)) if x.shape else None
    is_array = isinstance(x, (np.ndarray, ArrayOperators))
    return (x.shape, x.strides) if is_array and x.shape else None


@lru_cache(maxsize=1024)
def _met(operands: tuple[tuple[Ints, Ints], ...], rank: int) -> Ints | None:
    """The order that NumPy's iterator gives a result of operands with these layouts."""
    one = np.empty((), np.int8)  # never read
    arrays: list[Any] = [
        as_strided(one, [min(n, 2) or 2 for n in shape], strides) for shape, strides in operands
    ]
    flags: Any = [["readonly"]] * len(arrays) + [["writeonly", "allocate"]]
    result = np.nditer([*arrays, None], None, flags, order="K").operands[-1]
    wide = [axis for axis in range(rank) if result.shape[axis] > 1]
    by_strides = iter(sorted(wide, key=lambda axis: -result.strides[axis]))
    order = tuple(next(by_strides) if axis in wide else axis for axis in range(rank))
    return _unless_sorted(order)
