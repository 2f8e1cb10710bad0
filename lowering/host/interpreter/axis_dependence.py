"""Dependence analysis: the axes of a nest that an expression varies along."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from tracegraph.ir.scalar import Axis, Expr

_T = TypeVar("_T")


class AxisDependence:
    """A function from expressions to axes; those of one element do not count.

    `known` gives the axes of expressions that a caller has values for.
    """

    __slots__ = ("_axes", "_extents")

    def __init__(
        self, extents: tuple[int, ...], known: Mapping[Expr, frozenset[int]] | None = None
    ) -> None:
        self._extents = extents
        self._axes: dict[Expr, frozenset[int]] = dict(known or {})

    def __call__(self, expr: Expr) -> frozenset[int]:
        """The axes that an expression varies along."""
        return post_order(expr, self._axes, lambda e: e.children, self._of)

    def _of(self, expr: Expr) -> frozenset[int]:
        if isinstance(expr, Axis):
            return frozenset((expr.number,)) if self._extents[expr.number] > 1 else frozenset()
        return frozenset().union(*(self._axes[child] for child in expr.children))


def post_order(
    root: Expr,
    done: dict[Expr, _T],
    operands: Callable[[Expr], Iterable[Expr]],
    make: Callable[[Expr], _T],
) -> _T:
    """Post-order walk: `make` of the root, after that of all its operands, each once.

    It keeps its own stack: chains of expressions may be longer than Python's.
    """
    stack = [root]
    while stack:
        expr = stack[-1]
        missing = [] if expr in done else [e for e in operands(expr) if e not in done]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if expr not in done:
            done[expr] = make(expr)
    return done[root]
