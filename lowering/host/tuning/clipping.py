"""Maxima and minima with one number, as NumPy clips: `maximum` and `minimum` have no vectorised
loop for it, and take two to twenty times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.instructions import NumpyValue, Static
from tracegraph.ir.op import Op

LEAST_ELEMENTS = 4096
"""Elements from which a call less on each pays for a call more."""


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """A value and what it is to be clipped to; if it `meets_zero`, -0.0 becomes 0.0 after that."""

    value: NumpyValue
    low: Array
    high: Array
    meets_zero: bool


def limits_of(op: Op, operands: Sequence[NumpyValue]) -> Limits | None:
    """The limits that a maximum or minimum sets to one of two operands; None if it is no such op,
    or as quick itself.

    Of equal zeros NumPy takes the second operand's, and clipping leaves what the value has.
    """
    if op.name not in ("maximum", "minimum"):
        return None
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
    """The least and the largest number of a dtype of which clipping is quicker."""
    if dtype.kind in "iu" and dtype.itemsize < 8:
        info = np.iinfo(dtype)
        return np.array(info.min, dtype), np.array(info.max, dtype)
    if dtype.kind == "f" and dtype.itemsize > 2:
        return np.array(-np.inf, dtype), np.array(np.inf, dtype)
    return None
