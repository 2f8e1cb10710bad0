"""Indices under a guard: simpler where it bounds the axes they depend on, or decides a choice.

A row of a padded or joined array is read at `i + (j + 6) // 8 - 1` where `2 <= j`, for instance,
which is `i` if `j` is below 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracegraph.ir.scalar import Axis, Both, Compare, Const, Expr, Select, Sum
from tracegraph.ir.subexpressions import subexpressions, substitution

_INSIDE = -1000
"""The number of the first axis that stands for the part of another one within its bounds."""


def under(guard: Expr | None, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Indices that are equal to the given ones where the guard holds.

    >>> i, j = Axis.make(0, 100), Axis.make(1, 10)
    >>> under(j >= 2, (i + (j + 6) // 8 - 1,)) == (i,)
    True
    """
    if guard is None:
        return indices
    parts = subexpressions(indices)
    holding = set(_conjuncts(guard))
    chosen: dict[Expr, Expr] = {
        e: e.chosen for e in parts if isinstance(e, Select) and e.predicate in holding
    }
    if chosen:
        choose = substitution(chosen)
        indices = tuple(map(choose, indices))
        parts = subexpressions(indices)
    bounds = {axis: ends for axis, ends in _bounds(guard).items() if ends[0] < ends[1]}
    if not any(part in bounds for part in parts):
        return indices
    inside: dict[Expr, Expr] = {}
    outside: dict[Expr, Expr] = {}
    for number, (axis, (first, end)) in enumerate(bounds.items()):
        part = Axis.make(_INSIDE - number, end - first)
        inside[axis] = part + first
        outside[part] = axis - first
    to, back = substitution(inside), substitution(outside)
    return tuple([back(to(index)) for index in indices])


def _bounds(guard: Expr) -> Mapping[Axis, tuple[int, int]]:
    """The first position and the end along each axis that a guard bounds by itself."""
    found: dict[Axis, tuple[int, int]] = {}
    for part in _conjuncts(guard):
        if isinstance(part, Compare) and isinstance(part.right, Const):
            axis, offset = _shifted(part.left)
            if axis is None:
                continue
            first, end = found.get(axis, (0, axis.extent))
            limit = int(part.right.value.real) - offset
            if part.relation == "<":
                end = min(end, limit)
            elif part.relation == ">=":
                first = max(first, limit)
            else:
                first, end = max(first, limit), min(end, limit + 1)
            found[axis] = first, end
    return found


def _conjuncts(guard: Expr) -> Iterator[Expr]:
    """What holds where a guard does."""
    pending = [guard]
    while pending:
        part = pending.pop()
        if isinstance(part, Both):
            pending += [part.left, part.right]
        else:
            yield part


def _shifted(expr: Expr) -> tuple[Axis | None, int]:
    """The axis and the offset, if an index is an axis and an offset."""
    if isinstance(expr, Axis):
        return expr, 0
    if isinstance(expr, Sum) and len(expr.terms) == 1:
        ((term, factor),) = expr.terms
        if isinstance(term, Axis) and factor == 1:
            return term, expr.offset
    return None, 0
