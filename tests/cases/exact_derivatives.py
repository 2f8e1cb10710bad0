"""Functions with exact derivatives at points where formulas for these divide zero by zero.

A case has a function of one array, points, and what its derivatives there are compared with: those
of mpmath's function, numbers, or those of a polynomial, or smooth function, that equals it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import mpmath
import numpy as np

import tracegraph
from tracegraph import special

Function = Callable[[Any], Any]


@dataclass(frozen=True)
class Line:
    """A function of one number, by NumPy and by mpmath, at points; `tolerance` is relative."""

    name: str
    function: Function
    exact: Function
    points: Sequence[float]
    orders: int = 3
    tolerance: float = 1e-10


def derivative(exact: Function, point: float, order: int) -> float:
    """The derivative of mpmath's function."""
    with mpmath.workdps(80):
        return float(mpmath.diff(exact, mpmath.mpf(point), order, h=mpmath.mpf(10) ** -15))


def _y1(x: mpmath.mpf) -> mpmath.mpf:
    """Y₁ by the Wronskian of J and Y, where J₀ is not 0: mpmath's own takes ten times as long."""
    j0, j1 = mpmath.besselj(0, x), mpmath.besselj(1, x)
    return (j1 * mpmath.bessely(0, x) - 2 / (mpmath.pi * x)) / j0


def _log_beta(b: float) -> Function:
    return lambda a: mpmath.log(abs(mpmath.beta(a, b)))


NEAR_0 = (0.0, 1e-8, -1e-5, 1e-3, 0.69, 0.71, 1.49, 1.51, 2.9, 3.1, 20.0, -2.0)
_TAILS = (-30.0, -10.0, -1.0, -1e-3, 0.0, 1e-3, 1.9, 2.1, 2.9, 3.1, 3.9, 4.1, 9.0)

LINES = [
    Line("sinc", np.sinc, mpmath.sincpi, (0.0, 1e-8, 1e-3, 0.22, 0.23, 0.5, 1.0, -3.3, 20.25), 4),
    Line("j0", special.j0, lambda x: mpmath.besselj(0, x), NEAR_0, 4),
    Line("j1", special.j1, lambda x: mpmath.besselj(1, x), NEAR_0, 4),
    Line("y0", special.y0, lambda x: mpmath.bessely(0, x), (1e-3, 0.5, 30.0)),
    Line("y1", special.y1, _y1, (1e-3, 0.5, 30.0)),
    Line("i0", special.i0, lambda x: mpmath.besseli(0, x), NEAR_0, 4),
    Line("i1", special.i1, lambda x: mpmath.besseli(1, x), NEAR_0, 4),
    Line(
        "i0e",
        special.i0e,
        lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
        (1e-8, 0.5, 29.0, 31.0, 1e4, 1e10, -40.0),
    ),
    Line(
        "i1e",
        special.i1e,
        lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
        (1e-8, 0.5, 29.0, 31.0, 1e4, 1e10, -40.0),
    ),
    Line("erf", special.erf, mpmath.erf, (0.0, 0.5, -2.0, 5.0)),
    Line("erfc", special.erfc, mpmath.erfc, (0.5, -2.0, 10.0, 20.0)),
    Line("erfcx", special.erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), _TAILS[1:], 4),
    Line("erfinv", special.erfinv, mpmath.erfinv, (0.0, 0.5, -0.9)),
    Line("erfcinv", special.erfcinv, lambda x: mpmath.erfinv(1 - x), (0.5, 1.0, 1.5, 1e-3)),
    Line("ndtr", special.ndtr, mpmath.ncdf, (0.0, 0.5, -5.0, 5.0)),
    Line("log_ndtr", special.log_ndtr, lambda x: mpmath.log(mpmath.ncdf(x)), _TAILS, 3, 1e-9),
    Line("gammaln", special.gammaln, lambda x: mpmath.log(abs(mpmath.gamma(x))),
         (0.1, 2.0, -0.5, 1e4)),
    Line("gamma", special.gamma, mpmath.gamma, (0.1, 1.0, 2.0, -0.5, -3.7, 100.0)),
    Line("digamma", special.digamma, mpmath.digamma, (0.1, 1.0, -0.5, -3.7, 1e4)),
    Line("expit", special.expit, lambda x: 1 / (1 + mpmath.exp(-x)),
         (-3.0, 1.0, 40.0, 100.0, -40.0)),
    Line("logit", special.logit, lambda x: mpmath.log(x / (1 - x)), (0.1, 1e-8, 0.999)),
    Line("log_expit", special.log_expit, lambda x: -mpmath.log(1 + mpmath.exp(-x)),
         (1.0, 40.0, -40.0)),
    Line("entr", special.entr, lambda x: -x * mpmath.log(x), (0.5, 1e-8)),
    Line("exp1", special.exp1, mpmath.e1, (0.5, 1e-8, 100.0)),
    Line("expi", special.expi, mpmath.ei, (0.5, 1e-8, 100.0, -3.0)),
    Line("ellipk", special.ellipk, mpmath.ellipk, (0.0, 1e-8, 0.059, 0.061, 0.5, 0.99, -1e5)),
    Line("ellipe", special.ellipe, mpmath.ellipe, (0.0, 1e-8, 0.059, 0.061, 0.5, 0.99, -1e5)),
    *(
        Line(f"gammainc of {a}", lambda x, a=a: special.gammainc(a, x),
             lambda x, a=a: mpmath.gammainc(a, 0, x, regularized=True), (1e-3, 0.5, 3.0, 40.0))
        for a in (0.5, 1.0, 2.0, 50.0)
    ),
    Line("gammainc of 10000", lambda x: special.gammainc(1e4, x),
         lambda x: mpmath.gammainc(10000, 0, x, regularized=True), (9900.0, 1e4), 2, 1e-9),
    *(
        Line(f"gammaincc of {a}", lambda x, a=a: special.gammaincc(a, x),
             lambda x, a=a: mpmath.gammainc(a, x, regularized=True), (1e-3, 0.5, 3.0, 40.0))
        for a in (0.5, 2.0)
    ),
    *(
        Line(f"betainc of {a} and {b}", lambda x, a=a, b=b: special.betainc(a, b, x),
             lambda x, a=a, b=b: mpmath.betainc(a, b, 0, x, regularized=True), (1e-3, 0.4, 0.9))
        for a, b in ((0.5, 0.5), (1.0, 3.0), (2.5, 1.0))
    ),
    *(
        Line(f"betaln with {b}", lambda a, b=b: special.betaln(a, b), _log_beta(b),
             (0.5, 3.0, 19.0, 21.0, 1e5, 1e10))
        for b in (0.5, 3.0)
    ),
    *(
        Line(f"x ** {p}", lambda x, p=p: x**p, lambda x, p=p: x**p, (2.0, 0.5), 4)
        for p in (0.0, 1.0, 2.0, 2.5, -1.0)
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Known:
    """Derivatives of orders from 1 on that are known at a point, in a single direction."""

    name: str
    function: Function
    point: float
    values: Sequence[float]


KNOWN = [
    *(
        Known(f"x ** {p} at 0", lambda x, p=p: x ** np.array(p), 0.0, values)
        for p, values in (
            (0.0, (0.0, 0.0, 0.0, 0.0)),
            (1.0, (1.0, 0.0, 0.0, 0.0)),
            (2.0, (0.0, 2.0, 0.0, 0.0)),
            (3.0, (0.0, 0.0, 6.0, 0.0)),
            (0.5, (np.inf, -np.inf, np.inf, -np.inf)),
        )
    ),
    Known("0 ** y", lambda y: np.zeros(()) ** y, 2.0, (0.0, 0.0, 0.0)),
    *(
        Known(f"gammainc of {a} at 0", lambda x, a=a: special.gammainc(a, x), 0.0, values)
        for a, values in (
            (1.0, (1.0, -1.0, 1.0)),
            (2.0, (0.0, 1.0, -2.0)),
            (3.0, (0.0, 0.0, 1.0)),
        )
    ),
    Known("betainc of 2 at 0", lambda x: special.betainc(2.0, 2.0, x), 0.0, (0.0, 6.0, -12.0)),
    Known("betainc of 2 at 1", lambda x: special.betainc(2.0, 2.0, x), 1.0, (0.0, -6.0, -12.0)),
    Known("erfcx far out", special.erfcx, 1e15, (-5.641895835477563e-31, 1.1283791670955126e-45)),
    Known("log_ndtr far out", special.log_ndtr, -1e8, (1e8, -1.0)),
    Known("hypot", lambda x: np.hypot(x, np.zeros(())), 0.0, (0.0,)),
    Known("gammainc far out", lambda x: special.gammainc(2.0, x), np.inf, (0.0, 0.0)),
]


@dataclass(frozen=True)
class Matrices:
    """A function of a square matrix, and a smooth one that equals it, at matrices."""

    name: str
    function: Function
    smooth: Function
    points: Sequence[Any]
    tolerances: Sequence[float]  # of each order of derivatives that is looked at


def leibniz(x: Any) -> Any:
    """The determinant as a sum over permutations."""
    n, total = x.shape[-1], 0.0
    for order in permutations(range(n)):
        sign = 1.0
        for i in range(n):
            sign *= (-1.0) ** sum(order[j] > order[i] for j in range(i))
        term: Any = sign
        for i in range(n):
            term = term * x[i, order[i]]
        total = total + term
    return total


_RNG = np.random.default_rng(0)


def _of_rank(n: int, rank: int) -> Any:
    left, right = _RNG.integers(-1, 2, (2, n, n)).astype(float)
    return left[:, :rank] @ right[:rank]


def _with_values(values: Sequence[float]) -> Any:
    q, _ = np.linalg.qr(_RNG.standard_normal((len(values),) * 2))
    return q @ np.diag(values) @ q.T


def _symmetric(x: Any) -> Any:
    return (x + x.T) / 2


WEIGHTS = _RNG.standard_normal((3, 3))
REPEATED = [
    np.eye(3),
    np.diag([1.0, 1.0, 2.0]),
    np.zeros((3, 3)),
    _with_values([1.0, 1.0, 2.0]),
    _with_values([2.0, 2.0, 2.0]),
    _with_values([1.0, 2.0, 4.0]),
]
_HALF_OF_DIGITS = (1e-6, 1e-4, 1e-3)
_DIGITS = (1e-12, 1e-12, 1e-11)


def _rebuilt(x: Any, f: Function) -> Any:
    values, vectors = np.linalg.eigh(_symmetric(x))
    return (((vectors * f(values)) @ vectors.T) * WEIGHTS).sum()


def _from_singular_values(x: Any) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return (((u * s) @ vh) * WEIGHTS).sum()


def _from_complete_factors(x: Any) -> Any:
    q, r = np.linalg.qr(x[:, :2], mode="complete")
    return ((q @ r) * WEIGHTS[:, :2]).sum() + x[0, 2] ** 2


def _eigenvalues(x: Any) -> Any:
    return np.linalg.eigvalsh(_symmetric(x))


MATRICES = [
    *(
        Matrices(f"det of {n} rows", np.linalg.det, leibniz,
                 [_of_rank(n, r) for r in (range(n + 1) if n < 4 else (1, 2, 3))],
                 _DIGITS if n < 5 else _DIGITS[:2])
        for n in (1, 2, 3, 4, 5)
    ),
    Matrices("det of a diagonal", np.linalg.det, leibniz, [np.diag([2.0, 0.0, 3.0, 0.0])], _DIGITS),
    Matrices("the square of a norm", lambda x: np.linalg.norm(x) ** 2, lambda x: (x * x).sum(),
             [np.zeros((2, 2)), np.eye(2)], _DIGITS),
    Matrices("norms of rows", lambda x: (np.linalg.norm(x, axis=1) ** 2.0).sum(),
             lambda x: (x * x).sum(), [np.diag([0.0, 1.0])], _DIGITS),
    Matrices("the fourth power of a norm", lambda x: np.linalg.norm(x) ** 4,
             lambda x: (x * x).sum() ** 2, [np.zeros((2, 2)), np.eye(2)], _DIGITS),
    Matrices("sum of eigenvalues", lambda x: _eigenvalues(x).sum(), np.trace, REPEATED,
             _HALF_OF_DIGITS),
    Matrices("sum of cubes of eigenvalues", lambda x: (_eigenvalues(x) ** 3).sum(),
             lambda x: np.trace(_symmetric(x) @ _symmetric(x) @ _symmetric(x)), REPEATED,
             _HALF_OF_DIGITS),
    Matrices("product of eigenvalues", lambda x: np.prod(_eigenvalues(x)),
             lambda x: leibniz(_symmetric(x)), REPEATED, _HALF_OF_DIGITS),
    Matrices("rebuilt from eigenvectors", lambda x: _rebuilt(x, lambda w: w),
             lambda x: (_symmetric(x) * WEIGHTS).sum(), REPEATED, _HALF_OF_DIGITS),
    Matrices("square by eigenvectors", lambda x: _rebuilt(x, np.square),
             lambda x: ((_symmetric(x) @ _symmetric(x)) * WEIGHTS).sum(), REPEATED,
             _HALF_OF_DIGITS),
    Matrices("rebuilt from singular vectors", _from_singular_values, lambda x: (x * WEIGHTS).sum(),
             REPEATED, _HALF_OF_DIGITS),
    Matrices("sum of squares of singular values", lambda x: (np.linalg.svdvals(x) ** 2).sum(),
             lambda x: (x * x).sum(), REPEATED, _HALF_OF_DIGITS),
    Matrices("exponential by eigenvectors", lambda x: _rebuilt(x, np.exp),
             lambda x: (tracegraph.linalg.expm(_symmetric(x)) * WEIGHTS).sum(), REPEATED,
             _HALF_OF_DIGITS),
    Matrices("rebuilt from complete factors", _from_complete_factors,
             lambda x: (x[:, :2] * WEIGHTS[:, :2]).sum() + x[0, 2] ** 2, [REPEATED[0], REPEATED[5]],
             (1e-10, 1e-10, 1e-9)),
    Matrices("matrix_power", lambda x: (np.linalg.matrix_power(x, 3) * WEIGHTS).sum(),
             lambda x: ((x @ x @ x) * WEIGHTS).sum(), REPEATED[:3], _DIGITS),
]  # fmt: skip
