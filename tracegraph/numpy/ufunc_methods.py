"""The methods of ufuncs: `np.maximum.accumulate(x)`, `np.gcd.reduce(x)`, `np.add.outer(x, y)`.

`reduce` and `accumulate` fold with the ufuncs that are associative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike

from tracegraph import numpy as functions
from tracegraph.arrays.eager import apply
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir import combiners
from tracegraph.ir.op import Combiner, get
from tracegraph.numpy.dispatch import as_array, copied, lifted
from tracegraph.numpy.elementwise import where as choose
from tracegraph.numpy.output import target_of, written
from tracegraph.numpy.reductions import Axis, folded, kept, masked, reduced_axes
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
        ValueError: there is neither an element nor an identity to begin with.
        TypeError: the ufunc does not combine values of this dtype.
    """
    combiner = combiner_of(ufunc, "reduce")
    name = combiner.name
    if isinstance(array, Selected) and name in REDUCTIONS:
        return _reduced(name, array, axis, dtype, out, keepdims, initial, where)
    a = in_fold_dtype(ufunc, as_array(array), dtype, out)
    axes = () if a.ndim == 0 and axis in (0, -1) else reduced_axes(a, axis)
    alone = initial is None or (initial is np._NoValue and ufunc.identity is None)
    if where is not True and alone:
        raise ValueError(
            f"reduction operation {name!r} does not have an identity, so to use a where mask one "
            "has to specify 'initial'"
        )
    count = int(np.prod([a.shape[k] for k in axes]))
    if count == 0 and alone:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    if len(axes) > 1 and name == "lcm":
        raise ValueError(
            "reduction operation 'lcm' is not reorderable, so at most one axis may be specified"
        )
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
        initial = as_array(initial, result.dtype)
        folded_on = getattr(functions, name)(initial, result)
        result = choose(_some(a, axes, keepdims, where), folded_on, initial)
    return written(f"{name}.reduce", result, out, True)


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
    """
    name = combiner_of(ufunc, "accumulate").name
    array = as_array(array)
    if axis is None and array.ndim > 1:
        raise ValueError("accumulate does not allow multiple axes")
    a = in_fold_dtype(ufunc, array, dtype, out)
    if a.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    axis = normalize_axis_index(0 if axis is None else axis, a.ndim)
    op = get(_SCANS.get(name, f"{name}_accumulate"))
    if name in OF_MAGNITUDES:
        first = functions.arange(a.shape[axis]) == 0
        first = functions.reshape(first, (-1,) + (1,) * (a.ndim - axis - 1))
        result = choose(first, a, apply(op, functions.absolute(a), axis=axis))
    else:
        result = apply(op, a, axis=axis)
    return written(f"{name}.accumulate", result, out, True)


def outer(ufunc: np.ufunc, a: Any, b: Any, /, **options: Any) -> Any:
    """`ufunc.outer`: each element of `a` combined with each of `b`.

    Raises:
        UnsupportedByTracerError: there is no such function here.
    """
    function = getattr(functions, ufunc.__name__, None)
    if function is None:
        raise UnsupportedByTracerError(f"numpy.{ufunc.__name__}.outer")
    a, b = as_array(a), as_array(b)
    return function(functions.reshape(a, a.shape + (1,) * b.ndim), b, **options)


def combiner_of(ufunc: np.ufunc, method: str) -> Combiner:
    """The function that a method of a ufunc folds with.

    Raises:
        UnsupportedByTracerError: the ufunc is not associative.
    """
    combiner = COMBINERS.get(ufunc.__name__)
    if combiner is None:
        raise UnsupportedByTracerError(
            f"numpy.{ufunc.__name__}.{method}",
            "only associative ufuncs fold in any order: " + ", ".join(sorted(COMBINERS)),
        )
    return combiner


def in_fold_dtype(ufunc: np.ufunc, a: Any, dtype: DTypeLike | None, out: Any) -> Any:
    """An array in the dtype in which it is folded: that given, or that of `out`, or NumPy's."""
    target = target_of(out)
    if dtype is None and target is not None:
        dtype = target.dtype
    if dtype is None:
        return as_array(a, ufunc.resolve_dtypes((None, a.dtype, None), reduction=True)[2])
    wanted = np.dtype(dtype)
    if ufunc.resolve_dtypes((wanted, wanted, None))[2] != wanted:
        raise TypeError(f"numpy.{ufunc.__name__} does not fold in {wanted}")
    return as_array(a, wanted)
