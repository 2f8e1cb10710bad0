"""The loads and stores of a nest: where they lie, and in which order of memory they go on."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.host import strided_views as windows
from lowering.host.access_maps import AccessMap, AxesOf, access_map
from lowering.host.instructions import memory_order
from lowering.host.tuning.caches import FIRST
from lowering.plan.buffer import Buffer
from lowering.plan.kernel import Store
from tracegraph.ir.scalar import Apply, Load
from tracegraph.ir.subexpressions import subexpressions
from tracegraph.ops import convert

FEWEST_ROWS, FEWEST_ELEMENTS = 256, 9
"""Rows of what is made of rows and columns alone, and elements of a row that all calls make, for
which it pays to work along the columns, and to turn what is stored by rows."""

MOST_COLUMNS, COLUMNS_OF_A_CALL = 64, 16
MOST_CROWDED, CROWDED_OF_A_CALL = 16, 8
"""Columns of it, and for each call; and where lines of each push each other out of the cache."""

CALLS_OF_WHERE = 3
"""Calls that take as long as a choice."""


_Accesses = Sequence[Load | Store]
_Extents = tuple[int, ...]


def orders(accesses: _Accesses, extents: _Extents, axes_of: AxesOf) -> list[tuple[int, ...] | None]:
    """The order of memory of each load and store of one piece that varies along all axes."""
    found: list[tuple[int, ...] | None] = []
    rank = _rank(extents)
    for access in accesses:
        where = access_map(access.buffer, access.indices, extents, axes_of)
        if len(where.strides) == rank and where.fits(access.buffer.type.size):
            found.append(memory_order(windows.window(access.buffer, where, extents)))
    return found


def places(
    accesses: _Accesses, extents: _Extents, axes_of: AxesOf
) -> list[tuple[Buffer, AccessMap]] | None:
    """Where the loads and stores lie that are of one piece; None if a store is not."""
    found: list[tuple[Buffer, AccessMap]] = []
    for access in accesses:
        where = access_map(access.buffer, access.indices, extents, axes_of)
        if where.fits(access.buffer.type.size):
            found.append((access.buffer, where))
        elif not isinstance(access, Load):
            return None
    return found


def common_order(accesses: _Accesses, extents: _Extents, axes_of: AxesOf) -> tuple[int, ...] | None:
    """The order of memory of most loads and stores that vary along all axes; where there are none,
    or only stores of short rows, the longest axis is the innermost, for calls take long for short
    runs.
    """
    found = orders(accesses, extents, axes_of)
    if found and not _makes_short_rows(accesses, extents, axes_of):
        return max(found, key=found.count)
    order = tuple(sorted(range(len(extents)), key=extents.__getitem__))
    return None if order == tuple(range(len(order))) else order


def _makes_short_rows(accesses: _Accesses, extents: _Extents, axes_of: AxesOf) -> bool:
    """Whether of what is loaded for stores nothing varies along both axes, one of which is short,
    and enough calls are made of it that it pays to turn the result of the last.

    Not of a nest that stores nothing, but tells a condition.
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
    crowded = short > FIRST.lines_kept(column)
    most, of_a_call = (
        (MOST_CROWDED, CROWDED_OF_A_CALL) if crowded else (MOST_COLUMNS, COLUMNS_OF_A_CALL)
    )
    return short * calls >= FEWEST_ELEMENTS and short <= min(most, of_a_call * calls)


def _rank(extents: _Extents) -> int:
    return sum(extent > 1 for extent in extents)
