"""Strength reduction of large remainders: x - x // d * d instead of x % d.

NumPy vectorises `floor_divide` by a scalar and not `remainder`. The quotient is often needed as
well: rows and columns of flat positions are quotient and remainder.
"""

from __future__ import annotations

from math import prod

import numpy as np

from lowering.host.evaluation.evaluate import Evaluation, Evaluator
from lowering.host.evaluation.instructions import NumpyValue, Static
from tracegraph.ir.scalar import Expr, Mod, floor_divide

QUOTIENT_SIZE = 2048
"""Least elements. For 2048 int64 the three calls take 3.0 µs and `remainder` takes 4.3; for 512
they take 1.5 and 1.3."""


def remainder(run: Evaluator, expr: Expr) -> Evaluation | None:
    """The form of a remainder."""
    if not isinstance(expr, Mod):
        return None

    def emit() -> NumpyValue:
        value = run.value(expr.operand)
        if isinstance(value, Static) or prod(value.shape) < QUOTIENT_SIZE:
            return run.compute(expr)
        quotient = run.value(floor_divide(expr.operand, expr.divisor))
        product = run.with_number(np.multiply, quotient, expr.divisor)
        return run.write(np.subtract, (value, product), expr.dtype)

    return Evaluation((expr.operand,), emit)
