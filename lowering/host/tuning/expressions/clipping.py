"""Clipping: a maximum or minimum with one number, by the ufunc of `clip`.

`maximum` and `minimum` have no vectorised loop for a scalar operand and take 2 to 20 times as long.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluation.evaluate import Evaluation, Evaluator
from lowering.host.evaluation.instructions import NumpyValue, Static, static
from tracegraph.ir.op import Op
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Apply
from tracegraph.ops.convert import clip

LEAST_ELEMENTS = 4096
"""Least elements. For 4096 float32 `maximum` takes 2.0 µs and the clip 0.8; the second call, for
the sign of zeros, takes another 0.7."""

CLIP: np.ufunc = inspect.unwrap(clip.reference)
"""(values, low, high, out)"""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """A value and the limits to clip it to; if it `meets_zero`, 0.0 is added: -0.0 becomes 0.0."""

    value: NumpyValue
    low: Array
    high: Array
    meets_zero: bool


def clipped(run: Evaluator, expr: Expr) -> Evaluation | None:
    """The form of a maximum or minimum."""
    if not isinstance(expr, Apply) or expr.op.name not in ("maximum", "minimum"):
        return None

    def emit() -> NumpyValue:
        limits = limits_of(expr.op, tuple(map(run.value, expr.args)))
        if limits is None:
            return run.compute(expr)
        ends, dtype = map(static, (limits.low, limits.high)), limits.value.dtype
        found = run.write(CLIP, (limits.value, *ends), dtype)
        if not limits.meets_zero:
            return found
        return run.write(np.add, (found, static(np.zeros((), dtype))), dtype)

    return Evaluation(expr.children, emit)


def limits_of(op: Op, operands: Sequence[NumpyValue]) -> Limits | None:
    """The limits that a maximum or minimum sets to one of two operands; None if clipping is no
    faster.

    If both operands are zeros, NumPy's result has the sign of the second; clipping keeps the
    value's.
    """
    numbers = [r.array for r in operands if isinstance(r, Static) and r.array.size == 1]
    values = [r for r in operands if not isinstance(r, Static)]
    if len(numbers) != 1 or len(values) != 1 or prod(values[0].shape) < LEAST_ELEMENTS:
        return None
    (value,), number = values, numbers[0].reshape(())
    ends = _ends(number.dtype)
    if ends is None or value.dtype != number.dtype:
        return None
    least, most = ends
    zero = number.dtype.kind == "f" and not number and value is operands[0]
    if zero and np.signbit(number):
        return None
    low, high = (number, most) if op.name == "maximum" else (least, number)
    return Limits(value, low, high, zero)


def _ends(dtype: np.dtype[Any]) -> tuple[Array, Array] | None:
    """The least and the largest number of a dtype if clipping is faster for it."""
    if dtype.kind in "iu" and dtype.itemsize < 8:
        info = np.iinfo(dtype)
        return np.array(info.min, dtype), np.array(info.max, dtype)
    if dtype.kind == "f" and dtype.itemsize > 2:
        return np.array(-np.inf, dtype), np.array(np.inf, dtype)
    return None
