"""Reading and writing at an index, on tracers and Arrays, by NumPy's rules.

A read is at most a slice, a gather, a transpose and a reshape; a write is one scatter. Reading at a
traced mask gives selected elements, writing at one is a `where`: see `masked_indexing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph import numpy
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray
from tracegraph.arrays.eager import apply, apply_view
from tracegraph.errors import UnrepresentableError, value_text
from tracegraph.ir.op import get
from tracegraph.numpy import masked_indexing
from tracegraph.numpy.dispatching.dispatch import as_array, copied, lifted
from tracegraph.numpy.index_checks import require_distinct, require_in_range
from tracegraph.numpy.shapes import broadcast_to
from tracegraph.tracing import views
from tracegraph.tracing.layouts import packed_order, set_order
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.selection import (
    BATCH,
    NEW_AXIS,
    Selection,
    entries_of,
    is_masked,
    may_be_masked,
    parse,
)
from tracegraph.tracing.tracer import Tracer


def getitem(x: Any, index: Any, *, unique: bool = False) -> Any:
    """`x[index]`.

    A traced integer counts from the end if negative, and is clamped to the axis. `unique` promises
    that no element is read twice, which derivatives make use of.

    Raises:
        IndexError: a static index out of range, too many of them, or one of a wrong kind.
        BooleanMaskError: a traced mask beside another or beside an index array.
    """
    if may_be_masked(x, index):
        entries = entries_of(index)
        if is_masked(x, entries):
            return masked_indexing.read(x, entries)
        index = tuple(entries)
    selection = parse(index, x.shape)
    y = x
    if not selection.is_whole(x.shape):
        y = apply(
            get("slice"), y, starts=selection.starts, steps=selection.steps, sizes=selection.sizes
        )
    if selection.arrays:
        y = _gather(y, selection, unique)
    elif selection.gathers:  # at booleans without axes alone, which add one
        y = _with_batch(y, selection)
    if y is x or y.shape != selection.shape:
        y = numpy.reshape(y, selection.shape)
    if views.has_layout(y) and y is not x and selection.copies:
        y = views.detached(y)  # NumPy makes a copy, or a scalar
        if y.ndim > 1 and views.has_layout(x):
            set_order(y, _order_of_gathered(x, selection))
    return y


def _order_of_gathered(x: Any, selection: Selection) -> tuple[int, ...] | None:
    """How NumPy lays elements at index arrays out: the axes of the indices are outermost."""
    source = views.strides_of(x)
    outer = max(map(abs, source), default=0) + 1
    strides: list[int] = []
    for entry in selection.layout:
        known = outer if entry == BATCH else 0 if entry == NEW_AXIS else abs(source[entry])
        strides += [known] * (len(selection.batch) if entry == BATCH else 1)
    return packed_order(tuple(strides))


def _gather(x: Any, selection: Selection, unique: bool) -> Any:
    """Elements of the sliced array, the batch axes in place, the new axes still missing."""
    require_in_range(selection.arrays, x.shape, "reads are clamped to it")
    _require_elements(x, selection)
    attrs = _promise(x.shape, selection, unique)
    # if all are integers, it is basic indexing, which makes a view
    making: Any = apply if selection.gathers else apply_view
    y = making(get("gather"), x, *batched(x, selection), dims=selection.dims, **attrs)
    return numpy.transpose(y, _batch_into_place(selection))


def _require_elements(x: Any, selection: Selection) -> None:
    """Require that there is something to read at indices, as there are some.

    Raises:
        IndexError: an axis that they index has no elements.
    """
    for axis in selection.dims:
        if x.shape[axis] == 0 and 0 not in selection.batch:
            raise IndexError(f"an index is out of bounds for axis {axis} with size 0")


def _with_batch(x: Any, selection: Selection) -> Any:
    """The sliced array with the batch axes of booleans, of extent 0 or 1, which index no axis."""
    axes = (1,) * len(selection.batch)
    y = broadcast_to(numpy.reshape(x, (*axes, *x.shape)), (*selection.batch, *x.shape))
    return numpy.transpose(y, _batch_into_place(selection))


def batched(x: Any, selection: Selection) -> list[Any]:
    """The index arrays, all of the batch's shape; small ones are broadcast in the graph."""
    arrays = [as_array(selection.arrays[axis], np.int64) for axis in selection.dims]
    if any(isinstance(a, Tracer) for a in (x, *arrays)):
        arrays = [lifted(a) for a in arrays]
    return [broadcast_to(array, selection.batch) for array in arrays]


def _promise(shape: Sequence[int], selection: Selection, unique: bool) -> dict[str, int]:
    """The attribute of an op whose indices into an array of `shape` name no element twice."""
    if not unique or not selection.batch:
        return {}
    arrays, extents = zip(*((selection.arrays[a], shape[a]) for a in selection.dims), strict=True)
    require_distinct(arrays, selection.batch, extents)
    return {"distinct": len(selection.batch)}


def _batch_into_place(selection: Selection) -> tuple[int, ...]:
    """Axes that take batch axes + unindexed axes to the layout, integers' axes of extent 1 last."""
    rank = len(selection.batch)
    axes: list[int] = []
    for entry in selection.layout:
        if entry == BATCH:
            axes += range(rank)
        elif entry != NEW_AXIS:
            axes.append(rank + selection.rest.index(entry))
    if BATCH not in selection.layout:
        axes = [*range(rank), *axes]
    return (*axes, *(a for a in range(rank + len(selection.rest)) if a not in axes))


def setitem(x: Tracer, index: Any, value: Any) -> None:
    """`x[index] = value` on a tracer, which stands for the new value from then on.

    Raises:
        TracerWriteError: `x` is an argument, captured, or a view of such.
        UnrepresentableError: a number that the dtype of `x` does not hold.
        IndexError: as `getitem`.
        ValueError: the value does not broadcast to the selected shape.
    """
    views.check_writable(x)
    if isinstance(value, Tracer) and views.root_of(value) is views.root_of(x) is not value:
        there = getitem(x, index)
        if views.is_same_view(value, there):
            return  # the end of `x[index] += y`, which has written through the view already
    views.store(x, x.owner.read(updated(x, index, value, "set")))


def updated(x: Any, index: Any, value: Any, how: str, *, unique: bool = False) -> Any:
    """`x` with `value` at `index`: `how` is "set", or the function that combines it with `x` there.

    The value is cast to the dtype of `x`. Elements that the index names twice are combined twice,
    or set to the last value; `unique` promises that there are none. A traced integer out of range
    writes nothing.

    Raises:
        IndexError: as `getitem`.
        BooleanMaskError: a traced mask, and a value for some number of true elements that are not
            those of the same mask.
        ValueError: the value does not broadcast to the selected shape.
    """
    if may_be_masked(x, index):
        entries = entries_of(index)
        if is_masked(x, entries):
            return masked_indexing.updated(x, entries, value, how, unique=unique)
        index = tuple(entries)
    if isinstance(value, Selected):
        value.refuse("assignment of {read} to elements that it does not select")
    if how in ("divide", "power"):  # by a product, if an element is named twice
        factors = updated(numpy.ones_like(x), index, value, "multiply", unique=unique)
        return getattr(numpy, how)(x, factors)
    is_sequence = isinstance(value, (list, tuple))
    value = cast_to(value, x)
    if how == "subtract":
        value, how = numpy.negative(value), "add"
    selection = parse(index, x.shape)
    is_element = selection.copies and not selection.gathers and not selection.shape
    if is_element and is_sequence and value.ndim:
        raise ValueError("an element is set to a sequence; write x[i] = value, without brackets")
    value = fitted(value, selection.shape)
    if 0 in selection.batch and not selection.arrays:
        return copied(x)  # at a boolean without axes that is false
    value = batch_first(value, selection)
    if not selection.arrays:  # the batch axes, if any, are of extent 1
        value = numpy.reshape(value, selection.sizes)
    if not selection.arrays and selection.is_whole(x.shape):
        if how != "set":
            return getattr(numpy, how)(x, value)
        if type(x) is not Array or isinstance(value, Tracer):
            return copied(value)
        return asarray(value, device=x.device, copy=True).local()
    require_in_range(selection.arrays, x.shape, "writes are dropped")
    rest = selection.rest
    return apply(
        get(f"scatter_{how}"),
        x,
        value,
        *batched(x, selection),
        dims=selection.dims,
        starts=tuple(selection.starts[axis] for axis in rest),
        steps=tuple(selection.steps[axis] for axis in rest),
        **_promise(x.shape, selection, unique),
    )


def cast_to(value: Any, x: Any) -> Any:
    """`value` in the dtype of `x`, and traced if `x` is, so that it is broadcast in the graph."""
    weak_complex = isinstance(value, Tracer) and value.weak and value.dtype.kind == "c"
    if weak_complex and x.dtype.kind not in "cb":  # a Python number, as `1j` is
        needed = "a complex number does not become a real one"
        raise UnrepresentableError(value_text(value), x.dtype, needed)
    value = as_array(value, x.dtype)
    return lifted(value) if isinstance(x, Tracer) else value


def fitted(value: Any, shape: tuple[int, ...]) -> Any:
    """`value` broadcast to `shape`; as in NumPy, further leading axes of extent 1 are dropped."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = numpy.reshape(value, value.shape[extra:])
    try:
        return broadcast_to(value, shape)
    except ValueError:
        raise ValueError(
            f"could not broadcast a value of shape {value.shape} into the indexed shape {shape}"
        ) from None


def batch_first(value: Any, selection: Selection) -> Any:
    """A value of the result's shape as a scatter's updates: batch axes, then unindexed axes."""
    bare: list[int] = []  # the layout without new axes
    for entry in selection.layout:
        if entry != NEW_AXIS:
            bare += selection.batch if entry == BATCH else [selection.sizes[entry]]
    value = numpy.reshape(value, tuple(bare))
    placed = _batch_into_place(selection)[: len(bare)]
    value = numpy.transpose(value, tuple(int(a) for a in np.argsort(placed)))
    sizes = tuple(selection.sizes[axis] for axis in selection.rest)
    return numpy.reshape(value, selection.batch + sizes)
