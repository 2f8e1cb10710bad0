"""Ranges of index expressions where axes are restricted, and the positions where these end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracegraph.ir.scalar import (
    Axis,
    Both,
    Clamp,
    Compare,
    Const,
    Expr,
    FloorDiv,
    Mod,
    Select,
    Sum,
    affine,
)
from tracegraph.ir.subexpressions import subexpressions

Range = tuple[int, int]
"""The least and the greatest value."""

MOST_PIECES = 12
"""Most pieces that a loop is split into: each is a loop of its own, which takes 6 ms to compile."""

LONGEST_SEARCHED = 1 << 16
"""The extent up to which all positions of a quotient are searched for its steps."""


class Ranges:
    """Bounds of indices and the truth of predicates, with some axes in given ranges."""

    def __init__(self, axes: Mapping[int, Range]) -> None:
        self.axes = dict(axes)
        self._bounds: dict[Expr, Range | None] = {}
        self._truth: dict[Expr, bool | None] = {}

    def restricted(self, axis: int, low: int, high: int) -> Ranges:
        """The ranges with an axis in low..high, both included."""
        return Ranges({**self.axes, axis: (low, high)})

    def bounds(self, expr: Expr) -> Range | None:
        """The bounds of an index, both included; None if they depend on data."""
        if type(expr) is Axis:
            return self.axes.get(expr.number, (0, max(expr.extent - 1, 0)))
        if type(expr) is Const:
            return _whole(expr), _whole(expr)
        if expr not in self._bounds:
            self._bounds[expr] = self._find_bounds(expr)
        return self._bounds[expr]

    def _find_bounds(self, expr: Expr) -> Range | None:
        match expr:
            case Sum(terms=terms, offset=offset):
                low = high = offset
                for term, factor in terms:
                    inner = self.bounds(term)
                    if inner is None:
                        return None
                    ends = inner[0] * factor, inner[1] * factor
                    low, high = low + min(ends), high + max(ends)
                return low, high
            case Clamp(operand=operand, low=low, high=high):
                inner = self.bounds(operand) or (low, high)
                return min(max(inner[0], low), high), min(max(inner[1], low), high)
            case Mod(operand=operand, divisor=divisor):
                inner = self.bounds(operand)
                if inner is not None and inner[0] // divisor == inner[1] // divisor:
                    return inner[0] % divisor, inner[1] % divisor
                return 0, divisor - 1
            case FloorDiv(operand=operand, divisor=divisor):
                inner = self.bounds(operand)
                return None if inner is None else (inner[0] // divisor, inner[1] // divisor)
            case Select(predicate=predicate, chosen=chosen, other=other):
                known = self.truth(predicate)
                if known is not None:
                    return self.bounds(chosen if known else other)
                one, two = self.bounds(chosen), self.bounds(other)
                if one is None or two is None:
                    return None
                return min(one[0], two[0]), max(one[1], two[1])
        return None

    def truth(self, predicate: Expr | None) -> bool | None:
        """Whether a predicate holds everywhere or nowhere; None if that is not known."""
        if predicate is None:
            return True
        if predicate not in self._truth:
            self._truth[predicate] = self._find_truth(predicate)
        return self._truth[predicate]

    def _find_truth(self, predicate: Expr) -> bool | None:
        match predicate:
            case Const(value=value):
                return bool(value)
            case Both(left=left, right=right):
                one, two = self.truth(left), self.truth(right)
                if one is False or two is False:
                    return False
                return True if one and two else None
            case Compare(relation=relation, left=left, right=right):
                difference = self._difference(left, right)
                return None if difference is None else _decided(relation, *difference)
        return None

    def _difference(self, left: Expr, right: Expr) -> Range | None:
        one, two = self.bounds(left), self.bounds(right)
        if one is None or two is None:
            return None
        if one[0] == one[1] or two[0] == two[1]:
            return one[0] - two[1], one[1] - two[0]
        return self.bounds(left - right)


def _decided(relation: str, low: int, high: int) -> bool | None:
    """Whether `difference relation 0` holds for all differences in low..high, or for none."""
    always = {"<": high < 0, ">=": low >= 0, "==": low == high == 0}[relation]
    never = {"<": low >= 0, ">=": high < 0, "==": low > 0 or high < 0}[relation]
    return always if always or never else None


def _whole(constant: Const) -> int:
    value: Any = constant.value
    return int(value.real)


def break_points(roots: Iterable[Expr], axis: int, extent: int) -> list[int]:
    """The positions along an axis where a quotient, remainder, clamp or comparison of it changes.

    Between two of them, each of these is linear or constant. Empty if there are too many.

    >>> i = Axis.make(0, 10)
    >>> break_points([(i + 3) % 10], 0, 10)
    [7]
    """
    found: set[int] = set()
    for expr in subexpressions(tuple(roots)):
        match expr:
            case Mod(operand=operand, divisor=divisor) | FloorDiv(operand=operand, divisor=divisor):
                along = _along(operand, axis)
                if along is not None:
                    found |= _steps(*along, divisor, extent)
            case Clamp(operand=operand, low=low, high=high):
                along = _along(operand, axis)
                if along is not None:
                    ends = (low, high + 1) if along[0] > 0 else (high, low - 1)
                    found |= {_crossing(*along, end) for end in ends}
            case Compare(relation=relation, left=left, right=right):
                along = _along(left - right, axis)
                if along is not None and relation == "==":
                    found |= {_crossing(*along, 0), _crossing(*along, 0) + 1}
                elif along is not None:
                    found.add(_crossing(*along, 0 if along[0] > 0 else -1))
    inside = sorted(position for position in found if 0 < position < extent)
    return inside if len(inside) < MOST_PIECES else []


def _along(index: Expr, axis: int) -> tuple[int, int] | None:
    """The factor and offset of an index that is linear in this axis, and has no other."""
    found = affine(index)
    if found is None or set(found[0]) != {axis}:
        return None
    return found[0][axis], found[1]


def _steps(factor: int, offset: int, divisor: int, extent: int) -> set[int]:
    """The positions where (factor · i + offset) // divisor changes, if they are few."""
    ends = offset // divisor, (offset + factor * (extent - 1)) // divisor
    if abs(ends[1] - ends[0]) > MOST_PIECES or extent > LONGEST_SEARCHED:
        return set()
    quotients = [(offset + factor * i) // divisor for i in range(extent)]
    return {i for i in range(1, extent) if quotients[i] != quotients[i - 1]}


def _crossing(factor: int, offset: int, value: int) -> int:
    """The first position where factor · i + offset has reached the value, from either side."""
    return -((offset - value) // factor) if factor > 0 else -((value - offset) // -factor)
