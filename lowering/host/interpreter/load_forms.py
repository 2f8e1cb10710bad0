"""The forms of a load: a view at a fixed offset, a view at a computed offset, or a gather."""

from __future__ import annotations

from lowering.host.interpreter.access_maps import AccessMap, AxesOf, access_map
from lowering.host.interpreter.dynamic_offsets import offset_function
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import FALSE, TRUE, Expr, const, select
from tracegraph.ir.scalar_values import Load


@dataclass(frozen=True, slots=True)
class LoadForm:
    """The elements of an access map; zeros where the `guard` does not hold.

    `positions` are the flat positions to gather, or None if the load is a view.
    """

    map: AccessMap
    guard: Expr | None
    positions: Expr | None

    @property
    def is_dynamic(self) -> bool:
        """Whether it is a view whose offset the run computes."""
        return self.guard is None and not self.map.axes and self.map.fixed is None

    @property
    def operands(self) -> tuple[Expr, ...]:
        """What has to be evaluated before the load."""
        if self.is_dynamic:
            return offset_function(self.map.residual)[1]
        return tuple([each for each in (self.positions, self.guard) if each is not None])


def load_form(load: Load, extents: tuple[int, ...], axes_of: AxesOf) -> LoadForm | None:
    """The form of a load over axes of these extents; None if it only gives zeros."""
    buffer = load.buffer
    if load.guard is FALSE or buffer.type.size == 0:
        return None
    where = access_map(buffer, load.indices, extents, axes_of)
    guard = None if load.guard is TRUE else load.guard
    outside = not where.fits(buffer.type.size)
    if guard is not None and outside:
        axes = where.axes | axes_of(guard)
        where = access_map(buffer, load.indices, extents, axes_of, axes)
        if buffer.type.size <= where.high - where.low:  # nothing fits: the guard never holds
            return None
    if not (where.axes if guard is None else outside):
        return LoadForm(where, guard, None)
    return LoadForm(where, guard, guarded_position(where.residual, guard, where))


def guarded_position(position: Expr, guard: Expr | None, where: AccessMap) -> Expr:
    """A position where the guard holds, and elsewhere one that is inside the buffer."""
    return position if guard is None else select(guard, position, const(-where.low))
