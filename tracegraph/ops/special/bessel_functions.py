"""Bessel functions, and modified ones; those with an e are scaled by exp(-|x|)."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from tracegraph.ir.derivative import Emitter
from tracegraph.ops.cotangents import number, with_rule
from tracegraph.ops.special import bessel_values as values
from tracegraph.ops.special.by_scipy import by_scipy, horner
from tracegraph.ops.special.records import special
from tracegraph.ops.tricky import NDArray


def _over_x(f: Emitter, of_order_1: Any, x: Any, kind: str) -> Any:
    """A function of order 1 over x, which is 1/2 at 0; `numpy/even_functions.py` has its rule."""
    zero = f.equal(x, number(x, 0))
    found = f.where(zero, number(x, 0.5), of_order_1 / f.where(zero, number(x, 1), x))
    return with_rule(f, found, "even_function", x, kind=kind, n=1)


_FAR = 30.0
"""From here on, both scaled functions are nearly equal, and 18 terms of their expansions exact."""


def _expansion(order: int) -> list[float]:
    """Coefficients of sqrt(2 pi x) times the function in powers of 1 / x (Abramowitz and Stegun,
    9.7.1).
    """
    found = [1.0]
    for k in range(1, 18):
        found.append(found[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k))
    return found


def _scaled_slope(f: Emitter, x: Any, order: int, near: Any) -> Any:
    """The slope of a scaled function: far from 0 that of its expansion, where nothing cancels."""
    size = f.absolute(x)
    is_far = f.greater(size, number(x, _FAR))
    size = f.where(is_far, size, number(x, _FAR))
    inverse = 1 / size
    terms = [-(k + 0.5) * c / sqrt(2 * pi) for k, c in enumerate(_expansion(order))]
    far = horner(terms, inverse) * inverse * f.sqrt(inverse)
    return f.where(is_far, far * f.sign(x) if order == 0 else far, near)


i0 = special(
    "i0",
    "The modified Bessel function of order 0.",
    "cyl_bessel_i0({0})",
    values.i0,
    lambda f, o, x: f.i1(x),
)
i0e = special(
    "i0e",
    "exp(-|x|) times the modified Bessel function of order 0.",
    "tg_i0e({0})",
    by_scipy("i0e"),
    lambda f, o, x: _scaled_slope(f, x, 0, f.i1e(x) - f.sign(x) * o),
)
i1 = special(
    "i1",
    "The modified Bessel function of order 1.",
    "cyl_bessel_i1({0})",
    values.i1,
    lambda f, o, x: f.i0(x) - _over_x(f, o, x, "modified"),
)
i1e = special(
    "i1e",
    "exp(-|x|) times the modified Bessel function of order 1.",
    "tg_i1e({0})",
    values.i1e,
    lambda f, o, x: _scaled_slope(f, x, 1, f.i0e(x) - f.sign(x) * o - _over_x(f, o, x, "scaled")),
)


def _of_known_phase(dtype: np.dtype[Any], edges: NDArray) -> tuple[NDArray, ...]:
    """Where neighbours differ by much less than a period."""
    return (edges[~(np.abs(edges.astype(np.float64)) > 1e3)],)


j0 = special(
    "j0",
    "The Bessel function of the first kind, of order 0.",
    "j0({0})",
    values.j0,
    lambda f, o, x: -f.j1(x),
    operands=_of_known_phase,
)
j1 = special(
    "j1",
    "The Bessel function of the first kind, of order 1.",
    "j1({0})",
    values.j1,
    lambda f, o, x: f.j0(x) - _over_x(f, o, x, "bessel"),
    operands=_of_known_phase,
)
y0 = special(
    "y0",
    "The Bessel function of the second kind, of order 0; below 0, NaN.",
    "y0({0})",
    values.y0,
    lambda f, o, x: -f.y1(x),
    operands=_of_known_phase,
)
y1 = special(
    "y1",
    "The Bessel function of the second kind, of order 1; below 0, NaN.",
    "y1({0})",
    values.y1,
    lambda f, o, x: f.y0(x) - o / x,
    operands=_of_known_phase,
)
