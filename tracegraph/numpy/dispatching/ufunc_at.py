"""`ufunc.at`: elements combined in place, as often as an index names them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracegraph import control, errors
from tracegraph import numpy as functions
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import get
from tracegraph.ir.types import promotion_tokens, type_of
from tracegraph.numpy.dispatching.dispatch import as_array, lifted, unchecked
from tracegraph.numpy.indexing import batch_first, batched, fitted
from tracegraph.tracing.conversions import written_array_advice
from tracegraph.tracing.local_writes import LocalWrites
from tracegraph.tracing.selection import parse

UPDATES = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "minimum": "min",
    "maximum": "max",
}
"""The methods of `x.at[index]` that combine as `ufunc.at` does."""

_UPDATES_OF_BOOLS = {
    "logical_or": "max",
    "logical_and": "min",
    "bitwise_or": "max",
    "bitwise_and": "min",
}
"""The same for arrays of booleans alone."""


def at(ufunc: np.ufunc, target: Any, index: Any, *values: Any) -> None:
    """`ufunc.at`: some ufuncs are one scatter, the others a loop over what the index names.

    Results convert to the dtype of the target, whatever that is.

    Raises:
        UnsupportedByTracerError: there is no such function here, the target was not made where it
            is traced, or the index holds a traced mask.
        TypeError: the ufunc has no loop for the dtypes.
        ValueError: another number of operands than the ufunc has.
    """
    name = ufunc.__name__
    if not isinstance(target, LocalWrites):
        raise errors.UnsupportedByTracerError(
            f"numpy.{name}.at on {type(target).__name__}", written_array_advice(target)
        )
    if ufunc.signature is not None or ufunc.nout != 1 or ufunc.nin > 2:
        raise ValueError(f"numpy.{name} has no at: it is for unary and binary ufuncs")
    if len(values) != ufunc.nin - 1:
        raise ValueError(f"numpy.{name}.at takes {ufunc.nin - 1} values, got {len(values)}")
    function = getattr(functions, name, None)
    if function is None:
        raise errors.UnsupportedByTracerError(f"numpy.{name}.at")
    _require_loop(ufunc, target, values)
    is_of_bools = target.dtype == np.bool_
    methods: Mapping[str, str] = {**UPDATES, **_UPDATES_OF_BOOLS} if is_of_bools else UPDATES
    if name in methods and (not is_of_bools or name not in ("add", "multiply")):
        value = as_array(values[0])
        if np.can_cast(value.dtype, target.dtype, "same_kind"):
            target.assign(getattr(target.at[index], methods[name])(value), name)
            return
    target.assign(_in_order(function, target, index, values), name)


def _require_loop(ufunc: np.ufunc, target: Any, values: tuple[Any, ...]) -> None:
    tokens = promotion_tokens([type_of(x) for x in (target, *map(as_array, values))])
    ufunc.resolve_dtypes((*tokens, None))


def _in_order(function: Any, target: Any, index: Any, values: tuple[Any, ...]) -> Any:
    """The target after one place of the index after the other has been combined."""
    selection = parse(index, target.shape)
    values = tuple([fitted(lifted(as_array(v)), selection.shape) for v in values])
    if not selection.arrays:
        return target.at[index].set(unchecked(function(target[index], *values), target.dtype))
    rest = tuple([selection.sizes[axis] for axis in selection.rest])
    rows = (math.prod(selection.batch), *rest)
    updates = [functions.reshape(batch_first(v, selection), rows) for v in values]
    places = [functions.reshape(a, -1) for a in batched(target, selection)]
    dims = selection.dims
    ranges = {k: getattr(selection, k) for k in ("starts", "steps", "sizes")}
    written = {k: tuple([ranges[k][axis] for axis in selection.rest]) for k in ("starts", "steps")}

    def step(t: Any, at_one: Any) -> tuple[Any, None]:
        numbers, operands = at_one
        read = apply(get("gather"), apply(get("slice"), t, **ranges), *numbers, dims=dims)
        value = unchecked(function(read, *operands), t.dtype)
        return apply(get("scatter_set"), t, value, *numbers, dims=dims, **written), None

    return control.scan(step, target, (places, updates))[0]
