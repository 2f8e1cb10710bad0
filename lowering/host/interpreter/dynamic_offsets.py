"""Dynamic offsets: scalar index expressions as functions on Python ints.

Python's arithmetic on one number is several times as fast as a ufunc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowering.host.arena import Array
from tracegraph.ir.scalar import Clamp, Const, Expr, FloorDiv, Mod, Sum
from tracegraph.ir.scalar_values import AsIndex

Offset = Callable[[Sequence[Array]], int]


def offset_function(expr: Expr) -> tuple[Offset, tuple[Expr, ...]]:
    """A function for an index that varies along no axis, and the expressions that it takes."""
    leaves: list[Expr] = []
    return _function(expr, leaves), tuple(leaves)


def _function(expr: Expr, leaves: list[Expr]) -> Offset:
    match expr:
        case Const(value=value):
            number = int(value)  # type: ignore[arg-type]
            return lambda _: number
        case Sum(terms=((term, factor),), offset=offset):
            one = _function(term, leaves)
            return lambda arrays: factor * one(arrays) + offset
        case Sum(terms=terms, offset=offset):
            parts = [(_function(term, leaves), factor) for term, factor in terms]
            return lambda arrays: sum([factor * part(arrays) for part, factor in parts], offset)
        case FloorDiv(operand=operand, divisor=divisor):
            inner = _function(operand, leaves)
            return lambda arrays: inner(arrays) // divisor
        case Mod(operand=operand, divisor=divisor):
            inner = _function(operand, leaves)
            return lambda arrays: inner(arrays) % divisor
        case Clamp(operand=operand, low=low, high=high):
            return _clamp(_function(operand, leaves), low, high)
    position = len(leaves)
    leaves.append(expr.operand if isinstance(expr, AsIndex) else expr)
    return lambda arrays: int(arrays[position].item())


def _clamp(inner: Offset, low: int, high: int) -> Offset:
    def clamped(arrays: Sequence[Array]) -> int:
        number = inner(arrays)
        if number < low:
            return low
        return high if number > high else number

    return clamped
