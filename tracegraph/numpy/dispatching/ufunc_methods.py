"""The methods of ufuncs: `np.maximum.accumulate(x)`, `np.gcd.reduce(x)`, `np.add.outer(x, y)`.

Associative ufuncs fold in any order; the others one element after the other, as a loop.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph import numpy as functions
from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir import combiners
from tracegraph.ir.op import Combiner, get
from tracegraph.numpy.dispatching.dispatch import as_array, copied, lifted
from tracegraph.numpy.dispatching.output import mask_of, stored
from tracegraph.numpy.elementwise import where as choose
from tracegraph.numpy.ordered_folds import accumulated_in_order, folded_in_order
from tracegraph.numpy.reductions import Axis, folded, folded_axes, in_fold_dtype, kept, masked
from tracegraph.tracing.selected import Selected

COMBINERS = {c.name: c for c in vars(combiners).values() if isinstance(c, Combiner)}

REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "minimum": "min",
    "maximum": "max",
    "logical_and": "all",
    "logical_or": "any",
}
_SCANS = {"add": "cumsum", "multiply": "cumprod"}

OF_MAGNITUDES = {"gcd", "lcm", "hypot"}
"""Ufuncs that lose the sign of an operand also where the other is their identity."""


def reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Axis = 0,
    dtype: DTypeLike | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Any:
    """`ufunc.reduce`: elements folded over axes, over the first one by default.

    Raises:
        ValueError: there is neither an element nor an identity to begin with; more than one axis
            of a ufunc that folds in order; a ufunc that is not one of two operands.
        TypeError: the ufunc does not combine values of this dtype.
    """
    combiner = combiner_of(ufunc, "reduce")
    name = ufunc.__name__
    if isinstance(array, Selected) and name in REDUCTIONS:
        return _reduced(name, array, axis, dtype, out, keepdims, initial, where)
    a = in_fold_dtype(ufunc, as_array(array), dtype, out)
    axes = folded_axes(a, axis)
    alone = initial is None or (initial is np._NoValue and ufunc.identity is None)
    if where is not True and alone:
        raise ValueError(
            f"reduction operation {name!r} does not have an identity, so to use a where mask one "
            "has to specify 'initial'"
        )
    if len(axes) > 1 and (combiner is None or name == "lcm"):
        raise ValueError(
            f"reduction operation {name!r} is not reorderable, so at most one axis may be specified"
        )
    count = int(np.prod([a.shape[k] for k in axes]))
    if count == 0 and alone:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if initial is not None and initial is not np._NoValue:
        initial = as_array(initial, a.dtype)
    if combiner is None:
        result = _in_order(ufunc, a, axes, keepdims, initial, where)
    else:
        result = _in_any_order(combiner, a, axes, keepdims, initial, where, alone)
    return stored(f"{name}.reduce", result, out, "unsafe")


def _reduced(
    name: str,
    array: Any,
    axis: Axis,
    dtype: DTypeLike | None,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    """What the function of the same fold gives, `sum` for `add`."""
    given = {"dtype": dtype, "out": out, "initial": initial, "where": where}
    omitted = (None, True, np._NoValue)
    options = {k: v for k, v in given.items() if not any(v is each for each in omitted)}
    return getattr(functions, REDUCTIONS[name])(array, axis, keepdims=keepdims, **options)


def _in_order(
    ufunc: np.ufunc, a: Any, axes: tuple[int, ...], keepdims: bool, initial: Any, where: Any
) -> Any:
    k = axes[0] if axes else 0
    rows = functions.moveaxis(a, k, 0) if axes else functions.reshape(a, (1, *a.shape))
    mask = where
    if where is not True:
        mask = functions.broadcast_to(mask_of(where), a.shape)
        mask = functions.moveaxis(mask, k, 0) if axes else functions.reshape(mask, rows.shape)
    if initial is None or initial is np._NoValue:
        initial, rows = rows[0], rows[1:]
    return kept(folded_in_order(ufunc, initial, rows, mask), a.shape, axes, keepdims)


def _in_any_order(
    combiner: Combiner,
    a: Any,
    axes: tuple[int, ...],
    keepdims: bool,
    initial: Any,
    where: Any,
    alone: bool,
) -> Any:
    name = combiner.name
    count = int(np.prod([a.shape[k] for k in axes]))
    if name in OF_MAGNITUDES and not (count == 1 and alone):
        a = functions.absolute(a)
    a = masked(a, where, combiner.identity(a.dtype))
    rest = tuple([n for k, n in enumerate(a.shape) if k not in axes])
    if count == 0:
        nothing = lifted(as_array(combiner.identity(a.dtype)))
        result = kept(copied(functions.broadcast_to(nothing, rest)), a.shape, axes, keepdims)
    elif count == 1:
        result = kept(copied(functions.reshape(a, rest)), a.shape, axes, keepdims)
    else:
        result = folded(REDUCTIONS.get(name, f"{name}_reduce"), a, axes, keepdims)
    if initial is not None and initial is not np._NoValue:
        folded_on = getattr(functions, name)(initial, result)
        result = choose(_some(a, axes, keepdims, where), folded_on, initial)
    return result


def _some(a: Any, axes: tuple[int, ...], keepdims: bool, where: Any) -> Any:
    """Which results have an element to fold; without one, NumPy returns `initial` as it is."""
    if where is True:
        return bool(all(a.shape[k] for k in axes))
    mask = functions.broadcast_to(as_array(where), a.shape)
    return functions.any(mask, axes, keepdims=keepdims)


def accumulate(
    ufunc: np.ufunc,
    array: Any,
    axis: int | None = 0,
    dtype: DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """`ufunc.accumulate`: the results of folding up to each element, along an axis.

    Raises:
        TypeError: there is no axis, or the ufunc does not combine values of this dtype.
        ValueError: more than one axis; a ufunc that is not one of two operands.
    """
    combiner = combiner_of(ufunc, "accumulate")
    name = ufunc.__name__
    array = as_array(array)
    if axis is None and array.ndim > 1:
        raise ValueError("accumulate does not allow multiple axes")
    a = in_fold_dtype(ufunc, array, dtype, out)
    if a.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    axis = normalize_axis_index(0 if axis is None else operator.index(axis), a.ndim)
    op = _SCANS.get(name, f"{name}_accumulate")
    if combiner is None:
        rows = accumulated_in_order(ufunc, functions.moveaxis(a, axis, 0))
        result = functions.moveaxis(rows, 0, axis)
    elif name in OF_MAGNITUDES:
        first = functions.arange(a.shape[axis]) == 0
        first = functions.reshape(first, (-1,) + (1,) * (a.ndim - axis - 1))
        result = choose(first, a, apply(get(op), functions.absolute(a), axis=axis))
    else:
        result = apply(get(op), a, axis=axis)
    return stored(f"{name}.accumulate", result, out, "unsafe")


def outer(ufunc: np.ufunc, a: Any, b: Any, /, **options: Any) -> Any:
    """`ufunc.outer`: each element of `a` combined with each of `b`.

    Raises:
        UnsupportedByTracerError: there is no such function here.
        ValueError: the ufunc has not two operands, or the result would have more than 64 axes.
    """
    function = getattr(functions, ufunc.__name__, None)
    if function is None:
        raise UnsupportedByTracerError(f"numpy.{ufunc.__name__}.outer")
    if ufunc.signature is not None or ufunc.nin != 2:
        raise ValueError("outer product only supported for binary functions")
    a, b = as_array(a), as_array(b)
    if a.ndim + b.ndim > 64:
        raise ValueError(
            f"an array has up to 64 axes, and the result of {ufunc.__name__}.outer has "
            f"{a.ndim + b.ndim}"
        )
    return function(a[(..., *(None,) * b.ndim)], b, **options)


def combiner_of(ufunc: np.ufunc, method: str) -> Combiner | None:
    """The function that a method of a ufunc folds with in any order; None if there is none.

    Raises:
        RuntimeError: the ufunc works on vectors or matrices.
        ValueError: it has not two operands and one result.
        UnsupportedByTracerError: there is no such function here.
    """
    name = ufunc.__name__
    if ufunc.signature is not None:
        raise RuntimeError(f"{method} is not defined on {name}, a ufunc with a signature")
    if (ufunc.nin, ufunc.nout) != (2, 1):
        raise ValueError(f"{method} is for ufuncs of two operands and one result, not {name}")
    if getattr(functions, name, None) is None or name == "ldexp":  # of operands of two dtypes
        raise UnsupportedByTracerError(f"numpy.{name}.{method}")
    return COMBINERS.get(name)
