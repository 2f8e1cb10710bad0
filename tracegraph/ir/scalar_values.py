"""Values of the scalar language: elements that are loaded, computed, or made of an index.

    Value := Load | Apply | AsValue | AsIndex | Accumulated

`ir/scalar.py` has the rest of the language: indices, predicates and choices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracegraph.ir.op import Op
from tracegraph.ir.record import record
from tracegraph.ir.scalar import INDEX, Const, Expr, as_expr, both, bounds, const, select


@record
class Load(Expr):
    """An element of a contiguous row-major buffer, one index per axis.

    With a guard, the element is read only where it holds; elsewhere the value is zero and the
    indices may be out of range.
    """

    buffer: Any  # lowering's Buffer: has .type
    indices: tuple[Expr, ...]
    guard: Expr | None = None

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        dtype: np.dtype[Any] = self.buffer.type.dtype
        return dtype

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.indices if self.guard is None else (*self.indices, self.guard)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        indices = tuple(map(of, self.indices))
        guard = both(None if self.guard is None else of(self.guard), None)
        if indices == self.indices and guard is self.guard:
            return self
        return Load.make(self.buffer, indices, guard)


@record
class Apply(Expr):
    """An elementwise op on scalars. `attrs` is a sorted tuple of pairs."""

    op: Op
    args: tuple[Expr, ...]
    dtype: np.dtype[Any]
    attrs: tuple[tuple[str, Any], ...] = ()

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        args = tuple(map(of, self.args))
        return self if args == self.args else Apply.make(self.op, args, self.dtype, self.attrs)


Apply.children = Apply.args  # type: ignore[assignment]  # the slot itself: no call to read it


@record
class AsValue(Expr):
    """An index as a value of a dtype: an element of iota."""

    operand: Expr
    dtype: np.dtype[Any]

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        return as_value(of(self.operand), self.dtype)


@record
class AsIndex(Expr):
    """An integer value as an index: a gather reads there."""

    operand: Expr
    dtype = INDEX

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def rebuilt(self, of: Callable[[Expr], Expr]) -> Expr:
        return as_index(of(self.operand))


@record
class Accumulated(Expr):
    """The final value of accumulator `number` of the enclosing reduction."""

    number: int
    dtype: np.dtype[Any]
    children = ()


def apply(op: Op, args: tuple[Expr, ...], dtype: np.dtype[Any], attrs: Mapping[str, Any]) -> Expr:
    """An elementwise op on scalars."""
    return Apply.make(op, args, dtype, tuple(sorted(attrs.items())) if attrs else ())


def as_value(expr: Expr | int, dtype: np.dtype[Any]) -> Expr:
    """An index as a value of a dtype."""
    index = as_expr(expr)
    return AsValue.make(index, dtype)


def as_index(expr: Expr) -> Expr:
    """An integer value as an index; constants fold, indices that fit the value's dtype, and the
    choice between two of these.
    """
    if type(expr) is Const:
        return const(int(expr.value))  # type: ignore[arg-type]
    if type(expr) is AsValue:
        limits, dtype = bounds(expr.operand), np.iinfo(expr.dtype)
        if limits is not None and dtype.min <= limits[0] and limits[1] <= dtype.max:
            return expr.operand
    if type(expr) is Apply and expr.op.name == "where":
        predicate, *values = expr.args
        if all(type(value) in (Const, AsValue) for value in values):
            chosen, other = map(as_index, values)
            return select(predicate, chosen, other)
    return AsIndex.make(expr)
