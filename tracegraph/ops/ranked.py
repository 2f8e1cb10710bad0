"""Elements at places of the order along the last axis, such as the middle.

The order is that of `tracegraph.ops.sorting`: they are the elements at these places of sorted rows,
to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.ir.derivative import Emitter, Rewrite
from tracegraph.ir.op import Op, Opaque, Sample, register
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import along_lanes
from tracegraph.ops.sorting import at_order, samples, sort

NDArray = np.ndarray[Any, Any]


def _type(x: ArrayType, *, places: tuple[int, ...]) -> ArrayType:
    if x.ndim == 0:
        raise ValueError(f"ranked: needs an axis to order, got the scalar {x}")
    if (
        not places
        or list(places) != sorted({*places})
        or not all(0 <= k < x.shape[-1] for k in places)
    ):
        raise ValueError(
            f"ranked: places must rise, one or more, below {x.shape[-1]}, got {places}"
        )
    return ArrayType(x.dtype, (*x.shape[:-1], len(places)))


def _ranked(x: Any, *, places: tuple[int, ...]) -> NDArray:
    """NumPy sorts as fast as it partitions, where it can use wide registers."""
    return np.ascontiguousarray(sort.reference(x)[..., list(places)])


def runs(places: tuple[int, ...]) -> list[tuple[int, int]]:
    """Places that follow each other: the first of them, and how many.

    >>> runs((3, 4, 9))
    [(3, 2), (9, 1)]
    """
    found: list[tuple[int, int]] = []
    for place in places:
        if found and sum(found[-1]) == place:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((place, 1))
    return found


def _prepare(f: Emitter, out: Any, x: Any, *, places: tuple[int, ...]) -> tuple[Any, ...]:
    order = f.argsort(x)
    *batch, _ = x.shape
    parts = [
        f.slice(
            order,
            starts=(*[0] * len(batch), start),
            steps=(1,) * (len(batch) + 1),
            sizes=(*batch, count),
        )
        for start, count in runs(places)
    ]
    return (f.concatenate(*parts, axis=len(batch)) if len(parts) > 1 else parts[0],)


def _tangent(f: Emitter, values: Any, tangents: Any, *, places: tuple[int, ...]) -> Any:
    """The tangents move with their elements."""
    ((order,), (t,)) = values, tangents
    return at_order(f, t, order)


def _samples() -> list[Sample]:
    found = []
    for sample in samples():
        (array,) = sample.operands
        length = array.shape[-1]
        several = tuple(sorted({k for k in (0, length // 2, length - 1) if 0 <= k < length}))
        if several:
            found.append(Sample((array,), {"places": several}))
    return found


ranked = register(
    Op(
        "ranked",
        "The elements at some places of each row in ascending order.",
        _type,
        _ranked,
        Opaque(),
        _samples,
        batch=along_lanes("ranked"),
        derivative=Rewrite(_prepare, _tangent),
    )
)
