"""Division of maps: points at the ends of axes, which read certain buffers, and the others.

So do the points of a stencil beside the rows of a neighbour. What is inside reads none of the
buffers, and need not wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from math import prod

from lowering.plan.nests.analysis import nest_expressions, nest_loads, nest_reads
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel, MapNest
from lowering.plan.nests.rewriting import map_nest
from lowering.plan.nests.rounding import round_up
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import FALSE, Axis, Compare, Const, Expr, affine, conjuncts, const

LEAST_INSIDE = 0.75
"""Part of all points that must be inside: few blocks compute those at the ends."""

GROUP = 8
"""Points of the last axis that are divided together, so that vectors begin where they did: as many
as one has of the smallest dtypes, but for bytes.
"""

FEW_POINTS = 1024
"""Points of a nest that is not divided, and reads the buffers: all count as those at ends."""

_Ends = tuple[int, int]
"""How many points at the begin and at the end of an axis are not inside."""


@dataclass(frozen=True, slots=True)
class Division:
    """The nests with points at the ends, and those with the others."""

    ends: tuple[MapNest, ...]
    inside: tuple[MapNest, ...]

    @property
    def points(self) -> int:
        """How many points are at the ends."""
        return sum([prod(nest.space) for nest in self.ends])


def divided(kernel: Kernel, buffers: Set[Buffer]) -> Division | None:
    """The nests of a kernel, divided by whether they read some buffers; None if they cannot be.

    All are maps, and most points of those that are divided are inside.
    """
    ends: list[MapNest] = []
    inside: list[MapNest] = []
    is_divided = False
    for nest in kernel.nests:
        if not isinstance(nest, MapNest):
            return None
        if buffers.isdisjoint(nest_reads(nest)):
            inside.append(nest)
            continue
        parts = _parts(nest, buffers)
        if parts is not None:
            is_divided = True
            ends += parts[1:]
            inside.append(parts[0])
        elif prod(nest.space) <= FEW_POINTS:
            ends.append(nest)
        else:
            return None
    return Division(tuple(ends), tuple(inside)) if is_divided else None


def _parts(nest: MapNest, buffers: Set[Buffer]) -> list[MapNest] | None:
    """The nest of the points inside, and then those of the ends of each axis."""
    if nest.signals or any(predicate.flag in buffers for predicate in nest.predicates):
        return None
    known: list[_Ends] = [(0, 0)] * len(nest.space)
    for load in nest_loads(nest):
        if load.buffer in buffers:
            found = None if load.guard is None else _end(load.guard, nest.space)
            if found is None:
                return None
            axis, (first, last) = found
            known[axis] = max(known[axis][0], first), max(known[axis][1], last)
    *others, (first, last) = known
    known = [*others, (round_up(first, GROUP), round_up(last, GROUP))]
    inside = [
        (first, extent - last) for (first, last), extent in zip(known, nest.space, strict=True)
    ]
    if any(start >= stop for start, stop in inside):
        return None
    parts = [_part(nest, box) for box in _boxes(nest.space, inside)]
    if prod(parts[0].space) < LEAST_INSIDE * prod(nest.space):
        return None
    if not buffers.isdisjoint([load.buffer for load in nest_loads(parts[0])]):
        return None
    return parts


def _end(guard: Expr, space: Sequence[int]) -> tuple[int, _Ends] | None:
    """An axis, and the points at its ends, outside of which a guard is false; None if none is
    known. Of several, that with the smallest share of the points.
    """
    found = [each for part in conjuncts(guard) if (each := _at_an_end(part, space)) is not None]
    return min(found, key=lambda each: sum(each[1]) / space[each[0]], default=None)


def _at_an_end(part: Expr, space: Sequence[int]) -> tuple[int, _Ends] | None:
    """The same for one comparison of a position with a number."""
    if type(part) is not Compare or type(part.right) is not Const:
        return None
    known = affine(part.left)
    if known is None or len(known[0]) != 1:
        return None
    ((axis, factor),), offset = known[0].items(), known[1]
    limit = int(part.right.value) - offset  # type: ignore[arg-type]
    extent = space[axis] if axis < len(space) else 0
    if part.relation == "<" and factor == 1:
        ends = limit, 0
    elif part.relation == ">=" and factor == 1:
        ends = 0, extent - limit
    elif part.relation == "<" and factor == -1:
        ends = 0, extent + limit - 1
    elif part.relation == ">=" and factor == -1:
        ends = 1 - limit, 0
    elif part.relation == "==" and factor == 1:
        ends = (limit + 1, 0) if limit < extent - 1 - limit else (0, extent - limit)
    else:
        return None
    return (axis, ends) if 0 < sum(ends) < extent else None


def _boxes(
    space: Sequence[int], inside: Sequence[tuple[int, int]]
) -> Iterator[list[tuple[int, int]]]:
    """The box inside, and then boxes of the ends of each axis, within those of the axes before."""
    yield [*inside]
    for axis, (start, stop) in enumerate(inside):
        for ends in ((0, start), (stop, space[axis])):
            if ends[0] < ends[1]:
                behind = [(0, extent) for extent in space[axis + 1 :]]
                yield [*inside[:axis], ends, *behind]


def _part(nest: MapNest, box: Sequence[tuple[int, int]]) -> MapNest:
    """The points of a nest in a box."""
    extents = tuple([stop - start for start, stop in box])
    moved: dict[Expr, Expr] = {}
    for expr in nest_expressions(nest):
        if type(expr) is Axis:
            start, extent = box[expr.number][0], extents[expr.number]
            inner = const(0) if extent == 1 else Axis.make(expr.number, extent)
            moved[expr] = inner + start
    found = map_nest(nest, moved)
    assert isinstance(found, MapNest)
    stores = tuple([store for store in found.stores if store.guard is not FALSE])
    return MapNest(extents, stores, (), nest.predicates)
