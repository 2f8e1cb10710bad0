"""Linearisation: expressions over the axes of a nest, rewritten over linear indices.

A thread knows its linear index, not the index along each axis. Axis k becomes
`point // stride % extent`, and simplification does the rest: a row-major access becomes
`buffer[point]`, and axes that no access uses cost nothing.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from lowering.plan.nests.kernel import Signal, Store
from lowering.plan.nests.strides import offset_in
from tracegraph.ir.scalar import Axis, Expr, floor_divide, modulo
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.subexpressions import Substitution, subexpressions
from tracegraph.ir.types import row_major_strides

POINT, STEP = -1, -2
"""Axis numbers of the two linear indices: over independent axes, and over sequential ones."""


def linear_axis(number: int, extents: tuple[int, ...]) -> Axis:
    """The linear index over axes of these extents."""
    return Axis.make(number, prod(extents))


class Flattener:
    """Rewrites the expressions of one nest; a shared subexpression is rewritten once.

    Afterwards every Load has one index, its position in the buffer, and every `Axis` is a linear
    index. `axes` maps each linear index to the (number, extent) of the axes that it covers.
    """

    def __init__(self, axes: dict[int, list[tuple[int, int]]]) -> None:
        self._flat = Substitution()
        for kind, members in axes.items():
            extents = tuple(extent for _, extent in members)
            whole = linear_axis(kind, extents)
            for (number, extent), stride in zip(members, row_major_strides(extents), strict=True):
                index = modulo(floor_divide(whole, stride or 1), extent or 1)
                self._flat[Axis.make(number, extent)] = index

    def __call__(self, expr: Expr) -> Expr:
        """The expression over linear indices."""
        flat = self._flat
        for part in subexpressions((expr,)):  # operands first, so nothing recurses deeply
            if part in flat:
                continue
            new = flat[part]
            if isinstance(new, Load):
                position = offset_in(new.buffer.type.shape, new.indices)
                flat[part] = Load.make(new.buffer, (position,), new.guard)
        return flat[expr]

    def store(self, store: Store) -> Store:
        """The store with one index, the position in its buffer."""
        position = self(offset_in(store.buffer.type.shape, store.indices))
        guard = None if store.guard is None else self(store.guard)
        return Store(store.buffer, (position,), self(store.value), guard)

    def signal(self, signal: Signal) -> Signal:
        """The signal over linear indices."""
        return replace(signal, value=self(signal.value))
