"""`out=` and `where=`: results written to an existing array, under a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tracegraph.arrays.array import Array
from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.ir.types import type_of
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.tracing.conversions import written_array_advice
from tracegraph.tracing.local_writes import LocalWrites
from tracegraph.tracing.selected import Selected

Casting = Literal["no", "equiv", "safe", "same_kind", "unsafe"]


def target_of(out: Any) -> Any:
    """The array of `out=`, which ufuncs pass in a tuple; None if there is none.

    Raises:
        TypeError: it is not an array.
        ValueError: the tuple has another number of arrays than one.
    """
    if not isinstance(out, tuple):
        return _array_or_none(out)
    if len(out) != 1:
        raise ValueError(f"out= is an array, or a tuple of one; got a tuple of {len(out)}")
    return _array_or_none(out[0])


def _array_or_none(out: Any) -> Any:
    if out is None or out is Ellipsis:  # "...": an array, never a scalar, as all results here are
        return None
    if not hasattr(out, "dtype"):
        raise TypeError(f"out= is an array, or a tuple of one; got {type(out).__name__}")
    return out


_WRITERS = {
    "copyto": "write `x = numpy.where(mask, values, x)`",
    "put": "write `x = x.ravel().at[indices].set(values).reshape(x.shape)`",
    "putmask": "write `x = numpy.where(mask, values, x)`",
    "place": "write `x = x.at[mask].set(values)`",
    "put_along_axis": "write `x = x.at[indices].set(values)`, with an index for each axis",
    "fill_diagonal": "write `k = numpy.arange(n)` and `x = x.at[k, k].set(value)`",
}
"""Functions that write to their first argument, and what to do where that is read-only."""


def require_writable(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Require that Arrays may be written to that a function of NumPy with these arguments changes.

    Raises:
        ImmutableArrayError: one may not.
    """
    out = kwargs.get("out")
    for x in out if isinstance(out, tuple) else (out,):
        if type(x) is Array:
            x.check_writable(f"numpy.{name}(..., out=x)", "drop out=")
    target = args[0] if args else next(iter(kwargs.values()), None)
    if type(target) is not Array:
        return
    if name in _WRITERS:
        target.check_writable(f"numpy.{name}(x, ...)", _WRITERS[name])
    if name == "nan_to_num" and (kwargs.get("copy", True) is False or args[1:2] == (False,)):
        target.check_writable("numpy.nan_to_num(x, copy=False)", "drop copy=False")


def written(name: str, result: Any, out: Any, where: Any, casting: Casting = "same_kind") -> Any:
    """The result of a ufunc, written to `out` where the mask is true, if these are given.

    Where `casting` is "unsafe", it converts to any dtype.
    """
    target = target_of(out)
    if target is None:
        if where is not True:
            raise UnsupportedByTracerError(
                f"where= of numpy.{name} without out=",
                "its other elements would be undefined; use numpy.where(mask, result, other)",
            )
        return result
    if type(target) is Array:
        target.check_writable(f"numpy.{name}(..., out=x)", "drop out=")
    if not isinstance(target, (LocalWrites, Selected)):
        raise UnsupportedByTracerError(
            f"out= of numpy.{name} with {type(target).__module__}.{type(target).__name__}",
            written_array_advice(target),
        )
    own = type_of(result).dtype
    if casting == "unsafe":
        result = apply(get("cast"), result, dtype=target.dtype)
    elif not np.can_cast(own, target.dtype, casting):
        raise TypeError(
            f"numpy.{name} cannot write {own} to out= of {target.dtype} by casting={casting!r}"
        )
    if where is not True:
        result = apply(get("where"), mask_of(where), result, target)
    target.assign(result, name)
    return target


def mask_of(where: Any) -> Any:
    """The mask of `where=`: an array of booleans; numbers and lists of them are converted.

    Raises:
        TypeError: it is an array of another dtype.
    """
    if isinstance(where, (list, tuple, bool, int, float)):
        return as_array(where, np.bool_)
    mask = as_array(where)
    if mask.dtype != np.bool_:
        raise TypeError(f"where= is an array of booleans, got {mask.dtype}; write mask != 0")
    return mask


def require_safe(name: str, a: Any, out: Any) -> None:
    """Require that elements of `out` would convert to those of `a`, as `take` has it.

    Raises:
        TypeError: they would not without loss.
    """
    target = target_of(out)
    if target is not None and not np.can_cast(target.dtype, a.dtype, "safe"):
        raise TypeError(
            f"out= of numpy.{name} has the dtype {target.dtype}, which does not convert safely to "
            f"{a.dtype}"
        )


def stored(name: str, result: Any, out: Any, casting: Casting = "same_kind") -> Any:
    """The result of a function that is not a ufunc, written to `out`, of the same shape, if given.

    Raises:
        ValueError: `out` has another shape.
    """
    target = target_of(out)
    if isinstance(target, LocalWrites) and target.shape != np.shape(result):
        raise ValueError(
            f"out= of numpy.{name} has the shape {target.shape}, and the result {np.shape(result)}"
        )
    return written(name, result, out, True, casting)
