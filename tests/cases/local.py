"""Expressions of differences, running folds, windows and interpolation, and their arguments.

`i`, `u`, `f`, `h`, `c`, `b` are vectors of int64, uint8, float64, float16, complex64 and bool, `x`
is a matrix, `p` holds NaNs, `e` is empty, `s` a scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.numpy_agreement import expressions

RANDOM = np.random.default_rng(1)
ARGUMENTS: dict[str, Any] = {
    "i": RANDOM.integers(-9, 9, 7),
    "u": RANDOM.integers(0, 255, 7).astype(np.uint8),
    "f": RANDOM.normal(size=7),
    "h": RANDOM.normal(size=7).astype(np.float16),
    "c": (RANDOM.normal(size=7) + 1j * RANDOM.normal(size=7)).astype(np.complex64),
    "b": RANDOM.integers(0, 2, 7).astype(bool),
    "x": RANDOM.normal(size=(4, 5)),
    "p": np.array([[1.0, np.nan, 2.0], [np.nan, np.nan, np.inf]]),
    "e": np.zeros(0),
    "s": np.float64(2.5),
    "k": np.sort(RANDOM.normal(size=7)),
    "long": RANDOM.normal(size=80).astype(np.float32),
}
VECTORS = "iufhcb"

RUNNING = [
    *(f"xp.nancum{n}({x}{a})" for n in ("sum", "prod") for x in "iufhcbpesx" for a in ("", ", 0")),
    "xp.nancumsum(p, axis=1, dtype=np.float32)",
    "xp.nancumsum(x, 2)",
    "xp.diff(x, prepend=0, append=x[:, :2])",
    "xp.diff(x, axis=0, prepend=x[:1], n=2)",
    "xp.diff(s)",
    *(f"xp.ediff1d({v})" for v in (*VECTORS, "x", "e", "s")),
    "xp.ediff1d(f, to_end=[1, 2], to_begin=9.5)",
    "xp.ediff1d(i, to_begin=i[:2])",
    "xp.ediff1d(i, to_end=0.5)",
    "xp.ediff1d(h, 0.1)",
    *(f"xp.trapezoid({v})" for v in VECTORS),
    "xp.trapezoid(f, dx=s)",
    "xp.trapezoid(x, f[:5])",
    "xp.trapezoid(s)",
    *(f"xp.unwrap({v} * 3)" for v in VECTORS),
    *expressions("""
        xp.unwrap(x * 9, axis=0); xp.unwrap(x * 9, discont=4.0); xp.unwrap(i, period=4);
        xp.unwrap(i, period=5, discont=3); xp.unwrap(e); xp.unwrap(s)
    """),
]
GRADIENTS = [
    *(f"xp.gradient({v})" for v in VECTORS),
    *(f"xp.gradient({v}, edge_order=2)" for v in "iufhc"),
    *expressions("""
        xp.gradient(x); xp.gradient(x, axis=1); xp.gradient(x, 0.5, axis=(0, 1));
        xp.gradient(x, 0.5, f[:5].cumsum()); xp.gradient(x, k[:4], k[:5], edge_order=2);
        xp.gradient(x, i[:4] ** 2, axis=0); xp.gradient(f, s); xp.gradient(f[:1]);
        xp.gradient(f, k[:3]); xp.gradient(x, 1, 2, 3); xp.gradient(f, edge_order=3);
        xp.gradient(f[:2], edge_order=1); xp.gradient(f[:2], edge_order=2);
        xp.gradient(f[:3], edge_order=2); xp.gradient(f, x); xp.gradient(s); xp.gradient(f, axis=3)
    """),
]
CALLS = [(f, m) for f in ("convolve", "correlate") for m in ("'full'", "'same'", "'valid'")]
WINDOWS = [
    *(f"xp.{f}({v}, {v}[:3], {m})" for f, m in CALLS for v in VECTORS),
    *(f"xp.{f}(f[:{n}], c, {m})" for f, m in CALLS for n in (2, 4)),
    *(f"xp.{f}(f, long, {m})" for f, m in CALLS),
    *(f"xp.{f}(long, long[:40], {m})" for f, m in CALLS),
    *expressions("""
        xp.convolve(long, long[:41], 'same'); xp.convolve(long > 0, long[:40] > 1);
        xp.convolve((long * 9).astype(np.int8), (long[:70] * 9).astype(np.int8));
        xp.correlate(long * 1j, long[:64].astype(np.float16)); xp.convolve(i, u); xp.convolve(s, f);
        xp.convolve(np.array([1.0, 2.0]), p[1]); xp.convolve(e, f); xp.correlate(f, e);
        xp.convolve(x, f); xp.convolve(f, f, 'other');
        np.lib.stride_tricks.sliding_window_view(f, 3);
        np.lib.stride_tricks.sliding_window_view(x, (2, 3));
        np.lib.stride_tricks.sliding_window_view(x, 2, axis=-2);
        np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(0, 0));
        np.lib.stride_tricks.sliding_window_view(x, 2);
        np.lib.stride_tricks.sliding_window_view(f, 9);
        np.lib.stride_tricks.sliding_window_view(f, -1);
        np.lib.stride_tricks.sliding_window_view(f, 7);
        np.lib.stride_tricks.sliding_window_view(u, (3,)).mean(axis=-1)
    """),
]
INTERPOLATION = [
    *(f"xp.interp({v}, k, f)" for v in ("f", "i", "b", "h", "x", "s", "e", "k", "p")),
    *expressions("""
        xp.interp(f, k, c); xp.interp(f, k, i); xp.interp(f, k, f, left=-1, right=s);
        xp.interp(f, k, c, left=1j); xp.interp(f * 9, k, f, period=3);
        xp.interp(f * 9, f, c, period=s); xp.interp(f, k[:1], f[:1], 1, 2);
        xp.interp(f, np.array([-0.5, 0.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0]));
        xp.interp(f, np.array([-np.inf, 0.0, np.inf]), np.array([1.0, 2.0, 2.0]));
        xp.interp(f, np.array([-1.0, 0.0, 1.0]), np.array([np.inf, np.inf, 2.0]));
        xp.interp(f, k, f[:3]); xp.interp(f, e, e); xp.interp(f, x, x); xp.interp(c, k, f);
        xp.interp(f, k, f, period=0)
    """),
]
TABLES = [*RUNNING, *GRADIENTS, *WINDOWS, *INTERPOLATION]
