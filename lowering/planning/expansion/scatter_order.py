"""The order of updates: which scatters may combine in any order, and so in parallel."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.dtypes import is_half
from tracegraph.ir.combiners import ADD, MAXIMUM, MINIMUM, MULTIPLY
from tracegraph.ir.op import Combiner
from tracegraph.ir.scalar import Const, Expr


def in_any_order(combiner: Combiner | None, dtype: np.dtype[Any], in_order: bool) -> bool:
    """Whether the updates of a scatter may be combined in any order.

    Sums and products of floats are rounded by the order, so `in_order` fixes it. Complex numbers
    are added part by part; their products and extremes are no single atomic operation.

    >>> in_any_order(ADD, np.dtype(np.float32), False), in_any_order(None, np.dtype(np.int8), False)
    (True, False)
    """
    rounded = dtype.kind in "fc" or is_half(dtype)
    if combiner is ADD or (combiner is MULTIPLY and dtype.kind != "c"):
        return not (rounded and in_order)
    return combiner in (MINIMUM, MAXIMUM) and dtype.kind != "c"


def writes_one_value(combiner: Combiner | None, value: Expr) -> bool:
    """Whether a scatter sets all elements that it hits to one constant, in whatever order."""
    return combiner is None and isinstance(value, Const)
