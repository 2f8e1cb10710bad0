"""Expressions of `numpy.linalg`'s factorizations.

`a` has shape (4, 4), `t` (2, 3, 4, 4), `r` (6, 4), `w` (2, 3, 5), all well conditioned; `h` is
Hermitian and positive definite, of complex128, `c` (4, 4) of complex64, `f` of float32, `i` of
int32; `v` has shape (4,), `b` (4, 2) and `s` is singular.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.numpy_agreement import expressions

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

SYSTEMS = expressions("""
    xp.linalg.solve(a, b); xp.linalg.solve(a, v); xp.linalg.solve(t, b); xp.linalg.solve(a, t);
    xp.linalg.solve(t, v); xp.linalg.solve(c, a); xp.linalg.solve(f, b); xp.linalg.solve(f, f);
    xp.linalg.solve(i, i); xp.linalg.solve(r, b); xp.linalg.solve(a, v[:3]); xp.linalg.solve(v, v);
    xp.linalg.solve(a[:0, :0], b[:0]); [xp.linalg.inv(x) for x in (a, t, c, f, i, h, a[:0, :0])];
    xp.linalg.inv(r); [xp.linalg.det(x) for x in (a, t, c, f, i, s, a[:0, :0])]; xp.linalg.det(v);
    [xp.linalg.slogdet(x) for x in (a, -a, t, c, f, i, s - s, a[:0, :0])]; xp.linalg.slogdet(r);
    xp.linalg.tensorsolve(a.reshape(2, 2, 4), b.T[:, :2]);
    xp.linalg.tensorsolve(a.reshape(2, 4, 2), b.T[:, :2], axes=(1,)); xp.linalg.tensorsolve(r, v);
    xp.linalg.tensorinv(a.reshape(2, 2, 4)); xp.linalg.tensorinv(a.reshape(4, 2, 2), ind=1);
    xp.linalg.tensorinv(a, ind=0); [xp.linalg.matrix_power(x, -3) for x in (a, t, c)];
    xp.linalg.matrix_power(i, -1); xp.linalg.matrix_power(r, 2)
""")
FACTORIZATIONS = expressions("""
    [xp.linalg.cholesky(x) for x in (h, h.real.astype(np.float32), a @ a.T, h[:0, :0])];
    xp.linalg.cholesky(h, upper=True); xp.linalg.cholesky(xp.matmul(t, t.swapaxes(-1, -2)));
    xp.linalg.cholesky(r); [xp.linalg.qr(x) for x in (a, r, t, w, c, f, i, r[:, :0])];
    [xp.linalg.qr(x, mode='complete') for x in (a, r, w, r[None].astype(np.complex64))];
    [xp.linalg.qr(x, 'r') for x in (a, r, w)]; xp.linalg.qr(a, 'full-blown'); xp.linalg.qr(v)
""")
SPECTRA = expressions("""
    [xp.linalg.eigvalsh(x) for x in (a, t, h, c, f, i, s, a[:0, :0], a[:1, :1])];
    [xp.linalg.eigvalsh(x, UPLO='U') for x in (a, t, c)];
    [xp.linalg.eigh(x).eigenvalues for x in (a, t, h, c, f, i, a[:0, :0])];
    [abs(xp.linalg.eigh(x, 'U')[1]) for x in (a, t, h, c, f)];
    [xp.linalg.eigh(x)[1].shape for x in (a[:0, :0], t)]; xp.linalg.eigvalsh(r);
    xp.linalg.eigvalsh(a, 'left');
    [xp.linalg.svd(x, compute_uv=False) for x in (a, r, t, w, h, c, f, i, s, r[:, :0])];
    [xp.linalg.svdvals(x) for x in (a, r.T, c)]; [xp.linalg.svd(x).S for x in (a, r, w)];
    [abs(xp.linalg.svd(x, full_matrices=False).U) for x in (a, r, t, w, c, f)];
    [abs(xp.linalg.svd(x, full_matrices=False).Vh) for x in (a, r, t, w, c, f)];
    [x.shape for x in xp.linalg.svd(r)]; [x.shape for x in xp.linalg.svd(w)];
    [x.shape for x in xp.linalg.svd(r[:, :0])];
    xp.linalg.svd(a + a.T, hermitian=True, compute_uv=False);
    [abs(x) for x in xp.linalg.svd(h - 3 * np.eye(4), hermitian=True)]; xp.linalg.svd(v);
    xp.linalg.svd(r, hermitian=True); xp.linalg.svdvals(v)
""")
LEAST_SQUARES = expressions("""
    [xp.linalg.pinv(x) for x in (a, r, t, w, h, c, f, i, r[:, :0])];
    [xp.linalg.pinv(s, rtol=x) for x in (1e-5, None, np.float32(0.1), np.array(1e-3))];
    xp.linalg.pinv(s, 1e-3); xp.linalg.pinv(t, np.full((2, 3), 1e-3)); xp.linalg.pinv(s - s);
    [xp.linalg.pinv(x, hermitian=True) for x in (h, a + a.T)]; xp.linalg.pinv(a, 1e-3, rtol=1e-3);
    xp.linalg.pinv(v); xp.linalg.lstsq(a, v); xp.linalg.lstsq(r, r[:, 0] ** 2);
    xp.linalg.lstsq(r, r[:, :3] ** 2, rcond=1e-9); xp.linalg.lstsq(w[0, 0][None], v[:1]);
    xp.linalg.lstsq(c, b); xp.linalg.lstsq(f, f); xp.linalg.lstsq(i, i[:, 0], rcond=-1);
    xp.linalg.lstsq(t, v); xp.linalg.lstsq(r, v);
    [xp.linalg.matrix_rank(x) for x in (a, r, t, w, h, s, s - s, v, v[0], v - v, r[:, :0])];
    xp.linalg.matrix_rank(t, hermitian=True); [xp.linalg.matrix_rank(r, x) for x in (3, 1e9, -1)];
    [xp.linalg.matrix_rank(r, rtol=x) for x in (0.9, 1e-3)];
    xp.linalg.matrix_rank(t, tol=np.full((2, 3), 3.0)); xp.linalg.matrix_rank(r, 1, rtol=1);
    xp.linalg.matrix_rank(r, hermitian=True)
""")
NORMS = expressions("""
    [xp.linalg.norm(x, 'nuc') for x in (a, r, c, f, i)];
    [xp.linalg.norm(x, 2) for x in (a, r, c, f, i)];
    [xp.linalg.norm(t, p, axis=(0, 3)) for p in (2, -2, 'nuc', 1, 'fro')];
    [xp.linalg.norm(t, p, axis=(3, 1), keepdims=True) for p in (2, -2, 'nuc', -1, 'fro')];
    [xp.linalg.matrix_norm(t, ord=p) for p in (2, -2, 'nuc', np.inf, 'fro')]; xp.linalg.norm(a, 3);
    xp.linalg.norm(a, 'f'); xp.linalg.norm(a, 1, axis=(0, 0));
    [xp.linalg.cond(t, p) for p in (None, 1, -1, 2, -2, np.inf, -np.inf, 'fro', 'nuc')];
    [xp.linalg.cond(x) for x in (a, r, w, h, c, f, i)];
    [xp.linalg.cond(s - s, p) for p in (None, 2, 1, 'fro')]; xp.linalg.cond(r, 1);
    xp.linalg.cond(a[:0, :0]); xp.linalg.cond(a, 3)
""")
TABLES = [*SYSTEMS, *FACTORIZATIONS, *SPECTRA, *LEAST_SQUARES, *NORMS]
