"""Even functions that come in families, each the slope of the one before over its argument.

    kind        F_0       F_n               F_n'
    bessel      j0(x)     J_n(x) / x^n      -x F_(n+1)
    modified    i0(x)     I_n(x) / x^n       x F_(n+1)
    scaled      i0e(x)    the same times exp(-|x|)
    spherical   sin(x)/x  j_n(x) / x^n      -x F_(n+1)

(Abramowitz and Stegun, 9.1.30, 9.6.28, 10.1.24.) At 0, where formulas divide 0 by 0, they are power
series, so that derivatives of every order are right there.
"""

from __future__ import annotations

from typing import Any, Literal

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.attached import derivative_rule, with_derivative
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.ufuncs import absolute, cos, divide, exp, less, negative, sign, sin

Kind = Literal["bessel", "modified", "scaled", "spherical"]

_NEAR = {0: 0.0, 1: 0.7, 2: 1.5}
_NEAR_HIGHER = 3.0
"""By n: below, the series is summed; above, recurrence from F_0 and F_1 loses few digits."""


@derivative_rule("even_function")
def _of_even(value: Any, x: Any, *, tangents: Any, kind: Kind, n: int) -> Any:
    """The next function times x."""
    slope = x * even_function(x, kind, n + 1)
    if kind in ("bessel", "spherical"):
        slope = negative(slope)
    if kind == "scaled":
        own = with_derivative(value, "even_function", x, kind=kind, n=n)
        slope = slope - sign(x) * own
    return slope * tangents[0]


def even_function(x: Any, kind: Kind, n: int) -> Any:
    """F_n, n from 1, of arrays of floating point."""
    limit = _NEAR.get(n, _NEAR_HIGHER)
    is_near = less(absolute(x), limit)
    near = _series(where(is_near, x, x.dtype.type(0)), kind, n, limit)
    far = _by_recurrence(where(is_near, x.dtype.type(limit), x), kind, n)
    found = where(is_near, near, far)
    return with_derivative(found.astype(x.dtype), "even_function", x, kind=kind, n=n)


def _series(x: Any, kind: Kind, n: int, limit: float) -> Any:
    """The first terms of the power series, which is of the exponential's kind."""
    first, steps = 1.0, []
    for k in range(1, n + 1):
        first /= 2 * k + 1 if kind == "spherical" else 2 * k
    size, k = 1.0, 0
    while size > 1e-20:
        k += 1
        divisor = 2 * k * (2 * (n + k) + 1) if kind == "spherical" else 4 * k * (n + k)
        steps.append(1 / divisor)
        size *= limit * limit / divisor
    square = x * x
    if kind in ("bessel", "spherical"):
        square = negative(square)
    total: Any = x.dtype.type(1)
    for step in reversed(steps):
        total = 1 + (square * x.dtype.type(step)) * total
    found = total * x.dtype.type(first)
    return found * exp(-absolute(x)) if kind == "scaled" else found


def _by_recurrence(x: Any, kind: Kind, n: int) -> Any:
    square = x * x
    if kind == "spherical":
        before = divide(sin(x), x)
        found = (before - cos(x)) / square
    else:
        names = {"bessel": ("j0", "j1"), "modified": ("i0", "i1"), "scaled": ("i0e", "i1e")}[kind]
        before, found = apply(get(names[0]), x), apply(get(names[1]), x) / x
    for k in range(1, n):
        factor = 2 * k + 1 if kind == "spherical" else 2 * k
        rest = factor * found - before
        if kind in ("modified", "scaled"):
            rest = negative(rest)
        before, found = found, rest / square
    return found
