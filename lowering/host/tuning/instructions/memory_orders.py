"""The order of elements in memory: which dimension is the innermost, which strides are negative."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from lowering.host.evaluation.instructions import (
    DynamicView,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    View,
)
from tracegraph.ir.types import row_major_strides


def memory_order(value: NumpyValue) -> tuple[int, ...] | None:
    """The dimensions from the outermost to the innermost in memory; None for row-major."""
    if isinstance(value, Temporary):
        return value.order
    if isinstance(value, ReversedTemporary):
        return value.base.order
    if not isinstance(value, View | DynamicView) or value.strides is None:
        return None
    strides = [abs(stride) for stride in value.strides]
    ranked = [dim for dim, extent in enumerate(value.shape) if extent > 1 and strides[dim]]
    if all(strides[a] >= strides[b] for a, b in pairwise(ranked)):
        return None
    flat = [dim for dim in range(len(strides)) if dim not in ranked]
    return (*flat, *sorted(ranked, key=lambda dim: -strides[dim]))


def innermost(value: NumpyValue) -> int | None:
    """The dimension with the smallest stride, among those of more than one element."""
    order = memory_order(value) or range(len(value.shape))
    return next((dim for dim in reversed(order) if value.shape[dim] > 1), None)


def is_contiguous(value: NumpyValue) -> bool:
    """Whether the elements fill a range of memory, with positive strides."""
    if not isinstance(value, View):
        return isinstance(value, Temporary)
    order = memory_order(value) or range(len(value.shape))
    dense = row_major_strides(tuple(value.shape[dim] for dim in order))
    size = value.dtype.itemsize
    return all(
        value.shape[dim] == 1 or value.strides[dim] == step * size
        for dim, step in zip(order, dense, strict=True)
    )


def reversed_view(view: View, along: Iterable[int]) -> View:
    """The same elements with the strides of these dimensions negated."""
    last = sum((view.shape[dim] - 1) * view.strides[dim] for dim in along)
    strides = tuple(-s if dim in along else s for dim, s in enumerate(view.strides))
    return replace(view, strides=strides, offset=view.offset + last)


def negative_dims(value: NumpyValue) -> frozenset[int]:
    """The dimensions with a negative stride."""
    match value:
        case View(shape=shape, strides=strides) | DynamicView(shape=shape, strides=tuple(strides)):
            each = enumerate(zip(shape, strides, strict=True))
            return frozenset(dim for dim, (n, stride) in each if n > 1 and stride < 0)
        case ReversedTemporary(along=along):
            return along
    return frozenset()


def normalized(value: NumpyValue, dims: Iterable[int]) -> NumpyValue:
    """The same elements with positive strides along these dimensions, if that is a view."""
    negative = negative_dims(value).intersection(dims)
    if not negative or isinstance(value, DynamicView):
        return value
    if isinstance(value, View):
        return reversed_view(value, negative)
    assert isinstance(value, ReversedTemporary)
    left = value.along - negative
    return ReversedTemporary.of(value.base, left) if left else value.base
