"""Row gathers: `take` along one dimension instead of fancy indexing of a sliding window.

The condition: what is loaded at a gathered position is a row, of elements that follow each other,
and rows start at multiples of their length. `take` copies whole rows into the output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from lowering.host.arena import Array
from lowering.host.evaluation.access_maps import AccessMap
from lowering.host.evaluation.evaluate import Evaluation, Evaluator
from lowering.host.evaluation.instructions import (
    Instruction,
    NumpyValue,
    ReversedTemporary,
    Temporary,
    View,
)
from lowering.host.evaluation.load_forms import guarded_position
from lowering.host.evaluation.numpy_calls import mesh_index
from lowering.host.tuning.instructions.memory_orders import memory_order
from lowering.plan.nests.buffer import Buffer
from tracegraph.ir.scalar import Expr, bounds, const, floor_divide, modulo
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.types import row_major_strides


class Rows(NamedTuple):
    """Rows of `length` elements that start at multiples of it, in each part of a buffer.

    The axes `outer` run over the parts, the axes `inner` along a row, both in memory order.
    """

    length: int
    outer: tuple[int, ...]
    inner: tuple[int, ...]


def gathered_rows(run: Evaluator, expr: Expr) -> Evaluation | None:
    """The form of a load that gathers rows."""
    if not isinstance(expr, Load):
        return None
    form = run.load_form(expr)
    if form is None or form.positions is None:
        return None
    where, reversed_axes = form.map, frozenset[int]()
    if where.axes and min(where.strides.values(), default=0) < 0:
        where, reversed_axes = _normalized(where)
    rows = _rows_at(expr.buffer, where, run.extents)
    if rows is None:
        return None
    first = guarded_position(floor_divide(where.residual, rows.length), form.guard, where)

    def emit() -> NumpyValue:
        taken = _take(run, expr.buffer, rows, run.value(first), where)
        if reversed_axes:
            along = frozenset(taken.dims[axis] for axis in reversed_axes)
            return run.masked(ReversedTemporary.of(taken, along), form.guard)
        return run.masked(taken, form.guard)

    return Evaluation((first,) if form.guard is None else (first, form.guard), emit)


def _normalized(where: AccessMap) -> tuple[AccessMap, frozenset[int]]:
    """The same elements with positive strides, and the axes whose strides were negative."""
    negative = frozenset(axis for axis, stride in where.strides.items() if stride < 0)
    strides = {axis: abs(stride) for axis, stride in where.strides.items()}
    residual = where.residual + where.low
    return AccessMap(strides, residual, where.axes, 0, where.high - where.low), negative


def _rows_at(buffer: Buffer, where: AccessMap, extents: tuple[int, ...]) -> Rows | None:
    """The rows that an access map consists of, if it does."""
    length, inner = 1, list[int]()
    outer = sorted(where.strides, key=lambda axis: where.strides[axis])
    while outer and where.strides[outer[0]] == length:
        length *= extents[outer[0]]
        inner.insert(0, outer.pop(0))
    part = buffer.type.size // prod(extents[axis] for axis in outer)
    found = Rows(length, tuple(reversed(outer)), tuple(inner))
    whole = part
    for axis in outer:
        if where.strides[axis] != whole:
            return None
        whole *= extents[axis]
    if whole != buffer.type.size or part % length:
        return None
    if modulo(where.residual, length) is not const(0):
        return None
    ends = bounds(where.residual) if outer else (0, 0)
    if ends is None or ends[0] < 0 or ends[1] >= part:
        return None  # the row may be in another part
    return found


def _all_rows(buffer: Buffer, extents: tuple[int, ...], rows: Rows) -> View:
    """All rows of a buffer, each in the shape of the axes along it."""
    outer, inner = (tuple(extents[axis] for axis in axes) for axes in (rows.outer, rows.inner))
    shape = (*outer, buffer.type.size // prod(outer) // rows.length, *inner)
    size = buffer.type.dtype.itemsize
    strides = tuple(n * size for n in row_major_strides(shape))
    dims = {axis: i for i, axis in enumerate(rows.outer)}
    dims |= {axis: len(outer) + 1 + i for i, axis in enumerate(rows.inner)}
    return View(buffer.type.dtype, shape, dims, buffer, strides, 0)


def _take(
    run: Evaluator, buffer: Buffer, rows: Rows, positions: NumpyValue, where: AccessMap
) -> Temporary:
    axes = {axis: axis for axis in sorted({*positions.dims, *where.strides})}
    rank, chosen = len(run.extents), tuple(positions.dims)
    places = memory_order(positions) or chosen
    chosen = tuple(axis for axis in places if axis in chosen)
    order = (*rows.outer, *chosen, *rows.inner)  # in this order `take` fills one range
    others = [axis for axis in range(rank) if axis not in order]
    in_order = order == tuple(sorted(order))
    output = Temporary(
        buffer.type.dtype, run.mesh(axes), axes, None if in_order else (*others, *order)
    )
    function = take_rows(rank, chosen, rows.outer, rows.inner)
    source = _all_rows(buffer, run.extents, rows)
    run.instructions.append(Instruction("write", function, (source, positions), output))
    return output


def take_rows(
    rank: int, chosen: Sequence[int], outer: Sequence[int], inner: Sequence[int]
) -> Callable[[Array, Array, Array], object]:
    """A function (rows, positions, out) that fills an open mesh with the rows at the positions.

    The positions vary along the `chosen` axes, in memory order. All are in range: the mode 'clip'
    only saves NumPy a copy of `out`.
    """
    in_order = list(chosen) == sorted(chosen)
    if not outer and not inner and in_order:
        return lambda source, positions, out: source.take(positions, None, out, "clip")
    order = (*outer, *chosen, *inner)
    squeeze, kept = mesh_index(rank, chosen), mesh_index(rank, order)
    dim, permutation = len(outer), tuple(sorted(order).index(axis) for axis in order)
    ranked = tuple(sorted(chosen).index(axis) for axis in chosen)

    def take(source: Array, positions: Array, out: Array) -> None:
        at = positions[squeeze].transpose(ranked) if positions.ndim else positions
        source.take(at, dim, out[kept].transpose(permutation), "clip")

    return take
