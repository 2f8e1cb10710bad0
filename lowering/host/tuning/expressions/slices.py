"""Views as slices: indexing takes a third of the time of the ndarray constructor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from lowering.host.evaluation.instructions import View
from tracegraph.ir.types import row_major_strides

Index = tuple[Any, ...]
"""An index of slices, numbers and None. It ends with an ellipsis: without one, an index of numbers
gives a scalar instead of an array."""


def slices_of(view: View) -> Index | None:
    """The index that makes the view from its buffer's array; None if slices cannot."""
    type_ = view.buffer.type
    size = type_.dtype.itemsize
    if view.dtype != type_.dtype or prod(type_.shape) == 0 or prod(view.shape) == 0:
        return None
    steps = row_major_strides(type_.shape)
    firsts = _position(view.offset // size, steps)
    index, dim = list[Any](), 0
    for first, step, extent in zip(firsts, steps, type_.shape, strict=True):
        dim = _skipped(view, dim, index)
        stride = view.strides[dim] // size if dim < len(view.shape) else 0
        if extent == 1 or not stride or stride % step:
            index.append(first)
            continue
        factor = stride // step
        last = first + factor * (view.shape[dim] - 1)
        if not 0 <= last < extent:
            index.append(first)
            continue
        index.append(_slice(first, last, factor, extent))
        dim += 1
    dim = _skipped(view, dim, index)
    return (*index, ...) if dim == len(view.shape) else None


def _skipped(view: View, dim: int, index: list[Any]) -> int:
    """The next dimension of more than one element; those of one become None in the index."""
    while dim < len(view.shape) and view.shape[dim] == 1:
        index.append(None)
        dim += 1
    return dim


def _position(offset: int, steps: Sequence[int]) -> Iterator[int]:
    """The index of the element at an offset."""
    for step in steps:
        yield offset // step
        offset %= step


def _slice(first: int, last: int, factor: int, extent: int) -> slice:
    """The slice from the first element to the last."""
    if factor > 0:
        stop = None if last + factor >= extent else last + 1
        return slice(first or None, stop, None if factor == 1 else factor)
    return slice(
        None if first == extent - 1 else first, None if last + factor < 0 else last - 1, factor
    )
