"""Exponential integrals."""

from __future__ import annotations

from tracegraph.ops.special import integral_values
from tracegraph.ops.special.by_scipy import by_scipy
from tracegraph.ops.special.records import COST, special

exp1 = special(
    "exp1",
    "The integral of exp(-t) / t from x on; below 0, NaN.",
    "tg_exp1({0})",
    by_scipy("exp1"),
    lambda f, o, x: -f.exp(-x) / x,
    cost=4 * COST,
)
expi = special(
    "expi",
    "The integral of exp(t) / t up to x, as a principal value.",
    "tg_expi({0})",
    integral_values.expi,
    lambda f, o, x: f.exp(x) / x,
    cost=4 * COST,
)
