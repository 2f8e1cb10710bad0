"""Functions of what a traced mask selects, `f(x[mask])`, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.traced import trace
from tracegraph import errors, special, testing

X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -5.0], [1.0, 1.6, 0.2], [0.3, 0.9, -0.7]])
ROW = X.ravel()
INTEGERS = np.array([5, -3, 2, 7, 1, 4])
UFUNCS = [
    name
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc)
    and hasattr(tnp, name)
    and name not in ("matvec", "vecmat")
]
CONTEXT = {"np": np, "tnp": tnp, "special": special}


def agrees(function: Any, *args: Any) -> None:
    testing.assert_traced_equals_eager(
        function, *args, rtol=1e-12, atol=1e-13, ways=("interpreted", "optimized", "host")
    )


def evaluated(text: str, s: Any) -> Any:
    return eval(text, CONTEXT, {"s": s})


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs(name: str) -> None:
    ufunc = getattr(np, name)

    def f(v: Any) -> Any:
        m = (np.arange(v.size) % 3 != 1) & (v == v)
        found = ufunc(*[v[m]] * ufunc.nin)
        results = []
        for each in found if isinstance(found, tuple) else (found,):
            w = np.zeros_like(v, dtype=each.dtype)
            w[m] = each
            results.append(w)
        return results

    tried = 0
    for data in (ROW, ROW.astype(np.float32), INTEGERS, INTEGERS > 1, ROW - 2j * ROW):
        with np.errstate(all="ignore"):
            try:
                f(data)
            except (TypeError, ValueError):  # NumPy's ufunc has no such dtype
                continue
            agrees(f, data)
        tried += 1
    assert tried


ELEMENTS = [
    *("np.clip(s, 0, 1)", "np.round(s, 1)", "np.real(s)", "np.imag(s)", "np.angle(s)"),
    *("np.isclose(s, 0.5)", "np.nan_to_num(s)", "np.sinc(s)", "np.fix(s)", "np.i0(s)"),
    *("np.where(s > 0, s, -s)", "np.select([s > 1, s < 0], [s, -s], 0.0)", "np.isposinf(s)"),
    *("np.iscomplex(s)", "s.astype(np.float32)", "np.copy(s)", "s.copy()", "s.round(1)"),
    *("s.clip(0, 1)", "abs(s)", "-s", "s**2", "s**-1", "2**s", "divmod(s, 2)[0]", "s.real"),
    *("s.conj()", "np.interp(s, [0.0, 1.0, 2.0], [1.0, 2.0, 0.0])", "np.polyval([1.0, 2.0], s)"),
    *("np.searchsorted(np.array([0.0, 1.0]), s)", "np.digitize(s, np.array([0.0, 1.0, 2.0]))"),
    *("np.isin(s, [0.5, 2.0])", "np.cumsum(s)", "np.cumprod(s)", "s.cumsum()", "np.ravel(s)"),
    *("s.flatten()", "s.reshape(-1)", "s.T", "s[:, None][:, 0]", "s[None][0]", "s[...]", "+s"),
    *("s + s.sum()", "s / np.linalg.norm(s)", "(s - s.mean()) / s.std()", "s * [2.0]"),
    *("np.exp(s)[s > 0].sum() + s", "np.float32(2) * s", "np.array(2.0) * s", "np.ones_like(s)"),
    *("np.zeros_like(s, dtype=int)", "np.full_like(s, 2)", "np.ldexp(s, 2)", "s.max() - s"),
    *("np.nan_to_num(s / 0, nan=2.0, posinf=3)", "np.nan_to_num(np.log(s), nan=s, copy=False)"),
    *("np.add.accumulate(s)", "np.maximum.accumulate(s)", "np.logaddexp.accumulate(s)"),
    *("np.multiply.accumulate(s, dtype=np.float32)", "np.add.outer(s, [1.0, 2.0])[:, 1]"),
    *("np.multiply.outer([1.0, 2.0], s)[1]", "s - np.where(s > s.mean(), np.median(s), 0)"),
]


def test_nan_to_num_in_place() -> None:
    def f(v: Any) -> Any:
        m = ~(v <= -0.8)
        s = v[m]
        np.nan_to_num(s, copy=False, nan=7.0)
        w = np.zeros_like(v)
        w[m] = s
        return w, v

    agrees(f, np.where(ROW > 1, np.nan, ROW))


@pytest.mark.parametrize("text", ELEMENTS)
def test_functions_of_elements(text: str) -> None:
    def f(v: Any) -> Any:
        m = v > -0.8
        found = evaluated(text, v[m])
        w = np.zeros_like(v, dtype=found.dtype)
        w[m] = found
        return w

    agrees(f, ROW)


@pytest.mark.parametrize(
    "text",
    [
        *("np.exp(s, out=s)", "np.add(s, 1, s)", "np.exp(s, where=s > 1, out=s)"),
        *("np.clip(s, 0, 1, out=s)", "s.clip(0, 1, out=s)", "np.divmod(s, 2, s, s.copy())"),
    ],
)
def test_functions_of_elements_write_to_them(text: str) -> None:
    def f(v: Any) -> Any:
        s = v[v > -0.8]
        evaluated(text, s)
        w = np.zeros_like(v)
        w[v > -0.8] = s
        return w, v

    with np.errstate(all="ignore"):
        agrees(f, ROW)


REDUCTIONS = [
    *("s.sum()", "np.sum(s)", "s.mean()", "s.var()", "s.std(ddof=1)", "s.max()", "s.min()"),
    *("np.prod(s)", "np.any(s > 1)", "np.all(s > -5)", "(s > 0).any()", "np.ptp(s)"),
    *("np.median(s)", "np.percentile(s, [25, 75])", "np.quantile(s, 0.3)", "np.nanmedian(s)"),
    *("np.average(s, weights=s**2)", "np.average(s)", "np.count_nonzero(s > 0)", "s.argmin()"),
    *("np.argmax(s)", "np.linalg.norm(s)", "np.linalg.norm(s, 1)", "np.linalg.norm(s, np.inf)"),
    *("s @ s", "np.dot(s, s)", "np.vdot(s, s)", "np.inner(s, s)", "np.nansum(s)", "np.nanmin(s)"),
    *("np.nanmean(s)", "np.nanmax(s)", "np.add.reduce(s)", "np.maximum.reduce(s)", "np.ndim(s)"),
    *("s[s > 0].sum()", "s[s > 0][s[s > 0] < 2].mean()", "np.sum(s, keepdims=True)"),
    *("np.sum(s, axis=0)", "np.sum(s, dtype=np.float32)", "np.max(s, initial=10.0)"),
    *("np.mean(s, where=s > 0)", "np.std(s) / np.mean(s)", "np.prod(s[:, None] * [1.0, 2.0], 0)"),
    *(
        "np.logaddexp.reduce(s)",
        "np.hypot.reduce(s)",
        "np.fmin.reduce(s)",
        "np.add.reduce(s, None)",
    ),
    *("np.multiply.reduce(s, keepdims=True)", "np.maximum.reduce(s, initial=10.0)"),
    *("np.subtract.reduce(s, initial=2.0)", "np.add.reduce(s, where=s > 0, dtype=np.float32)"),
    *("np.maximum.reduce(s, where=s > 1, initial=-9)", "np.logical_xor.reduce(s > 1)"),
    *("np.min(s, axis=-1)", "s.sum(0)", "np.sum(s[:, None] * np.ones(2), axis=1).max()"),
]


@pytest.mark.parametrize("text", REDUCTIONS)
@pytest.mark.parametrize("data", [ROW, X, np.where(X > 1, np.nan, X)], ids=["1d", "2d", "nan"])
def test_reductions(text: str, data: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, of NaN
        agrees(lambda v: evaluated(text, v[~(v <= -0.8)]), data)


OF_ROWS = [
    *("s.sum()", "s.sum(axis=0)", "s.sum(axis=1).max()", "s.mean(0)", "s.max(axis=0)"),
    *("s.min(axis=1).sum()", "np.argmax(s, axis=0)", "np.argmax(s, axis=1).sum()", "np.ptp(s, 0)"),
    *("np.median(s, axis=0)", "np.median(s, axis=1).sum()", "np.cumsum(s, axis=0)[:, 1].max()"),
    *("np.cumsum(s, axis=1).sum()", "np.linalg.norm(s)", "np.linalg.norm(s, axis=1).sum()"),
    *("np.linalg.norm(s, axis=0)", "s[:, 0].sum()", "s[:, ::-1][:, 0].sum()", "s[..., 1].mean()"),
    *("(s @ np.eye(3)[:2].T).sum(axis=0)", "(s @ np.arange(3.0)).max()", "s.T @ s", "s[:, 0] @ s"),
    *("np.dot(s.T, s[:, 1])", "(np.ones((2, 3)) @ s.T).sum(axis=1)", "np.sort(s, axis=1).sum(0)"),
    *("(s - s.mean(axis=0)).std(axis=0)", "(s / s.sum(axis=1, keepdims=True)).sum(axis=0)"),
    *("np.sum(s, axis=(0, 1))", "np.quantile(s, [0.2, 0.5], axis=0)", "s.T[0].sum()"),
    *("np.quantile(s, [0.2, 0.5], axis=1)[1].sum()", "np.sum(s, axis=0, keepdims=True)"),
    *("np.add.reduce(s)", "np.maximum.reduce(s, axis=1).sum()", "np.add.reduce(s, axis=(0, 1))"),
    *("np.subtract.reduce(s, axis=1).sum()", "np.add.accumulate(s, axis=1)[:, 2].sum()"),
    *("np.subtract.accumulate(s, axis=1)[:, 2].sum()", "np.maximum.accumulate(s)[:, 2].sum()"),
    *("s[:, [0, 2]].sum(axis=0)", "s[s[:, 0] > 0.4].sum(axis=0)", "np.argsort(s, axis=1).sum(0)"),
]


@pytest.mark.parametrize("text", OF_ROWS)
def test_reductions_of_selected_rows(text: str) -> None:
    agrees(lambda v: evaluated(text, v[v[:, 0] > 0.3]), X)


@pytest.mark.parametrize("text", ["s.sum(axis=0)", "s.sum(axis=1).max()", "s[:, 0].sum()"])
def test_reductions_of_a_mask_of_two_axes_among_three(text: str) -> None:
    cube = np.arange(24.0).reshape(2, 3, 4) % 7
    agrees(lambda v: evaluated(text, v[v[:, :, 0] > 1]), cube)
    agrees(lambda v: v[:, v[0] > 1].sum(axis=0).max(), cube)
    agrees(lambda v: v[:, v[0] > 1].sum(axis=1), cube)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "complex64"])
def test_reductions_of_dtypes(dtype: str) -> None:
    def f(x: Any, v: Any) -> Any:
        s = x[v > 0]
        extremes = () if dtype == "complex64" else (s.max(), s.min(), s.argmax())
        return s.sum(), s.mean(), s.any(), s.all(), s.prod(), *extremes

    rounded = np.abs(ROW * 2).astype(dtype)
    testing.assert_traced_equals_eager(
        f, rounded, ROW, rtol=1e-3 if dtype == "float16" else 1e-6, ways=("interpreted", "host")
    )


def test_special_functions() -> None:
    def f(v: Any) -> Any:
        w = v.copy()
        w[v > 0] = special.erf(v[v > 0]) * special.gammaln(v[v > 0])
        return w, special.xlogy(v[v > 0], 2.0).sum()

    found, total = tracegraph.jit(f, device="host")(ROW)
    expected = np.where(ROW > 0, special.erf(ROW) * special.gammaln(np.abs(ROW)), ROW)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)
    np.testing.assert_allclose(np.asarray(total), np.sum(ROW[ROW > 0]) * np.log(2), rtol=1e-14)


def test_of_no_elements() -> None:
    """NumPy refuses extrema of none; here they are what extrema begin with."""

    def f(v: Any) -> Any:
        s = v[v > 99]
        return s.sum(), s.prod(), s.any(), s.all(), s.max(), s.min(), np.count_nonzero(s)

    found = [np.asarray(x).item() for x in tracegraph.jit(f, device="host")(ROW)]
    assert found == [0.0, 1.0, False, True, -np.inf, np.inf, 0]


def test_functions_are_named_that_need_the_number_of_elements() -> None:
    for text, name in [
        ("np.unwrap(s)", r"numpy\.unwrap of x\[x > 0\]"),
        ("np.argsort(s)", r"numpy\.argsort of x\[x > 0\].*numpy\.argsort\(numpy\.where\(x > 0, x"),
        ("np.einsum('i,i', s, s)", r"numpy\.einsum of x\[x > 0\]"),
        ("s.reshape(2, 3)", r"numpy\.reshape of x\[x > 0\]"),
        ("np.subtract.reduce(s)", r"numpy\.subtract\.reduce of x\[x > 0\].*give initial="),
        ("np.hypot.accumulate(s)", r"numpy\.hypot\.accumulate of x\[x > 0\].*the first"),
        ("np.add.reduceat(s, [0, 1])", r"numpy\.add\.reduceat of x\[x > 0\]"),
    ]:
        with pytest.raises(errors.BooleanMaskError, match=name):
            trace(lambda x, text=text: evaluated(text, x[x > 0]), ROW)
