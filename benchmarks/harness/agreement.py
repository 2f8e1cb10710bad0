"""Whether two libraries have computed the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

TOLERANCE = {
    np.dtype("float16"): 2e-2,
    np.dtype("float32"): 2e-4,
    np.dtype("float64"): 1e-9,
    np.dtype("complex64"): 2e-4,
    np.dtype("complex128"): 1e-9,
}
"""Largest difference allowed, as a part of the largest element: libraries round, and order sums,
in different ways."""


def close(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str | None:
    """What differs, or None. Integers may be of another width, and must be equal."""
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        difference = array_difference(a, b)
        if difference:
            return f"result {i} {difference}"
    return None


def array_difference(a: np.ndarray, b: np.ndarray) -> str | None:
    """What differs between two arrays, or None."""
    if not b.shape and a.shape == (1,):  # for libraries without zero-dimensional arrays
        a = a.reshape(())
    if a.shape != b.shape:
        return f"has shape {a.shape}, not {b.shape}"
    if b.dtype.kind in "biu":
        return None if np.array_equal(a, b) else f"has {np.sum(a != b)} other elements"
    if a.dtype != b.dtype:
        return f"has dtype {a.dtype}, not {b.dtype}"
    worst = relative_difference(a, b)
    allowed = TOLERANCE[b.dtype]
    return None if worst <= allowed else f"differs by {worst:.1e} of the largest element"


def relative_difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference as a part of the largest element; NaN where either has one."""
    if not b.size:
        return 0.0
    wide = np.promote_types(b.dtype, np.float32)
    difference = np.max(np.abs(a.astype(wide, copy=False) - b.astype(wide, copy=False)))
    return float(difference / max(np.max(np.abs(b)), np.finfo(b.dtype).tiny))


def within(
    float32: float, float64: float, steps: float = 0.0
) -> Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], str | None]:
    """Like `close`, with tolerances of a program's own.

    Unless `steps` is 0, integers may be off by that part of themselves, or by one: rounding may end
    an iteration earlier or later.
    """
    allowed = {np.dtype(np.float32): float32, np.dtype(np.float64): float64}

    def difference(a: np.ndarray, b: np.ndarray) -> str | None:
        if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
            return array_difference(a, b)
        if b.dtype.kind == "i" and steps:
            off = np.abs(a.astype(np.int64) - b)
            return None if np.all(off <= 1 + steps * b) else f"is {a}, not about {b}"
        if a.dtype != b.dtype or b.dtype not in allowed:
            return array_difference(a, b)
        worst = relative_difference(a, b)
        return None if worst <= allowed[b.dtype] else f"differs by {worst:.1e} of the largest"

    def agrees(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str | None:
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            told = difference(a, b)
            if told:
                return f"result {i} {told}"
        return None

    return agrees
