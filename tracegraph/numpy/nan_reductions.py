"""Reductions that skip NaNs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.numpy.dispatching.dispatch import as_array, numpy_function
from tracegraph.numpy.dispatching.docstrings import AVERAGED, SAME, SQUARED, SUMMED, reduction
from tracegraph.numpy.dispatching.families import numpy_family
from tracegraph.numpy.dispatching.output import stored, target_of
from tracegraph.numpy.reductions import (
    Axis,
    all,
    argmax,
    argmin,
    cumprod,
    cumsum,
    max,
    min,
    prod,
    sum,
)
from tracegraph.numpy.statistics import as_norm, mean, std, var
from tracegraph.numpy.ufuncs import isnan, less_equal, logical_and, logical_not, sqrt
from tracegraph.tracing.tracer import Tracer

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip


def _without_nans(a: Any, other: float) -> Any:
    a = as_array(a)
    return a if a.dtype.kind in "biu" else apply(get("where"), isnan(a), a.dtype.type(other), a)


def _no_nan(a: Any, where: Any = True) -> Any:
    """Which elements are taken: those that are not NaN, under a mask if there is one."""
    kept = logical_not(isnan(as_array(a)))
    return kept if where is True else logical_and(kept, where)


def _require_inexact(a: Any, dtype: DTypeLike | None, out: Any) -> None:
    if a.dtype.kind in "biu":
        return
    target = target_of(out)
    for name, given in (("dtype", dtype), ("out", None if target is None else target.dtype)):
        if given is not None and np.dtype(given).kind in "biu":
            raise TypeError(f"if a is inexact, then {name} must be inexact, got {np.dtype(given)}")


@numpy_family
@reduction(SUMMED)
def _sum_or_product(
    name: str,
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """{folds} over axes, NaNs counting as {one}."""
    fold, one = (sum, 0) if name == "nansum" else (prod, 1)
    return fold(_without_nans(a, one), axis, dtype, out, keepdims, initial, where)


_CALL = "[[1.0, tnp.nan], [3.0, 4.0]], axis=1"

nansum = _sum_or_product("nansum", folds="Sums", one="zero", call=_CALL, result="array([1., 7.])")
nanprod = _sum_or_product(
    "nanprod", folds="Products", one="one", call=_CALL, result="array([ 1., 12.])"
)


@numpy_function
@reduction(AVERAGED, _CALL, "array([1. , 3.5])")
def nanmean(
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Any:
    """Means over axes of the elements that are not NaN; NaN if there are none."""
    a = as_array(a)
    _require_inexact(a, dtype, out)
    return mean(a, axis, dtype, out, keepdims, where=_no_nan(a, where))


@numpy_family
@reduction(SQUARED)
def _spread(
    name: str,
    a: Any,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Any:
    """{what} over axes of the elements that are not NaN{else_}."""
    a = as_array(a)
    options = {"mean": mean, "correction": correction}
    if a.dtype.kind in "biu":
        plain = std if name == "nanstd" else var
        return plain(a, axis, dtype, out, ddof, keepdims, where=where, **options)
    _require_inexact(a, dtype, out)
    mask = _no_nan(a, where)
    result = var(a, axis, dtype, None, ddof, keepdims, where=mask, **options)
    freedom = ddof if correction is None else correction
    too_few = less_equal(sum(mask, axis, keepdims=keepdims), freedom)
    result = apply(get("where"), too_few, result.dtype.type(np.nan), result)
    if name == "nanstd":
        result = as_norm(sqrt(result), a, axis, freedom, keepdims, mask, mean)
    return stored(name, result, out, "unsafe")


nanstd = _spread(
    "nanstd", what="Standard deviations", else_="", call=_CALL, result="array([0. , 0.5])"
)
nanvar = _spread(
    "nanvar",
    what="Variances",
    else_="; NaN where these are `ddof` or fewer",
    call=_CALL,
    result="array([0.  , 0.25])",
)


@numpy_family
@reduction(SAME, empty="no elements.")
def _extreme(
    name: str,
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """The {which} elements that are not NaN; NaN if there are none."""
    of, other = (min, np.inf) if name == "nanmin" else (max, -np.inf)
    a = as_array(a)
    first = initial if initial is None or a.dtype.kind in "biu" else _without_nans(initial, other)
    result = of(_without_nans(a, other), axis, None, keepdims, first, where)
    if a.dtype.kind in "biu":
        return stored(name, result, out, "unsafe")
    none_left = all(isnan(a), axis, keepdims=keepdims, where=where)
    if initial is not None:
        none_left = logical_and(none_left, isnan(initial))
    result = apply(get("where"), none_left, a.dtype.type(np.nan), result)
    return stored(name, result, out, "unsafe")


nanmin = _extreme("nanmin", which="least", call=_CALL, result="array([1., 3.])")
nanmax = _extreme("nanmax", which="greatest", call=_CALL, result="array([1., 4.])")


@numpy_family
def _position(
    name: str, a: Any, axis: int | None = None, out: Any = None, *, keepdims: bool = False
) -> Any:
    """The position of the {which} element that is not NaN, of the ravelled array by default.

    Where there are NaNs alone, NumPy raises; a traced position is 0 there.

    Shape: that of `a` without the axis; with `keepdims`, it stays with extent 1.
    Dtype: int64.

    Raises:
        AxisError: the axis is out of range.
        ValueError: there are no elements, or in an array that is not traced, NaNs alone.

    >>> tnp.{name}([[tnp.nan, 3.0], [4.0, 2.0]], 1)
    {result}
    """
    if not isinstance(a, Tracer) and np.size(a):
        np.nanargmin(np.asarray(a), axis)  # raises where NaNs are alone
    of, other = (argmin, np.inf) if name == "nanargmin" else (argmax, -np.inf)
    return of(_without_nans(a, other), axis, out, keepdims=keepdims)


nanargmin = _position("nanargmin", which="least", result="array([1, 1])")
nanargmax = _position("nanargmax", which="greatest", result="array([1, 0])")


@numpy_family
def _running(
    name: str,
    a: Any,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """Running {folds} along an axis, of the ravelled array by default, NaNs as {one}.

    Shape: that of `a`; one axis without `axis`.
    Dtype: 64-bit integers for bools and integers, else that of `a`; or `dtype`.

    Raises:
        AxisError: the axis is out of range.
        UnsupportedByTracerError: `out` was not made where it is traced.

    >>> tnp.{name}([2.0, tnp.nan, 3.0])
    {result}
    """
    fold, one = (cumsum, 0) if name == "nancumsum" else (cumprod, 1)
    return fold(_without_nans(a, one), axis, dtype, out)


nancumsum = _running("nancumsum", folds="sums", one="zero", result="array([2., 2., 5.])")
nancumprod = _running("nancumprod", folds="products", one="one", result="array([2., 2., 6.])")
