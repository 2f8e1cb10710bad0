"""Boxes: where a guard holds, as limits along each axis of a space.

    i >= 1 && i < 9 && j == 0      is the box {i: 1 to 9, j: 0 to 1}

What is no limit of one axis, such as a test of data, is the rest of the guard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from tracegraph.ir.scalar import Axis, Compare, Const, Expr, Sum, both, conjuncts

Limits = tuple[int, int]
"""The first index along an axis, and the one behind the last."""

UNLIMITED = 1 << 62


class GuardBox(NamedTuple):
    """The limits of the axes that are limited, by number, and what else must hold."""

    limits: Mapping[int, Limits]
    rest: Expr | None


WHOLE = GuardBox({}, None)
"""The box of no guard."""


@lru_cache(maxsize=4096)
def box_of(guard: Expr | None) -> GuardBox:
    """The box of a guard.

    >>> i, j = Axis.make(0, 9), Axis.make(1, 9)
    >>> box_of(both(both(i >= 1, i < 8), j.equals(3))).limits
    {0: (1, 8), 1: (3, 4)}
    """
    if guard is None:
        return WHOLE
    limits: dict[int, Limits] = {}
    rest: Expr | None = None
    for part in conjuncts(guard):
        found = _limits(part)
        if found is None:
            rest = both(rest, part)
        else:
            axis, (low, high) = found
            before = limits.get(axis, (0, UNLIMITED))
            limits[axis] = max(low, before[0]), min(high, before[1])
    return GuardBox(limits, rest)


def _limits(test: Expr) -> tuple[int, Limits] | None:
    """The axis that a comparison limits, and its limits; None if it limits no single axis."""
    if type(test) is not Compare or type(test.right) is not Const:
        return None
    left, bound = test.left, int(test.right.value)  # type: ignore[arg-type]
    if type(left) is Sum and len(left.terms) == 1 and left.terms[0][1] == 1:
        bound -= left.offset
        left = left.terms[0][0]
    if type(left) is not Axis:
        return None
    low, high = {"<": (0, bound), ">=": (bound, UNLIMITED), "==": (bound, bound + 1)}[test.relation]
    return left.number, (low, high)


def guard_of(limits: Mapping[int, Limits], space: Sequence[int]) -> Expr | None:
    """The guard that holds inside of limits; None if that is the whole space."""
    guard: Expr | None = None
    for number, (low, high) in sorted(limits.items()):
        axis = Axis.make(number, space[number])
        if high - low == 1:
            guard = both(guard, axis.equals(low))
        else:
            guard = both(guard, both(axis >= low, axis < high))
    return guard


def is_within(inner: GuardBox, outer: GuardBox) -> bool:
    """Whether a box is known to be inside of another one."""
    if outer.rest is not None and outer.rest is not inner.rest:
        return False
    for axis, (low, high) in outer.limits.items():
        first, end = inner.limits.get(axis, (0, UNLIMITED))
        if first < low or end > high:
            return False
    return True


def are_apart(first: GuardBox, second: GuardBox) -> bool:
    """Whether two boxes are known to have no point in common."""
    for axis, (low, high) in first.limits.items():
        begin, end = second.limits.get(axis, (0, UNLIMITED))
        if end <= low or high <= begin:
            return True
    return False
