"""Intervals: bounds of real values that hold for all arguments, from the ops that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import numpy as np

from tracegraph.ir.op import Indexed
from tracegraph.ir.program import Atom, Eqn, Literal, Value

Interval = tuple[float, float]

ANY: Interval = (-inf, inf)


def interval_of(
    atom: Atom, defs: Mapping[Value, Eqn], known: Callable[[Value], Interval | None]
) -> Interval:
    """The bounds of an atom's elements; NaN may be among them.

    `defs` are the equations of its region, and `known` gives the bounds of other values.
    """
    if isinstance(atom, Literal):
        return of_constant(atom.value)
    if atom.type.dtype.kind == "b":
        return (0, 1)
    eqn = defs.get(atom)
    if eqn is None:
        return known(atom) or ANY
    rule = _RULES.get(eqn.op.name)
    if rule is None and not (isinstance(eqn.op.form, Indexed) and eqn.op.form.view):
        return ANY
    of = [interval_of(operand, defs, known) for operand in eqn.operands]
    return of[0] if rule is None else rule(*of)


def of_constant(value: Any) -> Interval:
    """The bounds of a constant; those of complex numbers are of their size."""
    array = np.asarray(value)
    if not array.size or array.dtype.kind == "V":
        return ANY
    if array.dtype.kind == "c":
        size = float(np.abs(array).max())
        return (-size, size) if size == size else ANY
    low, high = float(array.min()), float(array.max())
    return (low, high) if low <= high else ANY


def plus(x: Interval, y: Interval) -> Interval:
    """The bounds of a sum."""
    return (x[0] + y[0], x[1] + y[1])


def minus(x: Interval, y: Interval) -> Interval:
    """The bounds of a difference."""
    return (x[0] - y[1], x[1] - y[0])


def times(x: Interval, y: Interval) -> Interval:
    """The bounds of a product: 0 times infinity is that of a bound that no number reaches."""
    ends = [0.0 if 0 in (a, b) else a * b for a in x for b in y]
    return (min(ends), max(ends))


def hull(x: Interval, y: Interval) -> Interval:
    """The bounds of either."""
    return (min(x[0], y[0]), max(x[1], y[1]))


def over(x: Interval, y: Interval) -> Interval:
    """The bounds of a quotient by numbers of one sign."""
    if y[0] <= 0 <= y[1]:
        return ANY
    return times(x, (1 / y[1], 1 / y[0]))


def _size(x: Interval) -> Interval:
    ends = sorted(map(abs, x))
    return (0 if x[0] <= 0 <= x[1] else ends[0], ends[1])


def _square(x: Interval) -> Interval:
    low, high = _size(x)
    return (low * low, high * high)


def _increasing(function: Callable[[float], Any]) -> Callable[[Interval], Interval]:
    def of_ends(x: Interval) -> Interval:
        with np.errstate(all="ignore"):
            return (float(function(x[0])), float(function(x[1])))

    return of_ends


_RULES: Mapping[str, Callable[..., Interval]] = {
    "add": plus,
    "subtract": minus,
    "multiply": times,
    "divide": over,
    "negative": lambda x: (-x[1], -x[0]),
    "absolute": _size,
    "square": _square,
    "maximum": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "minimum": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "where": lambda c, x, y: hull(x, y),
    "cast": lambda x: x,
    "exp": _increasing(np.exp),
    "tanh": _increasing(np.tanh),
    "expit": lambda x: (0, 1),
    "sin": lambda x: (-1, 1),
    "cos": lambda x: (-1, 1),
}
"""Of elementwise ops, by name. A cast to a narrower dtype rounds the bounds, which are exact to the
rounding of what they bound."""
