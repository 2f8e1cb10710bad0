"""Expressions of functions that sort, and of medians and quantiles, as NumPy has them.

The arguments are those of test_numpy_functions: `p` holds NaNs.
"""

from __future__ import annotations

from tests.helpers.numpy_agreement import expressions

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased",
    "lower", "higher", "midpoint", "nearest",
)  # fmt: skip

SORTING = [
    *(f"xp.sort({x})" for x in ("x", "i", "b", "c", "h", "p", "y", "z", "e", "v")),
    *(f"xp.argsort({x}, stable=True)" for x in ("x", "i", "b", "c", "h", "p", "y", "z", "e", "v")),
    *expressions("""
        xp.sort(x, axis=0); xp.sort(z, 1, kind='stable'); xp.sort(z, axis=None); xp.sort(s, None);
        xp.sort(x, kind='heapsort'); xp.sort(i, stable=False); xp.argsort(x, 0);
        xp.argsort(z, axis=1); xp.argsort(i, axis=None, kind='mergesort'); x.argsort();
        x.argsort(axis=0);
        (xp.sort_complex(i), xp.sort_complex(x), xp.sort_complex(c), xp.sort_complex(b));
        xp.lexsort((i[0], i[1])); xp.lexsort((x, i % 2, b), axis=0); xp.lexsort(i);
        xp.lexsort((s, n)); xp.sort(xp.partition(x, 2)[:, 2:]); xp.partition(x, [1, -1], axis=0)[1];
        xp.partition(i, 4, axis=None)[4]; xp.take_along_axis(x, xp.argpartition(x, 1), -1)[:, 1];
        xp.take_along_axis(x, x.argpartition(2, 0), 0)[2];
        xp.searchsorted(v, w, sorter=xp.argsort(v))
    """),
]
MEDIANS = [
    f"xp.{name}({x}{axis})"
    for name in ("median", "nanmedian")
    for x in ("x", "i", "b", "c", "h", "p", "y", "s", "e", "z")
    for axis in ("", ", axis=0", ", axis=-1, keepdims=True", ", axis=(0, -1)")
    if not (x == "s" and axis)
]
QUANTILES = [
    *(f"xp.quantile(x, [0.1, 0.5, 1, 0], 1, method={m!r})" for m in METHODS),
    *(f"xp.percentile(i, [10, 55.5], 0, method={m!r})" for m in METHODS),
    *(f"xp.nanquantile(p, 0.3, 1, method={m!r})" for m in METHODS),
    *(f"xp.nanpercentile(xp.where(b, x, np.nan), [0, 40, 100], 0, method={m!r})" for m in METHODS),
    *(f"xp.quantile({x}, 0.3)" for x in ("x", "i", "h", "p", "y", "s", "z")),
    *(f"xp.percentile({x}, np.float32(30))" for x in ("x", "i", "h", "y")),
    *(f"xp.nanquantile({x}, [[0.2, 0.9]], axis=0)" for x in ("x", "i", "h", "p", "y")),
    *expressions("""
        xp.quantile(x, s / 3); xp.quantile(y, n / 4); xp.quantile(x, [0, 1]);
        xp.quantile(x, 1, method='weibull');
        xp.quantile(x, [1, 0], axis=0, method='averaged_inverted_cdf');
        xp.quantile(z, [0.25, 0.75], axis=(0, 2), keepdims=True);
        xp.nanpercentile(z, 25, axis=(2, 0), keepdims=True);
        xp.percentile(x, x[:, 0] * 0 + 50, axis=1); xp.quantile(x, [], axis=0);
        xp.nanquantile(e, 0.5, axis=0);
        xp.quantile(np.array([1, np.inf, -np.inf, 2]) * s, [0.2, 0.5]);
        xp.quantile(x, [0.2, 0.7], weights=x * x, method='inverted_cdf');
        xp.quantile(x, 0.4, axis=1, weights=v * v, method='inverted_cdf');
        xp.quantile(i, np.float32(0.4), axis=0, weights=np.array([0, 2, 1]), method='inverted_cdf');
        xp.percentile(z, [0, 100], (0, 2), weights=z[:, 0] ** 2, method='inverted_cdf');
        xp.nanquantile(p, [0.5, 1], 1, weights=np.arange(6).reshape(2, 3), method='inverted_cdf')
    """),
]
DISTINCT: list[str] = []

TABLES = [*SORTING, *MEDIANS, *QUANTILES, *DISTINCT]
