"""The memory orders of the loads and stores of a nest."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.host.evaluation import strided_views
from lowering.host.evaluation.access_maps import AccessMap, AxesOf, access_map
from lowering.host.tuning.caches import FIRST
from lowering.host.tuning.instructions.memory_orders import memory_order
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Store
from tracegraph.ir.scalar_values import Apply, Load
from tracegraph.ir.subexpressions import subexpressions
from tracegraph.ops import convert

FEWEST_ROWS, FEWEST_ELEMENTS = 256, 9
"""Least rows of an outer product, and least elements per row over all calls, from which it pays to
compute column by column and to transpose what is stored. Two calls on float32 take 7.1 µs by rows
and 6.2 by columns for 256 x 9, and 5.5 and 5.3 for 128 x 9."""

MOST_COLUMNS, COLUMNS_OF_A_CALL = 64, 16
"""Most columns, in all and per call. One call takes 6.3 and 6.2 µs for 300 x 16, and 7.2 and 8.6
for 300 x 32; four calls take 16.9 and 16.7 for 300 x 32."""

MOST_CONFLICTING, CONFLICTING_OF_A_CALL = 16, 8
"""The same if the cache lines of columns conflict. One call takes 11.4 and 9.4 µs for 1024 x 8, and
14.4 and 21.9 for 1024 x 16; four calls take 35 and 33 for 1024 x 16, and 47 and 129 for 1024 x
32."""

CALLS_OF_WHERE = 3
"""Calls that a selection counts as: by bits it makes three."""

_Accesses = Sequence[Load | Store]
_Extents = tuple[int, ...]


def orders(accesses: _Accesses, extents: _Extents, axes_of: AxesOf) -> list[tuple[int, ...] | None]:
    """The memory order of each load and store that is one view and varies along all axes."""
    found: list[tuple[int, ...] | None] = []
    rank = _rank(extents)
    for access in accesses:
        where = access_map(access.buffer, access.indices, extents, axes_of)
        if len(where.strides) == rank and where.fits(access.buffer.type.size):
            found.append(memory_order(strided_views.window(access.buffer, where, extents)))
    return found


def maps_of(
    accesses: _Accesses, extents: _Extents, axes_of: AxesOf
) -> list[tuple[Buffer, AccessMap]] | None:
    """The access maps of the loads and stores that are views; None if a store is no view."""
    found: list[tuple[Buffer, AccessMap]] = []
    for access in accesses:
        where = access_map(access.buffer, access.indices, extents, axes_of)
        if where.fits(access.buffer.type.size):
            found.append((access.buffer, where))
        elif not isinstance(access, Load):
            return None
    return found


def common_order(accesses: _Accesses, extents: _Extents, axes_of: AxesOf) -> tuple[int, ...] | None:
    """The memory order of most loads and stores that vary along all axes.

    If there are none, or only stores of short rows, the longest axis is the innermost: short inner
    loops are slow.
    """
    found = orders(accesses, extents, axes_of)
    if found and not _makes_short_rows(accesses, extents, axes_of):
        return max(found, key=found.count)
    order = tuple(sorted(range(len(extents)), key=extents.__getitem__))
    return None if order == tuple(range(len(order))) else order


def _makes_short_rows(accesses: _Accesses, extents: _Extents, axes_of: AxesOf) -> bool:
    """Whether a nest computes short rows from rows and columns alone, by enough calls that it pays
    to compute by columns and transpose the result.

    A nest that only sets a condition has nothing to transpose.
    """
    values = [access.value for access in accesses if isinstance(access, Store)]
    if _rank(extents) != 2 or not values:
        return False
    short, long = sorted(extent for extent in extents if extent > 1)
    if short > MOST_COLUMNS or long < FEWEST_ROWS:
        return False
    calls = 0
    for each in subexpressions(values):
        if len(axes_of(each)) == 2:
            if isinstance(each, Load):
                return False
            if isinstance(each, Apply):
                calls += CALLS_OF_WHERE if each.op is convert.where else 1
    column = long * max(value.dtype.itemsize for value in values)
    conflicting = short > FIRST.lines_kept(column)
    most, of_a_call = MOST_COLUMNS, COLUMNS_OF_A_CALL
    if conflicting:
        most, of_a_call = MOST_CONFLICTING, CONFLICTING_OF_A_CALL
    return short * calls >= FEWEST_ELEMENTS and short <= min(most, of_a_call * calls)


def _rank(extents: _Extents) -> int:
    return sum(extent > 1 for extent in extents)
