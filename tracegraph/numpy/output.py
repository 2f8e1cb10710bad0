"""`out=` and `where=`: results written to an existing array, under a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracegraph.arrays.array import Array
from tracegraph.arrays.eager import apply
from tracegraph.errors import ImmutableArrayError, UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.tracing.conversions import written_array_advice
from tracegraph.tracing.tracer import Tracer


def target_of(out: Any) -> Any:
    """The array of `out=`, which ufuncs pass in a tuple; None if there is none."""
    return out[0] if isinstance(out, tuple) else out


_WRITERS = {
    "copyto": "write `x = numpy.where(mask, values, x)`",
    "put": "write `x = x.ravel().at[indices].set(values).reshape(x.shape)`",
    "putmask": "write `x = numpy.where(mask, values, x)`",
    "place": "write `x = x.at[mask].set(values)`",
    "put_along_axis": "write `x = x.at[indices].set(values)`, with an index for each axis",
    "fill_diagonal": "write `k = numpy.arange(n)` and `x = x.at[k, k].set(value)`",
}
"""Functions that write to their first argument, and what to do instead."""


def require_not_written(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Require that a function of NumPy with these arguments does not write to an Array.

    Raises:
        ImmutableArrayError: it does.
    """
    out = kwargs.get("out")
    if any(isinstance(x, Array) for x in (out if isinstance(out, tuple) else (out,))):
        raise ImmutableArrayError(f"numpy.{name}(..., out=x)", "drop out=")
    target = args[0] if args else next(iter(kwargs.values()), None)
    if not isinstance(target, Array):
        return
    if name in _WRITERS:
        raise ImmutableArrayError(f"numpy.{name}(x, ...)", _WRITERS[name])
    if name == "nan_to_num" and (kwargs.get("copy", True) is False or args[1:2] == (False,)):
        raise ImmutableArrayError("numpy.nan_to_num(x, copy=False)", "drop copy=False")


def written(name: str, result: Any, out: Any, where: Any) -> Any:
    """The result of a ufunc, written to `out` where the mask is true, if these are given."""
    target = target_of(out)
    if target is None:
        if where is not True:
            raise UnsupportedByTracerError(
                f"where= of numpy.{name} without out=",
                "its other elements would be undefined; use numpy.where(mask, result, other)",
            )
        return result
    if isinstance(target, Array):
        raise ImmutableArrayError(f"numpy.{name}(..., out=x)", "drop out=")
    if not isinstance(target, Tracer):
        raise UnsupportedByTracerError(
            f"out= of numpy.{name} with {type(target).__module__}.{type(target).__name__}",
            written_array_advice(target),
        )
    target.assign(result if where is True else apply(get("where"), where, result, target), name)
    return target
