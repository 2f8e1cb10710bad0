"""`out=` and `where=`: results written to an existing array, under a mask."""

from __future__ import annotations

from typing import Any

from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import get
from tracegraph.tracing.conversions import written_array_advice
from tracegraph.tracing.tracer import Tracer


def target_of(out: Any) -> Any:
    """The array of `out=`, which ufuncs pass in a tuple; None if there is none."""
    return out[0] if isinstance(out, tuple) else out


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
    if not isinstance(target, Tracer):
        raise UnsupportedByTracerError(
            f"out= of numpy.{name} with {type(target).__module__}.{type(target).__name__}",
            written_array_advice(target),
        )
    target.assign(result if where is True else apply(get("where"), where, result, target), name)
    return target
