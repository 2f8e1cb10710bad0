"""live_lanes: where vmap marks values of lanes that run, some of them for nothing.

A lane that has ended, or takes another branch, still computes, and may divide by zero. Nothing
uses what it computes; but a derivative multiplies by zero there, and zero times infinity is NaN.
Transforms that differentiate replace what stands in such lanes (`passes/live_lanes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracegraph.dtypes import BOOL, SHORT_NAMES
from tracegraph.ir.derivative import Emitter, Linear
from tracegraph.ir.op import Elementwise, Op, Sample, register
from tracegraph.ir.types import ArrayType, broadcast_shapes
from tracegraph.ops.cotangents import unbroadcast
from tracegraph.ops.elementwise import texts
from tracegraph.ops.tricky import tricky


def _type(mask: ArrayType, x: ArrayType) -> ArrayType:
    if mask.dtype != BOOL:
        raise TypeError(f"live_lanes: the mask must be bool, not {mask}")
    return ArrayType(x.dtype, broadcast_shapes(mask.shape, x.shape))


def _reference(mask: Any, x: Any) -> np.ndarray[Any, Any]:
    return np.array(np.broadcast_arrays(mask, x)[1])


def _transposed(
    f: Emitter, ct: Any, acc: Any, types: Sequence[Any], mask: Any, x: Any
) -> tuple[Any, ...]:
    type_ = types[1]
    return (None if type_ is None else unbroadcast(f, f.live_lanes(mask, ct), type_),)


def _samples() -> list[Sample]:
    return [Sample((np.array([[True], [False]]), tricky(dtype))) for dtype in SHORT_NAMES]


live_lanes = register(
    Op(
        "live_lanes",
        "x, of which nothing is used where the mask is false.",
        _type,
        _reference,
        Elementwise(texts(b="{1}"), 0),
        _samples,
        derivative=Linear(_transposed, (1,)),
    )
)
