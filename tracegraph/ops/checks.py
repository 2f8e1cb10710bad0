"""Checks of type rules on axes, counts, dtypes and extents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tracegraph.ir.types import ArrayType


def check_axes(op: str, axes: Sequence[int], ndim: int) -> None:
    """Require sorted, distinct axes of an array of `ndim` axes.

    Raises:
        ValueError: an axis out of range, repeated, or out of order.
    """
    if any(not 0 <= axis < ndim for axis in axes):
        raise ValueError(f"{op}: axes {tuple(axes)} must lie in 0..{ndim - 1} for {ndim} axes")
    if any(a >= b for a, b in pairwise(axes)):
        raise ValueError(f"{op}: axes {tuple(axes)} must be sorted and distinct")


def check_count(op: str, what: str, given: Sequence[object], count: int) -> None:
    """Require `count` entries of what errors call `what`.

    Raises:
        ValueError: another number of entries.
    """
    if len(given) != count:
        raise ValueError(f"{op}: {what} must have {count} entries, got {tuple(given)}")


def check_same_dtype(op: str, *types: ArrayType) -> None:
    """Require operands of one dtype.

    Raises:
        TypeError: the dtypes differ.
    """
    if any(t.dtype != types[0].dtype for t in types):
        listed = ", ".join(map(str, types))
        raise TypeError(f"{op}: operands must have one dtype, got {listed}; cast them first")


def check_indices(op: str, indices: Sequence[ArrayType], shape: tuple[int, ...]) -> None:
    """Require integer arrays of one shape.

    Raises:
        TypeError: an index is not an integer.
        ValueError: an index has another shape.
    """
    for type_ in indices:
        if type_.dtype.kind not in "iu":
            raise TypeError(f"{op}: an index must be of integer dtype, got {type_}")
        if type_.shape != shape:
            raise ValueError(f"{op}: indices must have shape {shape}, got {type_}")


def check_distinct(op: str, distinct: int, shape: tuple[int, ...]) -> None:
    """Require a number of trailing axes of indices of this shape.

    Raises:
        ValueError: it is negative, or greater than the number of axes.
    """
    if not 0 <= distinct <= len(shape):
        raise ValueError(f"{op}: distinct must be 0..{len(shape)}, got {distinct}")


def check_strided_range(op: str, axis: int, extent: int, start: int, step: int, size: int) -> None:
    """Require start, start + step, … (`size` of them) to lie within an axis.

    Raises:
        ValueError: the step is zero, the size negative, or an end out of range.
    """
    if step == 0 or size < 0:
        raise ValueError(
            f"{op}: axis {axis} needs a step other than 0 and a size of at least 0, "
            f"got step {step} and size {size}"
        )
    last = start + (size - 1) * step
    if size and not (0 <= start < extent and 0 <= last < extent):
        raise ValueError(
            f"{op}: axis {axis} of extent {extent} has no elements {start} to {last} "
            f"(start {start}, step {step}, size {size})"
        )
