"""Derivatives of reductions and scans."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tracegraph.ir.derivative import Constant, Derivative, Emitter, Linear, Partials, Rewrite
from tracegraph.ir.op import Combiner, get
from tracegraph.ir.program import Region, Value, application
from tracegraph.ir.types import ArrayType
from tracegraph.ops.cotangents import (
    Types,
    filled,
    indicator,
    kept_shape,
    nonzero,
    number,
    stretched,
)

Ints = tuple[int, ...]


def of_reduction(combiner: Combiner) -> Derivative:
    """The derivative of the reduction with a combiner."""
    name = combiner.name
    if name == "add":
        return Linear(_spread)
    coefficients = _COEFFICIENTS.get(name)
    return Constant() if coefficients is None else Rewrite(coefficients, _weighted_sum)


def of_scan(combiner: Combiner) -> Derivative:
    """The derivative of the scan with a combiner.

    Each element is f(the one before it, x): so its tangent is a linear recurrence, whose
    coefficients are the partial derivatives of f.
    """
    if combiner.name == "add":
        return Linear(_suffix_sums)
    if combiner.name not in _COEFFICIENTS:
        return Constant()

    def prepare(f: Emitter, out: Any, x: Any, *, axis: int) -> Sequence[Any]:
        return _recurrence(f, combiner.name, out, x, axis)

    return Rewrite(prepare, _run_recurrence)


# reductions


def _spread(f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axes: Ints) -> tuple[Any]:
    return (stretched(f, ct, types[0].shape, axes),)


def _weighted_sum(f: Emitter, values: Any, tangents: Any, *, axes: Ints) -> Any:
    return f.sum(f.multiply(values[0], tangents[0]), axes=axes)


def _share_of_extremes(f: Emitter, out: Any, x: Any, *, axes: Ints) -> tuple[Any]:
    """Elements that are equal to the extreme one share equally."""
    equal = indicator(f, f.equal(x, stretched(f, out, x.shape, axes)), x)
    return (equal / stretched(f, f.sum(equal, axes=axes), x.shape, axes),)


def _products_of_the_others(f: Emitter, out: Any, x: Any, *, axes: Ints) -> tuple[Any]:
    """Without divisions, so that zeros may be among them: products from both ends."""
    kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
    order = (*kept, *axes)
    moved = f.transpose(x, axes=order)
    rows, count = moved.shape[: len(kept)], prod(moved.shape[len(kept) :])
    if 0 in x.shape:
        return (filled(f, ArrayType(x.dtype, x.shape), 1),)
    flat = f.reshape(moved, shape=(prod(rows), count))
    before, after = _products_before(f, flat), _reversed(f, _products_before(f, _reversed(f, flat)))
    others = f.reshape(before * after, shape=moved.shape)
    return (f.transpose(others, axes=tuple(order.index(axis) for axis in range(x.ndim))),)


def _products_before(f: Emitter, rows: Any) -> Any:
    """For each element, the product of those before it in its row."""
    count, width = rows.shape
    ones = filled(f, ArrayType(rows.dtype, (count, 1)), 1)
    firsts = f.slice(rows, starts=(0, 0), steps=(1, 1), sizes=(count, width - 1))
    return f.concatenate(ones, f.cumprod(firsts, axis=1), axis=1)


def _reversed(f: Emitter, x: Any, axis: int = 1) -> Any:
    starts, steps = [0] * x.ndim, [1] * x.ndim
    starts[axis], steps[axis] = max(x.shape[axis] - 1, 0), -1
    return f.slice(x, starts=tuple(starts), steps=tuple(steps), sizes=x.shape)


def _over_radius(f: Emitter, out: Any, x: Any, *, axes: Ints) -> tuple[Any]:
    """Each element over the result, and 0 where that is 0."""
    return (x / stretched(f, nonzero(f, out), x.shape, axes),)


def _share_of_exponentials(exponential: str) -> Any:

    def prepare(f: Emitter, out: Any, x: Any, *, axes: Ints) -> tuple[Any]:
        """Each exponential over their sum; of an infinite sum, infinite elements share equally."""
        total = stretched(f, out, x.shape, axes)
        infinite = f.isinf(total)
        share = getattr(f, exponential)(f.where(infinite, number(x, 0), x - total))
        (at_infinity,) = _share_of_extremes(f, out, x, axes=axes)
        return (f.where(infinite, at_infinity, share),)

    return prepare


_COEFFICIENTS = {
    "multiply": _products_of_the_others,
    "minimum": _share_of_extremes,
    "maximum": _share_of_extremes,
    "fmin": _share_of_extremes,
    "fmax": _share_of_extremes,
    "hypot": _over_radius,
    "logaddexp": _share_of_exponentials("exp"),
    "logaddexp2": _share_of_exponentials("exp2"),
}


# scans


def _suffix_sums(f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axis: int) -> tuple[Any]:
    return (_reversed(f, f.cumsum(_reversed(f, ct, axis), axis=axis), axis),)


def _recurrence(f: Emitter, name: str, out: Any, x: Any, axis: int) -> tuple[Any, ...]:
    """The partial derivatives by the element before and by x. The first element is x itself."""
    count = x.shape[axis]
    if 0 in x.shape:
        return ()
    first = _part(f, x, axis, 0, 1)
    before = f.concatenate(first, _part(f, out, axis, 0, count - 1), axis=axis)
    one_type = ArrayType(x.dtype, kept_shape(x.shape, (axis,)))
    found = []
    for coefficient, start in zip(_partials(name), (0, 1), strict=True):
        rest = _part(f, coefficient(f, out, before, x), axis, 1, count - 1)
        found.append(f.concatenate(filled(f, one_type, start), rest, axis=axis))
    return tuple(found)


def _partials(name: str) -> Sequence[Any]:
    """The partial derivatives of a binary op."""
    if name == "multiply":
        return (lambda f, o, x, y: y, lambda f, o, x, y: x)
    record = get(name).derivative
    assert isinstance(record, Partials)
    return record.of


def _part(f: Emitter, x: Any, axis: int, start: int, size: int) -> Any:
    starts, sizes = [0] * x.ndim, list(x.shape)
    starts[axis], sizes[axis] = start, size
    return f.slice(x, starts=tuple(starts), steps=(1,) * x.ndim, sizes=tuple(sizes))


def _run_recurrence(f: Emitter, values: Any, tangents: Any, *, axis: int) -> Any:
    """s_k = a_k·s_(k-1) + b_k·t_k, by a scan over slices along the axis."""
    (t,) = tangents
    if not values:
        return t
    order = (axis, *(i for i in range(t.ndim) if i != axis))
    slices = [f.transpose(v, axes=order) for v in (*values, t)]
    type_ = ArrayType(t.dtype, slices[0].shape[1:])
    attrs = {"carry": 1, "xs": 3, "length": t.shape[axis], "reverse": False}
    body = _linear_step(type_)
    _, stacked = f.scan(filled(f, type_), *slices, regions=(body,), **attrs)
    return f.transpose(stacked, axes=tuple(order.index(i) for i in range(t.ndim)))


def _linear_step(type_: ArrayType) -> Region:
    """The body (s, a, b, t) -> (a·s + b·t, the same)."""
    s, a, b, t = params = tuple(Value(type_) for _ in range(4))
    kept = application("multiply", (a, s), {}, None)
    added = application("multiply", (b, t), {}, None)
    total = application("add", (*kept.outputs, *added.outputs), {}, None)
    (result,) = total.outputs
    return Region(params, (kept, added, total), (result, result))
