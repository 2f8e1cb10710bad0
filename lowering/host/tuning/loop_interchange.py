"""The axes of a nest in the order in which the arrays that calls bring have them.

Such an array is then taken as it is. In another order it is seen through a view, which each call
makes anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lowering.host import strided_views as windows
from lowering.host.access_maps import AccessMap
from lowering.host.array_names import is_whole
from lowering.host.evaluate import Evaluator
from lowering.host.instructions import View
from lowering.host.tuning.access_orders import orders, places
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import MapNest, Nest, ReduceNest, RowNest, ScanNest
from lowering.plan.nest_analysis import nest_expressions
from lowering.plan.nest_rewriting import map_nest
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.types import row_major_strides


def interchanged_axes(nest: Nest, run: Evaluator) -> tuple[int, ...]:
    """The axes from the first to the last; as they are, where that takes as few views.

    `run` evaluates the nest with its axes as they are. They stay so where it stores to positions
    that are found by data, or counts any.
    """
    extents, given = run.extents, tuple(range(len(run.extents)))
    if 0 in extents or not may_interchange(nest):
        return given
    found = places(run.accesses, extents, run.axes_of)
    if found is None:
        return given
    chosen = dict.fromkeys(filter(None, orders(run.accesses, extents, run.axes_of)))
    brought = [each for each in found if each[0].space in ("input", "output")]
    as_brought = (_order_in(buffer, where, extents) for buffer, where in brought)
    chosen.update(dict.fromkeys(filter(None, as_brought)))
    return min((given, *chosen), key=lambda order: _views(brought, extents, order))


def is_natural(order: Sequence[int]) -> bool:
    """Whether these are axes as they are."""
    return all(axis == place for place, axis in enumerate(order))


def renumbered(nest: Nest, order: Sequence[int]) -> Nest:
    """The nest with expressions over axes in this order; its space and loop stay as they are."""
    if is_natural(order):
        return nest
    axes = [e for e in nest_expressions(nest) if isinstance(e, Axis)]
    moved: dict[Expr, Expr] = {
        axis: Axis.make(order.index(axis.number), axis.extent)
        for axis in axes
        if order[axis.number] != axis.number
    }
    return map_nest(nest, moved)


def may_interchange(nest: Nest) -> bool:
    """Whether its axes may be in another order: no position is counted, no store is repeated."""
    match nest:
        case MapNest() | ScanNest():
            return True
        case ReduceNest(accumulators=folds):
            return not any(fold.arg for fold in folds)
        case RowNest(passes=passes):
            return not any(fold.arg for each in passes for fold in each.accumulators)
    return False


def _order_in(buffer: Buffer, where: AccessMap, extents: tuple[int, ...]) -> tuple[int, ...] | None:
    """The order in which the axes are those of a buffer, axes of one element among them."""
    units = [axis for axis, extent in enumerate(extents) if extent == 1]
    along = {stride: axis for axis, stride in where.strides.items()}
    shape, order = buffer.type.shape, list[int]()
    for extent, stride in zip(shape, row_major_strides(shape), strict=True):
        if extent > 1:
            order.append(along.get(stride, -1))
        elif units:
            order.append(units.pop(0))
    return tuple(order) if sorted(order) == [*range(len(extents))] else None


def _views(
    places: Sequence[tuple[Buffer, AccessMap]], extents: tuple[int, ...], order: tuple[int, ...]
) -> int:
    """How many windows are not the arrays of their buffers."""
    turned = tuple(extents[axis] for axis in order)
    found = [windows.window(buffer, _turned(where, order), turned) for buffer, where in places]
    return len({_key(view) for view in found if not is_whole(view)})


def _turned(where: AccessMap, order: tuple[int, ...]) -> AccessMap:
    strides = {order.index(axis): stride for axis, stride in where.strides.items()}
    return replace(where, strides=dict(sorted(strides.items())))


def _key(view: View) -> object:
    return view.buffer, view.shape, view.strides, view.offset
