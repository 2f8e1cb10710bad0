"""Expressions of histograms, searches, membership, indices and joins, as NumPy has them.

`x` is a matrix and `f` a vector of float64 with ties, `g` of float32, `i` of int64, `u` of uint8,
`b` of bool, `c` of complex64, `p` holds NaNs and infinities, `e` is empty, `s` a scalar; `k` are
edges that rise, `l` edges that fall, `w` weights, `z` complex ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.numpy_agreement import expressions

RANDOM = np.random.default_rng(3)
ARGUMENTS: dict[str, Any] = {
    "x": RANDOM.normal(size=(3, 5)),
    "f": RANDOM.integers(-8, 8, 13) / 4,
    "g": RANDOM.normal(size=13).astype(np.float32),
    "i": RANDOM.integers(-9, 9, 13),
    "u": RANDOM.integers(0, 255, 13).astype(np.uint8),
    "b": RANDOM.integers(0, 2, 13).astype(bool),
    "c": np.array([1 + 2j, 1 - 1j, 0, 1 + 2j, np.nan + 1j], np.complex64),
    "p": np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -0.0, 8.0, np.nan]),
    "e": np.zeros(0),
    "s": np.float64(0.25),
    "k": np.array([-2.0, -0.75, -0.75, 0.0, 0.25, 2.0]),
    "l": np.array([2.0, 0.25, 0.0, -0.75, -2.0]),
    "w": RANDOM.normal(size=13),
    "z": (RANDOM.normal(size=13) + 1j).astype(np.complex64),
}

SEARCHES = [
    *(f"xp.searchsorted(k, {v})" for v in ("f", "g", "i", "u", "b", "x", "s", "e", "p")),
    *(f"xp.searchsorted(k, {v}, 'right')" for v in ("f", "i", "x", "s", "p")),
    *expressions("""
        xp.searchsorted(np.array([0.0, 1.0, np.inf, np.nan, np.nan]), p);
        xp.searchsorted(np.array([0.0, 1.0, np.inf, np.nan, np.nan]), p, side='right');
        xp.searchsorted(np.array([-3, 0, 7]), f); xp.searchsorted(np.array([-3, 0, 7]), u);
        xp.searchsorted(np.array([0, 1 + 2j, 1 + 2j, 3 - 1j]), c);
        xp.searchsorted(np.array([0, 1 + 2j, 1 + 2j, 3 - 1j]), c, 'right');
        xp.searchsorted(np.array([0, 1 + 1j, np.nan + 1j]), c[:4]); xp.searchsorted(e, f);
        xp.searchsorted(k, 0.25); xp.searchsorted(k, [0.25, -9, 9]);
        xp.searchsorted(l, f, sorter=[4, 3, 2, 1, 0]);
        xp.searchsorted(l, f, 'right', np.arange(5)[::-1]); xp.searchsorted(x, f);
        xp.searchsorted(k, f, 'middle'); k.searchsorted(f) if False else xp.searchsorted(k, f)
    """),
    *(
        f"xp.digitize({v}, {edges}, right={right})"
        for v in ("f", "x", "i", "p")
        for edges in ("k", "l", "[0.0]", "[-1, 0.25]", "[1, -1]")
        for right in (True, False)
    ),
    "xp.digitize(s, k)",
    "xp.digitize(e, k)",
    "xp.digitize(f, [0.0, 2.0, 1.0])",
    "xp.digitize(c, [0.0, 1.0])",
    "xp.digitize(f, e)",
]
HISTOGRAMS = [
    *(f"xp.histogram({v})" for v in ("f", "g", "i", "u", "x", "e", "s")),
    *(f"xp.histogram({v}, 4)" for v in ("f", "g", "i", "u", "b")),
    *(f"xp.histogram({v}, 5, (-1, 1.5))" for v in ("f", "g", "i", "x")),
    *(f"xp.histogram({v}, k)" for v in ("f", "g", "i", "x", "p")),
    *expressions("""
        xp.histogram(f, [0, 1, 2]); xp.histogram(f, np.array([-2, 0, 0, 2]));
        xp.histogram(f, 4, weights=w); xp.histogram(f, 4, weights=i); xp.histogram(f, 4, weights=z);
        xp.histogram(f, 4, weights=g); xp.histogram(f, 4, weights=u); xp.histogram(f, k, weights=w);
        xp.histogram(f, 4, density=True); xp.histogram(f, k[1:] + np.arange(5), density=True);
        xp.histogram(f, 4, (-1, 1), True, w); xp.histogram(f * 0 + 3, 4);
        xp.histogram(u * 0 + np.uint8(7), 3); xp.histogram(f, 0); xp.histogram(f, 2.5);
        xp.histogram(f, -1); xp.histogram(f, x); xp.histogram(f, [2, 1]);
        xp.histogram(f, 4, (2, 1)); xp.histogram(f, 4, (0, np.inf)); xp.histogram(f, 4, weights=k)
    """),
    *(f"xp.histogram_bin_edges({v}, 3)" for v in ("f", "g", "i", "u", "x", "e")),
    *expressions("""
        xp.histogram_bin_edges(f, k); xp.histogram_bin_edges(f, 3, (0, 1));
        xp.histogram_bin_edges(g, 3, (0, 1)); xp.histogram2d(f, g); xp.histogram2d(f, i, 3);
        xp.histogram2d(f, g, (2, 3)); xp.histogram2d(f, g, k); xp.histogram2d(f, g, [k, 4]);
        xp.histogram2d(f, g, 3, [(-1, 1), (-2, 2)]); xp.histogram2d(f, g, 3, weights=w);
        xp.histogram2d(f, g, 3, density=True); xp.histogram2d(f, g, [3]); xp.histogram2d(f, k);
        xp.histogramdd(x.T); xp.histogramdd(x.T, 2); xp.histogramdd(x.T, (2, 3, 1), density=True);
        xp.histogramdd([f, g], 3); xp.histogramdd([f, g, i], [2, k, 3], weights=w);
        xp.histogramdd(f, 3); xp.histogramdd(x.T, 2, [(0, 1), None, (-2, 2)]);
        xp.histogramdd(x.T, (2, 3)); xp.histogramdd(x.T, 2, [(0, 1)]); xp.histogramdd(x.T, 0);
        xp.histogramdd([f, g], 3, weights=z)
    """),
]
MEMBERS = [
    *(f"xp.isin({v}, [0.25, 1, -9])" for v in ("f", "i", "x", "p", "e", "s", "g")),
    *expressions("""
        xp.isin(i, u); xp.isin(u, np.arange(0, 300, 7)); xp.isin(i, []);
        xp.isin(f, np.array([[0.25, np.nan], [1, 0.25]])); xp.isin(b, [True]);
        xp.isin(c, [1 + 2j, np.nan, 0]); xp.isin(f, [0.25, 1.5], invert=True);
        xp.isin(f, k, invert=True); xp.isin(x, e); xp.isin(p, [np.nan, np.inf]);
        xp.isin(c, [1 + 2j]); xp.isin(i, [1, 2], assume_unique=True, kind='sort');
        xp.isin(i, [1, 2], kind='hash'); xp.array_equiv(f, f); xp.array_equiv(f, x);
        xp.array_equiv(k, np.stack([k, k])); xp.array_equiv(s, 0.25); xp.array_equiv(p, p);
        xp.array_equiv(e, s)
    """),
]
PARTS = [
    *(f"xp.isreal({v})" for v in ("f", "i", "c", "z", "s", "b")),
    *(f"xp.iscomplex({v})" for v in ("f", "i", "c", "z", "s", "b")),
    *(f"xp.nanargmax({v})" for v in ("f", "p", "x", "i", "c[:4]", "s")),
    *(f"xp.nanargmin({v})" for v in ("f", "p", "x", "i", "c[:4]", "s")),
    "xp.nanargmax(x, 1)",
    "xp.nanargmin(x, axis=0, keepdims=True)",
    "xp.nanargmin(np.stack([p[:2], p[1::-1]]) + s, axis=1)",
    "xp.nanargmax(e)",
]
SKIPPING = [
    *(
        f"xp.nan{name}({v}, {options})"
        for name in ("sum", "prod", "max", "min")
        for v in ("p", "f", "i")
        for options in ("initial=3", "initial=-20, where=np.arange({n}) % 2 == 0")
    ),
    *expressions("""
        xp.nanmax(x, axis=1, where=x > 0, initial=-1);
        xp.nanmin(x, axis=0, keepdims=True, initial=0.5); xp.nanmax(x, where=x > 0);
        xp.nanmax(e, initial=2); xp.nanmax(p, initial=np.nan); xp.nanmin(p[1:2], initial=np.nan);
        xp.nanmax(p[1:2], initial=2); xp.nansum(x, axis=0, where=x > 0); xp.nanmean(p, where=p > 0);
        xp.nanmean(x, axis=0, where=x > 0); xp.nanvar(x, axis=1, where=x > -1);
        xp.nanvar(x, axis=1, correction=1);
        xp.nanvar(x, axis=1, mean=xp.mean(x, axis=1, keepdims=True));
        xp.nanstd(p[4:], correction=1); xp.nanstd(x, where=x > 0, keepdims=True);
        xp.nanstd(i, correction=2); xp.nanvar(p, where=p > 100)
    """),
]
SKIPPING = [
    expression.replace(
        "{n}", {"p": "8", "f": "13", "i": "13"}.get(expression.partition("(")[2][:1], "")
    )
    for expression in SKIPPING
]
INDICES = expressions("""
    xp.diag_indices_from(x[:, :3]); xp.diag_indices_from(x); xp.diag_indices_from(f);
    xp.tril_indices_from(x); xp.tril_indices_from(x, -1); xp.tril_indices_from(f);
    xp.triu_indices_from(x); xp.triu_indices_from(x, k=2); x[xp.triu_indices_from(x)]
""")
SPACINGS = expressions("""
    xp.logspace(s, 2); xp.logspace(0, s, 5); xp.logspace(s, 2, 4, endpoint=False, base=2);
    xp.logspace(f, i, 3); xp.logspace(s, 2, 3, base=abs(f) + 1);
    xp.logspace(s, 2, 3, base=abs(f) + 1, axis=-1); xp.logspace(s, 2, 3, dtype=np.float32);
    xp.logspace(0, f, 3, axis=1); xp.geomspace(s, 2); xp.geomspace(1, s, 5);
    xp.geomspace(-s, -9, 4); xp.geomspace(s, 9, 4, endpoint=False); xp.geomspace(abs(f) + 1, 9, 4);
    xp.geomspace(s, 9, 4, dtype=np.float32); xp.geomspace(s, 9, 1); xp.geomspace(s, 9, 0);
    xp.geomspace(s, 1j, 4); xp.geomspace(abs(f) + 1, 9, 4, axis=-1); xp.geomspace(s, 0, 4)
""")
PRODUCTS = expressions("""
    xp.linalg.multi_dot([x, x.T]); xp.linalg.multi_dot([x, x.T, x]);
    xp.linalg.multi_dot([x.T, x, x.T, x]); xp.linalg.multi_dot([f[:3], x, x.T, x]);
    xp.linalg.multi_dot([x, x.T, f[:3]]); xp.linalg.multi_dot([f, f]);
    xp.linalg.multi_dot([f, f[:, None], f[:3][None, :], i[:3]]); xp.linalg.multi_dot([x]);
    xp.linalg.multi_dot([x, x, x]); xp.linalg.multi_dot([x[None], x.T]);
    xp.linalg.multi_dot([x[None], x.T, x]); xp.linalg.multi_dot([x, x.T, x[None]]);
    xp.apply_over_axes(np.sum, x, (0, 1)); xp.apply_over_axes(np.max, x, 1);
    xp.apply_over_axes(lambda a, axis: np.flip(a, axis), x, [0, -1]);
    xp.apply_over_axes(np.sum, x, 2); xp.apply_over_axes(lambda a, axis: a.sum(), x, 0)
""")
JOINS = expressions("""
    xp.concatenate([f, g], dtype=np.float32); xp.concatenate([f, g], dtype=int);
    xp.concatenate([f, g], dtype=int, casting='unsafe');
    xp.concatenate([f, g], dtype=np.float32, casting='safe'); xp.concatenate([i, u], casting='no');
    xp.concatenate([i, i + 300], dtype=np.uint8, casting='unsafe');
    xp.concatenate([g, g], casting='no'); xp.concatenate([i, f], dtype=complex, casting='safe');
    xp.concatenate([z, f], dtype=float); xp.concatenate([x, x], None, dtype=np.float32);
    xp.stack([f, i], 1, dtype=np.float32); xp.stack([f, i], dtype=int);
    xp.stack([f, i], dtype=int, casting='unsafe'); xp.hstack([f, g], dtype=np.float32);
    xp.hstack([f, g], dtype=int); xp.hstack([f, g], dtype=int, casting='unsafe');
    xp.vstack([f, i], dtype=int); xp.vstack([f, i], dtype=int, casting='unsafe')
""")
OUTPUTS = [
    f"(lambda y: (xp.{call}, y))(xp.zeros_like(f, shape={shape}))"
    for call, shape in (
        ("concatenate([f, g], out=y)", 26),
        ("concatenate([f, g], 0, y)", 26),
        ("concatenate([x, x], axis=1, out=y)", (3, 10)),
        ("concatenate([f, z], out=y)", 26),
        ("concatenate([f, z], out=y, casting='unsafe').real", 26),
        ("concatenate([f, g], out=y)", 25),
        ("concatenate([f, g], out=y, dtype=float)", 26),
        ("stack([f, i], out=y)", (2, 13)),
        ("stack([f, i], 1, y)", (13, 2)),
        ("stack([f, i], out=y)", (13, 2)),
    )
]
TABLES = [
    *JOINS,
    *SEARCHES, *HISTOGRAMS, *MEMBERS, *PARTS, *SKIPPING, *INDICES, *SPACINGS, *PRODUCTS,
]  # fmt: skip
