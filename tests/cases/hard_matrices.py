"""Matrices that are hard for eigenvalues or singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

RNG = np.random.default_rng(3)


def random(m: int, n: int, dtype: Any) -> Any:
    a = RNG.standard_normal((m, n))
    is_complex = np.dtype(dtype).kind == "c"
    return np.asarray(a + 1j * RNG.standard_normal((m, n)) if is_complex else a, dtype)


def unitary(n: int, dtype: Any) -> Any:
    return np.linalg.qr(random(n, n, dtype))[0]


def with_values(values: Any, dtype: Any) -> Any:
    q = unitary(len(values), dtype)
    return np.asarray(q * values @ np.conj(q.T), dtype)


MATRICES = {
    "random": lambda n, dtype: random(n, n, dtype),
    "of rank one": lambda n, dtype: np.ones((n, n), dtype),
    "zero": lambda n, dtype: np.zeros((n, n), dtype),
    "identity": lambda n, dtype: np.eye(n, dtype=dtype),
    "with equal values": lambda n, dtype: with_values(np.arange(n) // 4 - 1.0, dtype),
    "ill conditioned": lambda n, dtype: with_values(np.logspace(0, -20, n), dtype),
    "with opposite values": lambda n, dtype: with_values((-1.0) ** np.arange(n), dtype),
    "graded": lambda n, dtype: np.logspace(0, -9, n)[:, None] * random(n, n, dtype),
    "tiny": lambda n, dtype: random(n, n, dtype) * np.finfo(dtype).tiny,
    "huge": lambda n, dtype: random(n, n, dtype) * (np.finfo(dtype).max / (10 * n)),
}
