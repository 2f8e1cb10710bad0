"""The incomplete gamma and beta functions, with derivatives in the bound of the integral."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tracegraph.ir.derivative import Emitter, NoDerivativeError
from tracegraph.ops.special import incomplete_values
from tracegraph.ops.special.densities import beta_density, gamma_density
from tracegraph.ops.special.records import COST, special
from tracegraph.ops.tricky import NDArray


def _no_slope(f: Emitter, out: Any, *operands: Any) -> NoReturn:
    """An error that says why there is none."""
    raise NoDerivativeError(
        "incomplete functions have no derivative in their parameters, only in the last operand x"
    )


def _gamma_density(f: Emitter, a: Any, x: Any) -> Any:
    return gamma_density(f, a - 1, f.gammaln(a), x)


def _beta_density(f: Emitter, out: Any, a: Any, b: Any, x: Any) -> Any:
    return beta_density(f, a - 1, b - 1, f.betaln(a, b), x)


def _pairs(dtype: np.dtype[Any], values: NDArray) -> tuple[NDArray, ...]:
    """All pairs but those whose results are so small that they are exponentials."""
    return values[:, None], values[np.abs(values.astype(np.float64)) != 100.5]


def _triples(dtype: np.dtype[Any], values: NDArray) -> tuple[NDArray, ...]:
    parameters = np.array([0.0, 0.5, 1.0, 3.0, 7.25, 40.0, np.inf, np.nan, -1.0], dtype)
    x = np.array([0.0, 0.125, 0.5, 0.75, 1.0, 1.5, -0.5, np.nan], dtype)
    return parameters[:, None, None], parameters[:, None], x


gammainc = special(
    "gammainc",
    "The integral of t**(a - 1) exp(-t) from 0 to x, over gamma(a).",
    "tg_gammainc({0}, {1})",
    incomplete_values.gammainc,
    _no_slope,
    lambda f, o, a, x: _gamma_density(f, a, x),
    cost=8 * COST,
    operands=_pairs,
)
gammaincc = special(
    "gammaincc",
    "The integral of t**(a - 1) exp(-t) from x on, over gamma(a).",
    "tg_gammaincc({0}, {1})",
    incomplete_values.gammaincc,
    _no_slope,
    lambda f, o, a, x: -_gamma_density(f, a, x),
    cost=8 * COST,
    operands=_pairs,
)
betainc = special(
    "betainc",
    "The integral of t**(a - 1) (1 - t)**(b - 1) from 0 to x, over beta(a, b).",
    "tg_betainc({0}, {1}, {2})",
    incomplete_values.betainc,
    _no_slope,
    _no_slope,
    _beta_density,
    cost=8 * COST,
    operands=_triples,
)
