"""Arguments of expressions of NumPy functions, by their names."""

from __future__ import annotations

from typing import Any

import numpy as np

_RANDOM = np.random.default_rng(0)

ARGUMENTS: dict[str, Any] = {
    "x": _RANDOM.normal(size=(3, 4)),
    "y": _RANDOM.normal(size=(4, 2)).astype(np.float32),
    "v": _RANDOM.normal(size=4),
    "w": _RANDOM.normal(size=3).astype(np.float32),
    "z": _RANDOM.normal(size=(2, 3, 4)),
    "s": np.float32(1.5),
    "n": 2,
    "i": _RANDOM.integers(-9, 9, (3, 4)).astype(np.int8),
    "b": _RANDOM.integers(0, 2, (3, 4)).astype(bool),
    "c": (_RANDOM.normal(size=(3, 4)) + 1j * _RANDOM.normal(size=(3, 4))).astype(np.complex64),
    "h": _RANDOM.normal(size=(3, 4)).astype(np.float16),
    "p": np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, np.nan]]),
    "e": np.zeros((0, 3)),
}
