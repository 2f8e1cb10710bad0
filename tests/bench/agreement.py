"""Whether two libraries have computed the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TOLERANCE = {np.dtype("float16"): 2e-2, np.dtype("float32"): 2e-4, np.dtype("float64"): 1e-9}
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
