"""How a load reads a buffer: at a place, at positions that the run computes, or in pieces."""

from __future__ import annotations

from dataclasses import dataclass

from lowering.host.access_maps import AccessMap, AxesOf, access_map
from lowering.host.dynamic_offsets import offset_function
from lowering.host.strided_views import Rows, rows_at
from lowering.host.tuning.wrapped_loads import Pieces, pieces_of
from tracegraph.ir.scalar import FALSE, TRUE, Expr, Load, const, floor_divide, select


@dataclass(frozen=True, slots=True)
class Reading:
    """The elements at a place; where the `guard` does not hold, zeros.

    `positions` is what has to be computed to know where they are, if anything has: flat positions
    in the buffer or, where the elements are `rows`, which of these they are in.
    """

    place: AccessMap
    guard: Expr | None
    positions: Expr | None
    rows: Rows | None

    @property
    def is_shifted(self) -> bool:
        """Whether the elements are a window at an offset that the run computes."""
        return self.guard is None and not self.place.axes and self.place.fixed is None

    @property
    def demands(self) -> tuple[Expr, ...]:
        """What has to be evaluated before."""
        if self.is_shifted:
            return offset_function(self.place.residual)[1]
        return tuple([each for each in (self.positions, self.guard) if each is not None])


def reading_of(load: Load, extents: tuple[int, ...], axes_of: AxesOf) -> Reading | Pieces | None:
    """How a load reads over axes of these extents; None if all that it gives is zeros."""
    buffer = load.buffer
    if load.guard is FALSE or buffer.type.size == 0:
        return None
    pieces = pieces_of(load, extents, axes_of)
    if pieces is not None:
        return pieces
    where = access_map(buffer, load.indices, extents, axes_of)
    guard = None if load.guard is TRUE else load.guard
    outside = not where.fits(buffer.type.size)
    if guard is not None and outside:
        axes = where.axes | axes_of(guard)
        where = access_map(buffer, load.indices, extents, axes_of, axes)
        if buffer.type.size <= where.high - where.low:  # nothing fits: the guard never holds
            return None
    if not (where.axes if guard is None else outside):
        return Reading(where, guard, None, None)
    forwards = where
    if where.axes and min(where.strides.values(), default=0) < 0:
        forwards = where.forwards()
    rows = rows_at(buffer, forwards, extents)
    if rows is None:
        first = where.residual
    else:
        where = forwards
        first = floor_divide(where.residual, rows.length)
    if guard is not None:
        first = select(guard, first, const(-where.low))
    return Reading(where, guard, first, rows)
