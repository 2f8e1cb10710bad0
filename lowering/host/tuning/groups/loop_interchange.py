"""Loop interchange: the axes of a nest in the order that arguments and results have.

An array in that order is used as it is. In another order it needs a view, which each call makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lowering.host.evaluation import strided_views
from lowering.host.evaluation.access_maps import AccessMap
from lowering.host.evaluation.axis_dependence import AxisDependence
from lowering.host.evaluation.hazards import Overlaps
from lowering.host.evaluation.instructions import View
from lowering.host.evaluation.nest_program import NestGroup, accesses_of, extents_of
from lowering.host.source.array_names import is_whole
from lowering.host.tuning.groups.access_orders import maps_of, orders
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import MapNest, Nest, ReduceNest, RowNest, ScanNest
from tracegraph.ir.types import row_major_strides


def interchange(groups: list[NestGroup], overlaps: Overlaps) -> list[NestGroup]:
    """The groups with their axes in the order that takes the fewest views."""
    chosen = (_chosen_order(group.nests[0]) for group in groups)
    return [
        group if order is None else replace(group, order=order)
        for group, order in zip(groups, chosen, strict=True)
    ]


def _chosen_order(nest: Nest) -> tuple[int, ...] | None:
    """The axes from the outermost to the innermost; None as they are."""
    extents = extents_of(nest)
    if 0 in extents or not may_interchange(nest):
        return None
    axes_of, accesses = AxisDependence(extents), accesses_of(nest)
    found = maps_of(accesses, extents, axes_of)
    if found is None:
        return None
    given = tuple(range(len(extents)))
    chosen = dict.fromkeys(filter(None, orders(accesses, extents, axes_of)))
    bound = [each for each in found if each[0].space in ("input", "output")]
    of_bound = (_order_in(buffer, where, extents) for buffer, where in bound)
    chosen.update(dict.fromkeys(filter(None, of_bound)))
    best = min((given, *chosen), key=lambda order: _views(bound, extents, order))
    return None if best == given else best


def may_interchange(nest: Nest) -> bool:
    """Whether its axes may be in another order: not with argmin, argmax or repeated stores."""
    match nest:
        case MapNest() | ScanNest():
            return True
        case ReduceNest(accumulators=folds):
            return not any(fold.arg for fold in folds)
        case RowNest(passes=passes):
            return not any(fold.arg for each in passes for fold in each.accumulators)
    return False


def _order_in(buffer: Buffer, where: AccessMap, extents: tuple[int, ...]) -> tuple[int, ...] | None:
    """The order in which the axes are the dimensions of a buffer, axes of one element included."""
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
    maps: Sequence[tuple[Buffer, AccessMap]], extents: tuple[int, ...], order: tuple[int, ...]
) -> int:
    """How many views are needed: windows that are not the whole array of their buffer."""
    permuted = tuple(extents[axis] for axis in order)
    found = [
        strided_views.window(buffer, _permuted(where, order), permuted) for buffer, where in maps
    ]
    return len({_key(view) for view in found if not is_whole(view)})


def _permuted(where: AccessMap, order: tuple[int, ...]) -> AccessMap:
    strides = {order.index(axis): stride for axis, stride in where.strides.items()}
    return replace(where, strides=dict(sorted(strides.items())))


def _key(view: View) -> object:
    return view.buffer, view.shape, view.strides, view.offset
