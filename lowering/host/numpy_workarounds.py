"""Where loops of NumPy give wrong results, and what is called instead.

Seen with NumPy 2.4.6 on x86-64, where what is written does not lie in one piece: `isfinite`,
`isinf`, `isnan` and `signbit` of 16 floats or more write some right, and false for all others;
`negative` of numbers as many elements apart as each has bytes reads their neighbours instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.host.arena import Array
from tracegraph.ir.op import Op

_TESTS = {test.__name__: test for test in (np.isfinite, np.isinf, np.isnan, np.signbit)}


def instead(op: Op, dtype: np.dtype[Any]) -> tuple[Callable[..., Any], tuple[Array, ...]] | None:
    """What to call for an op on an operand of this dtype, and what comes before the operand; None
    for the op itself.
    """
    if op.name in _TESTS and dtype.kind == "f":
        return _in_one_piece(_TESTS[op.name]), ()
    if op.name == "negative" and dtype.kind in "iuf":
        # from -0.0, not 0.0: the difference of equal zeros is 0.0
        return np.subtract, (np.array(-0.0 if dtype.kind == "f" else 0, dtype),)
    return None


def _in_one_piece(test: np.ufunc) -> Callable[[Array, Array], None]:
    """The test as a function (value, out) that NumPy never lets write to places apart."""

    def tested(value: Array, out: Array) -> None:
        if value.flags.c_contiguous and out.flags.c_contiguous:
            test(value, out)
        else:
            np.copyto(out, test(value))

    return tested
