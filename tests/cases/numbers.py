"""Expressions of statistics, polynomials, bits and special values, and their arguments.

`i`, `u`, `f`, `h`, `c`, `b` are vectors of int64, uint8, float64, float16, complex64 and bool, `x`
and `d` are matrices of float64 and uint8, `p` holds NaNs, `e` is empty, `s` a scalar.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.numpy_agreement import expressions

RANDOM = np.random.default_rng(2)
ARGUMENTS: dict[str, Any] = {
    "i": RANDOM.integers(-9, 9, 11),
    "u": RANDOM.integers(0, 255, 11).astype(np.uint8),
    "f": RANDOM.normal(size=11) * 5,
    "h": RANDOM.normal(size=11).astype(np.float16),
    "c": (RANDOM.normal(size=11) + 1j * RANDOM.normal(size=11)).astype(np.complex64),
    "b": RANDOM.integers(0, 2, 11).astype(bool),
    "x": RANDOM.normal(size=(4, 11)),
    "d": RANDOM.integers(0, 255, (3, 2, 5)).astype(np.uint8),
    "p": np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -0.0, 8.0, 800.0]),
    "e": np.zeros(0),
    "s": np.float64(2.5),
}
VECTORS = "iufhcb"

STATISTICS = [
    *(f"xp.cov({v})" for v in (*VECTORS, "x", "x.T", "s", "e")),
    *(f"xp.corrcoef({v})" for v in (*VECTORS, "x", "x.T", "s")),
    *expressions("""
        xp.cov(x, f); xp.cov(x, x[:2] * 1j); xp.cov(x, rowvar=False); xp.cov(x, x, rowvar=False);
        xp.cov(x, bias=True); xp.cov(x, ddof=0); xp.cov(x, ddof=1.5); xp.cov(x, ddof=30);
        xp.cov(x, fweights=abs(i)); xp.cov(x, fweights=abs(i), ddof=0); xp.cov(x, aweights=abs(f));
        xp.cov(x, aweights=abs(f), ddof=0); xp.cov(x, fweights=abs(i), aweights=abs(f));
        xp.cov(x, fweights=abs(i), aweights=abs(f), bias=True); xp.cov(x, dtype=np.float32);
        xp.cov(d); xp.cov(x, d); xp.cov(x, fweights=np.full(11, 0.5));
        xp.cov(x, aweights=np.full(11, -0.5)); xp.corrcoef(x, f);
        xp.corrcoef(x * 1j + x[:1], rowvar=False); xp.corrcoef(x, dtype=np.float32);
        xp.average(x, returned=True); xp.average(x, 0, returned=True);
        xp.average(x, 1, weights=abs(f), returned=True);
        xp.average(i, weights=abs(i), returned=True, keepdims=True);
        xp.average(h, weights=b + 1, returned=True); xp.average(x, (0, 1), abs(x), True);
        xp.average(s, returned=True); xp.var(x, 1, mean=xp.mean(x, 1, keepdims=True));
        xp.std(x, 0, mean=xp.mean(x, 0, keepdims=True), ddof=1);
        xp.var(c, mean=xp.mean(c, keepdims=True)); xp.std(i, mean=1.5);
        xp.var(x, ddof=1, correction=1)
    """),
]
POLYNOMIALS = [
    *(f"xp.polyval({v}[:4], {w})" for v in VECTORS for w in ("f", "i", "c", "x", "s")),
    "xp.polyval([1, 2, 3], f)",
    "xp.polyval(f[:3], 2)",
    "xp.polyval(e, f)",
    "xp.polyval(f, e)",
    *(
        f"xp.{n}({v}, f[:4])"
        for n in ("polyadd", "polysub", "polymul")
        for v in ("f", "i", "c[:2]")
    ),
    "xp.polyadd(i, u)",
    "xp.polyadd(s, f)",
    "xp.polysub(b, b)",
    "xp.polymul([0, 0, 1, 2], f)",
    "xp.polymul(f, s)",
    *(f"xp.polyder({v}{m})" for v in VECTORS for m in ("", ", 2", ", m=0")),
    "xp.polyder(f[:2], 3)",
    "xp.polyder(f, -1)",
    *(f"xp.polyint({v}{m})" for v in VECTORS for m in ("", ", 2", ", m=0")),
    "xp.polyint(f, 2, k=3)",
    "xp.polyint(f, 2, k=[1, 2, 9])",
    "xp.polyint(f, k=s)",
    "xp.polyint(f, 3, k=[1, 2])",
    "xp.polyint(f, -1)",
    *(f"xp.vander({v}[:4]{n})" for v in VECTORS for n in ("", ", 2", ", N=6, increasing=True")),
    *(f"xp.poly({v}[:4])" for v in "iufhc"),
    *expressions("""
        xp.poly(s); xp.polydiv(f, f[:4]); xp.polydiv(c, i[:3] + 0.5); xp.polydiv(f[:2], x[0, :4]);
        xp.polyfit(f, x[0], 2); xp.polyfit(f, x.T, 1, w=abs(x[1]) + 1); xp.polyfit(f, x[0], -1);
        xp.polyfit(x, f, 1); xp.vander(f, 0); xp.vander(f, 1); xp.vander(e); xp.vander(x);
        xp.vander(f, -1)
    """),
]
BITS = [
    *(f"xp.packbits({v}{o})" for v in "iubfe" for o in ("", ", bitorder='little'")),
    *(f"xp.packbits(d > 99, axis={k})" for k in (0, 1, -1, 3)),
    "xp.packbits(i[0] > 0)",
    "xp.packbits(i[0], axis=0)",
    "xp.packbits(b[:0])",
    "xp.packbits(b, bitorder='x')",
    *(f"xp.unpackbits(u{o})" for o in ("", ", bitorder='little'", ", count=9", ", count=200")),
    "xp.unpackbits(u, count=-3)",
    "xp.unpackbits(u, count=-300)",
    "xp.unpackbits(u, count=0)",
    *(f"xp.unpackbits(d, axis={k}, count=11)" for k in (0, 1, -1, 3)),
    "xp.unpackbits(u[0])",
    "xp.unpackbits(u[:0])",
    "xp.unpackbits(i)",
    "xp.packbits(xp.unpackbits(d, axis=1), axis=1)",
]
SPECIAL = [
    *(f"xp.{n}({v})" for n in ("isposinf", "isneginf", "i0") for v in (*VECTORS, "p", "e", "s")),
    "xp.isposinf(p.astype(np.float32))",
    "xp.i0(p.astype(np.float32))",
    *(f"xp.real_if_close({v})" for v in ("i", "f", "h", "b", "p", "e", "s")),
]
TABLES = [*STATISTICS, *POLYNOMIALS, *BITS, *SPECIAL]
