"""Densities as functions of powers, whose derivatives have limits at the ends.

    gamma   x^p exp(-x - c)       slope  p D(p - 1) - D
    beta    x^p (1 - x)^q exp(-c)        p D(p - 1, q) - q D(p, q - 1)

`special/higher_derivatives.py` has their rules.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes

from tracegraph.ir.derivative import Emitter
from tracegraph.ops.cotangents import number, with_rule


def gamma_density(f: Emitter, p: Any, c: Any, x: Any) -> Any:
    """x^p exp(-x - c), with its derivatives."""
    exponent = f.xlogy(p, f.minimum(x, number(x, float(ml_dtypes.finfo(x.dtype).max)))) - x - c
    return with_rule(f, f.exp(exponent), "gamma_density", p, c, x)


def beta_density(f: Emitter, p: Any, q: Any, c: Any, x: Any) -> Any:
    """x^p (1 - x)^q exp(-c), with its derivatives."""
    value = f.exp(f.xlogy(p, x) + f.xlog1py(q, -x) - c)
    return with_rule(f, value, "beta_density", p, q, c, x)
