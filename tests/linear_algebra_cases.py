"""Expressions of `numpy.linalg`'s factorizations.

`a` has shape (4, 4), `t` (2, 3, 4, 4), `r` (6, 4), `w` (2, 3, 5), all well conditioned; `h` is
Hermitian and positive definite, of complex128, `c` (4, 4) of complex64, `f` of float32, `i` of
int32; `v` has shape (4,), `b` (4, 2) and `s` is singular.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_RANDOM = np.random.default_rng(0)


def _matrices(*shape: int) -> Any:
    return _RANDOM.normal(size=shape) + 3 * np.eye(*shape[-2:])


_A = _matrices(4, 4)
_C = _matrices(4, 4) + 1j * _RANDOM.normal(size=(4, 4))

ARGUMENTS: dict[str, Any] = {
    "a": _A,
    "t": _matrices(2, 3, 4, 4),
    "r": _matrices(6, 4),
    "w": _matrices(2, 3, 5),
    "h": _C @ np.conj(_C.T),
    "c": _C.astype(np.complex64),
    "f": _matrices(4, 4).astype(np.float32),
    "i": np.round(_matrices(4, 4) * 4).astype(np.int32),
    "v": _RANDOM.normal(size=4),
    "b": _RANDOM.normal(size=(4, 2)),
    "s": np.array([[1.0, 2.0], [2.0, 4.0]]),
}

SYSTEMS = [
    "xp.linalg.solve(a, b)",
    "xp.linalg.solve(a, v)",
    "xp.linalg.solve(t, b)",
    "xp.linalg.solve(a, t)",
    "xp.linalg.solve(t, v)",
    "xp.linalg.solve(c, a)",
    "xp.linalg.solve(f, b)",
    "xp.linalg.solve(f, f)",
    "xp.linalg.solve(i, i)",
    "xp.linalg.solve(r, b)",
    "xp.linalg.solve(a, v[:3])",
    "xp.linalg.solve(v, v)",
    "xp.linalg.solve(a[:0, :0], b[:0])",
    "[xp.linalg.inv(x) for x in (a, t, c, f, i, h, a[:0, :0])]",
    "xp.linalg.inv(r)",
    "[xp.linalg.det(x) for x in (a, t, c, f, i, s, a[:0, :0])]",
    "xp.linalg.det(v)",
    "[xp.linalg.slogdet(x) for x in (a, -a, t, c, f, i, s - s, a[:0, :0])]",
    "xp.linalg.slogdet(r)",
    "xp.linalg.tensorsolve(a.reshape(2, 2, 4), b.T[:, :2])",
    "xp.linalg.tensorsolve(a.reshape(2, 4, 2), b.T[:, :2], axes=(1,))",
    "xp.linalg.tensorsolve(r, v)",
    "xp.linalg.tensorinv(a.reshape(2, 2, 4))",
    "xp.linalg.tensorinv(a.reshape(4, 2, 2), ind=1)",
    "xp.linalg.tensorinv(a, ind=0)",
    "[xp.linalg.matrix_power(x, -3) for x in (a, t, c)]",
    "xp.linalg.matrix_power(i, -1)",
    "xp.linalg.matrix_power(r, 2)",
]
FACTORIZATIONS = [
    "[xp.linalg.cholesky(x) for x in (h, h.real.astype(np.float32), a @ a.T, h[:0, :0])]",
    "xp.linalg.cholesky(h, upper=True)",
    "xp.linalg.cholesky(xp.matmul(t, t.swapaxes(-1, -2)))",
    "xp.linalg.cholesky(r)",
    "[xp.linalg.qr(x) for x in (a, r, t, w, c, f, i, r[:, :0])]",
    "[xp.linalg.qr(x, mode='complete') for x in (a, r, w, r[None].astype(np.complex64))]",
    "[xp.linalg.qr(x, 'r') for x in (a, r, w)]",
    "xp.linalg.qr(a, 'full-blown')",
    "xp.linalg.qr(v)",
]
TABLES = [*SYSTEMS, *FACTORIZATIONS]
