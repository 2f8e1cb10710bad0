"""Repeated integrals of erfc, scaled by exp(x²), which derivatives of scaled functions are made of.

e_0 is erfcx, and e_n' = -2 (n + 1) e_(n+1) (Abramowitz and Stegun, 7.2): derivatives of every order
are one of these, where formulas with powers of x cancel.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from tracegraph.ir.derivative import Emitter
from tracegraph.ops.cotangents import number, with_rule

_BY_ORDER = {1: (4.0, 15), 2: (3.0, 22)}
_HIGHER = 2.0, 50
"""By n: from where a continued fraction takes over, and its steps, which leave 1e-15 there. Below,
the recurrence loses n times a factor of twice the square of that."""


def scaled_integral(f: Emitter, first: Any, x: Any, n: int) -> Any:
    """e_n for n from 1, `first` being erfcx(x), with its derivatives."""
    start, steps = _BY_ORDER.get(n, _HIGHER)
    is_far = f.greater(x, number(x, start))
    near = f.where(is_far, number(x, 0), x)
    before, found = 2 / sqrt(pi), f.where(is_far, number(x, 1), first)
    for k in range(n):
        before, found = found, (before - 2 * near * found) / (2 * (k + 1))
    far = first
    for ratio in _ratios(f, f.where(is_far, x, number(x, start)), n, steps):
        far = far * ratio
    return with_rule(f, f.where(is_far, far, found), "scaled_integral", x, n=n)


def first_ratio(f: Emitter, first: Any, x: Any) -> Any:
    """e_1 / e_0 from x = 0 on."""
    start, steps = _BY_ORDER[1]
    is_far = f.greater(x, number(x, start))
    (far,) = _ratios(f, f.where(is_far, x, number(x, start)), 1, steps)
    return f.where(is_far, far, 1 / (sqrt(pi) * first) - x)


def _ratios(f: Emitter, x: Any, n: int, steps: int) -> list[Any]:
    """e_k / e_(k-1) for k from 1 to n, which satisfy r_k = 1 / (2 x + 2 (k + 1) r_(k+1))."""
    last = n + steps
    ratio = 1 / (x + f.sqrt(x * x + 2.0 * last))  # of equal neighbours
    found = []
    for k in reversed(range(1, last)):
        ratio = 1 / (2 * x + (2.0 * k + 2) * ratio)
        if k <= n:
            found.append(ratio)
    return found


def hazard(f: Emitter, x: Any) -> Any:
    """The density over the probability of the standard normal distribution, exact in both tails."""
    first = f.erfcx(x * -sqrt(0.5))
    return with_rule(f, sqrt(2 / pi) / first, "hazard", x)


def hazard_excess(f: Emitter, of: Any, x: Any) -> Any:
    """`hazard(x) + x`, which cancels far below 0: -hazard' / hazard."""
    size = f.maximum(x * -sqrt(0.5), number(x, 0))
    below = sqrt(2) * first_ratio(f, f.erfcx(size), size)
    value = f.where(f.less(x, number(x, 0)), below, x + of)
    return with_rule(f, value, "hazard_excess", x)
