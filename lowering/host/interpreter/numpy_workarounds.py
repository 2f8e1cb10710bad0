"""Workarounds for NumPy's loops that give wrong results.

Seen with NumPy 2.4.6 on x86-64, with an output that is not contiguous. `isfinite`, `isinf`, `isnan`
and `signbit` of 16 floats or more write False for most elements. `negative` reads wrong elements
where the stride is as many elements as one has bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.host.arena import Array
from tracegraph.ir.op import Op

_TESTS = {test.__name__: test for test in (np.isfinite, np.isinf, np.isnan, np.signbit)}


def instead(op: Op, dtype: np.dtype[Any]) -> tuple[Callable[..., Any], tuple[Array, ...]] | None:
    """The function for an op on an operand of this dtype, and its arguments before the operand;
    None if the op itself is right.
    """
    if op.name in _TESTS and dtype.kind == "f":
        return _in_one_piece(_TESTS[op.name]), ()
    if op.name == "negative" and dtype.kind in "iuf":
        # -0.0 - x: with 0.0 the result for 0.0 would be 0.0
        return np.subtract, (np.array(-0.0 if dtype.kind == "f" else 0, dtype),)
    return None


def _in_one_piece(test: np.ufunc) -> Callable[[Array, Array], None]:
    """The test as a function (value, out) whose ufunc writes contiguous arrays only."""

    def tested(value: Array, out: Array) -> None:
        if value.flags.c_contiguous and out.flags.c_contiguous:
            test(value, out)
        else:
            np.copyto(out, test(value))

    return tested
