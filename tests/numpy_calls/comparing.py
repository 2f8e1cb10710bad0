"""Whether a result is that of NumPy: value, dtype, shape, and sign of zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .calls import Call

_ULPS, _FOLDED_ULPS = 4, 64
"""Units in the last place: of functions of elements, and of those that sum or factor."""


_OF_ROUNDED_ZEROS = ("numpy.linalg.", "numpy.fft.", "numpy.sort", "numpy.quantile")
"""Functions whose zeros have any sign: those that rounding leaves, or that are equal in a sort."""


def difference(call: Call, wanted: Any, got: Any) -> str:
    """How a result differs from NumPy's: one line, or nothing."""
    args, kwargs = call.arguments
    elementwise = call.group in ("ufuncs", "operators")
    if call.target in _FACTORS and isinstance(wanted, tuple) and isinstance(wanted[0], tuple):
        return _difference_of_factors(call, wanted[0], got[0], _magnitude(args))
    scale = 0.0 if elementwise else _magnitude((args, list(kwargs.values())))
    return _difference(wanted, got, _ULPS if elementwise else _FOLDED_ULPS, scale, call)


_FACTORS = {"numpy.linalg.svd", "numpy.linalg.eigh"}
"""Functions whose vectors are determined up to a factor of size 1, or a rotation."""


def _difference_of_factors(call: Call, wanted: Any, got: Any, scale: float) -> str:
    """The values must be NumPy's, and the vectors orthonormal, and factors of the argument."""
    if len(wanted) != len(got):
        return f"structure {_shown(got)}, not {_shown(wanted)}"
    for w, g in zip(wanted, got, strict=True):
        if (w.shape, w.dtype) != (g.shape, g.dtype):
            return f"{g.dtype} of shape {g.shape}, not {w.dtype} of {w.shape}"
    products = []
    for factors in (wanted, got):
        if len(factors) == 3:
            u, s, vh = factors
            left, right = u[..., : s.shape[-1]] * s[..., None, :], vh[..., : s.shape[-1], :]
        else:
            s, u = factors
            left, right = u * s[..., None, :], np.conj(np.swapaxes(u, -1, -2))
            vh = right
        unitary = [np.conj(np.swapaxes(u, -1, -2)) @ u, vh @ np.conj(np.swapaxes(vh, -1, -2))]
        products.append((s, left @ right, *unitary))
    return _difference(tuple(products[0]), tuple(products[1]), 1024, max(scale, 1.0), call)


def _difference(wanted: Any, got: Any, ulps: int, scale: float, call: Call) -> str:
    if isinstance(wanted, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(wanted):
            return f"structure {_shown(got)}, not {_shown(wanted)}"
        parts = [_difference(w, g, ulps, scale, call) for w, g in zip(wanted, got, strict=True)]
        return next((p for p in parts if p), "")
    if not isinstance(wanted, (bool, int, float, complex, np.generic, np.ndarray)):
        same = wanted == got
        return "" if same else f"{_shown(got)}, not {_shown(wanted)}"
    if isinstance(got, (list, tuple)) or got is None:
        return f"structure {_shown(got)}, not {_shown(wanted)}"
    is_typed = isinstance(wanted, (np.generic, np.ndarray))
    wanted, got = np.asarray(wanted), np.asarray(got)
    if wanted.shape != got.shape:
        return f"shape {got.shape}, not {wanted.shape}"
    if is_typed and wanted.dtype != got.dtype:
        return f"dtype {got.dtype}, not {wanted.dtype}"
    return _difference_of_elements(wanted, got, ulps, scale, call)


def _difference_of_elements(wanted: Any, got: Any, ulps: int, scale: float, call: Call) -> str:
    if call.target.endswith((".empty", ".empty_like")):
        return ""
    args, kwargs = call.arguments
    if call.target == "numpy.pad" and "empty" in (kwargs.get("mode"), *args[2:3]):
        return ""
    if call.target.endswith("argsort") and wanted.ndim and not _is_stable(kwargs):
        return _difference_of_argsort(wanted, got, call)
    if call.target.endswith("partition") and wanted.ndim:
        return _difference_of_partition(wanted, got, call)
    if wanted.dtype.kind not in "fc":
        bad = wanted != got
    else:
        bad = _far(wanted, got, ulps, scale)
        if not bad.any():
            bad = _sign_of_zero(wanted, got) & (not call.target.startswith(_OF_ROUNDED_ZEROS))
            if bad.any():
                return f"sign of zero: {_first(bad, got)}, not {_first(bad, wanted)}"
    return f"value {_first(bad, got)}, not {_first(bad, wanted)}" if np.any(bad) else ""


def _is_stable(kwargs: Mapping[str, Any]) -> bool:
    kind = kwargs.get("kind") or "quicksort"
    return bool(kwargs.get("stable")) or str(kind)[0] in "sSmM"


def _difference_of_argsort(wanted: Any, got: Any, call: Call) -> str:
    """Places of equal elements may be in any order."""
    args, kwargs = call.arguments
    a = np.asarray(args[0])
    axis = kwargs.get("axis", args[1] if len(args) > 1 else -1)
    if axis is None:
        a, axis = a.reshape(-1), -1
    sorted_ = [np.take_along_axis(a, x, axis) for x in (wanted, got)]
    if np.array_equal(*sorted_, equal_nan=a.dtype.kind in "fc"):
        return ""
    return "places of other elements"


def _far(wanted: Any, got: Any, ulps: int, scale: float) -> Any:
    eps = float(np.finfo(wanted.dtype).eps) if wanted.dtype.kind in "fc" else 0.0
    if got.dtype.kind not in "fc":
        return wanted != got
    with np.errstate(all="ignore"):
        if wanted.dtype.kind == "c":
            parts = [(wanted.real, got.real), (wanted.imag, got.imag)]
            size = np.abs(wanted.astype(np.complex128))
        else:
            parts, size = [(wanted, got)], np.abs(wanted.astype(np.float64))
        if scale:
            finite = size[np.isfinite(size)]
            size = np.maximum(size, max(scale, float(finite.max()) if finite.size else 0.0))
        tiny = float(np.finfo(wanted.dtype).smallest_subnormal)
        bound = np.where(np.isfinite(size), size, 0) * eps * ulps + tiny * ulps
        far = np.zeros(wanted.shape, bool)
        for w, g in parts:
            w, g = w.astype(np.float64), g.astype(np.float64)
            near = (w == g) | (np.isnan(w) & np.isnan(g)) | (np.abs(w - g) <= bound)
            far |= ~near
    return far


def _sign_of_zero(wanted: Any, got: Any) -> Any:
    if got.dtype.kind not in "fc":
        return np.zeros(wanted.shape, bool)
    found = np.zeros(wanted.shape, bool)
    for w, g in (
        [(wanted.real, got.real), (wanted.imag, got.imag)]
        if wanted.dtype.kind == "c"
        else [(wanted, got)]
    ):
        found |= (w == 0) & (g == 0) & (np.signbit(w) != np.signbit(g))
    return found


def _difference_of_partition(wanted: Any, got: Any, call: Call) -> str:
    """Only the elements at `kth` have a place; those on each side of them have no order."""
    args, kwargs = call.arguments
    a = np.asarray(args[0])
    kth = np.atleast_1d(kwargs["kth"] if "kth" in kwargs else args[1])
    axis = kwargs.get("axis", args[2] if len(args) > 2 else -1)
    if axis is None:
        a, axis = a.reshape(-1), -1
    if wanted.dtype.kind in "i" and call.target.endswith("argpartition"):
        wanted, got = (np.take_along_axis(a, x, axis) for x in (wanted, got))
    if not wanted.size:
        return ""
    is_inexact = wanted.dtype.kind in "fc"
    kth = np.unique(kth.astype(np.int64) % max(1, wanted.shape[axis]))
    for x, y in zip(
        np.split(np.moveaxis(wanted, axis, 0), kth),
        np.split(np.moveaxis(got, axis, 0), kth),
        strict=True,
    ):
        if not np.array_equal(np.sort(x, 0), np.sort(y, 0), equal_nan=is_inexact):
            return "other elements on a side of kth"
    at = [np.take(np.moveaxis(x, axis, 0), kth, 0) for x in (wanted, got)]
    return "" if np.array_equal(*at, equal_nan=is_inexact) else "another element at kth"


def _magnitude(value: Any) -> float:
    """The largest finite magnitude among numbers of arguments."""
    if isinstance(value, (list, tuple)):
        return max(map(_magnitude, value), default=0.0)
    if isinstance(value, (bool, int, float, complex, np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind not in "biufc":
            return 0.0
        size = np.abs(array.astype(np.complex128))
        size = size[np.isfinite(size)]
        return float(size.max()) if size.size else 0.0
    return 0.0


def _first(bad: Any, x: Any) -> str:
    return repr(x[bad].reshape(-1)[0].item()) if x.ndim else repr(x.item())


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) < 60 else type(value).__name__
