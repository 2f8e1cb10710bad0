"""NumPy's functions of selected elements, `np.mean(x[mask])`: by the values at all places.

A function of elements needs nothing here, as its ops are applied at all places. A reduction over
the selected elements leaves out the others: by `where=`, or with a value that does not count, such
as 0 in a product of matrices. Along other axes, a function is applied to the region.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tracegraph import errors
from tracegraph import numpy as functions
from tracegraph.ir import combiners
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.selected_operations import (
    aligned,
    region_of,
    require_same_mask,
    require_same_places,
)

Function = Callable[..., Any]


class FunctionCall(NamedTuple):
    """A call of a function, with its arguments by name."""

    name: str
    function: Function
    arguments: dict[str, Any]

    def with_arguments(self, **arguments: Any) -> Any:
        """The result of the function with some arguments replaced."""
        return called(self.function, {**self.arguments, **arguments})


def called(function: Function, arguments: Mapping[str, Any]) -> Any:
    """The result of a function with arguments by name, some of which may be positional alone."""
    bound = inspect.signature(function).bind_partial()
    bound.arguments.update(arguments)
    return function(*bound.args, **bound.kwargs)


def apply_to_selected(
    name: str, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """A function of NumPy's, by its own implementation, of arguments with selected elements.

    Raises:
        BooleanMaskError: it needs the number of elements.
    """
    rule = _RULES.get(name)
    if rule is None:
        return function(*args, **kwargs)
    bound = inspect.signature(function).bind(*args, **kwargs)
    return rule(FunctionCall(name, function, dict(bound.arguments)))


def refusal_by_name(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any], error: errors.BooleanMaskError
) -> errors.BooleanMaskError:
    """The error of a function that needs the number of elements of an argument, with its name."""
    found = [x for x in _flat([*args, *kwargs.values()]) if isinstance(x, Selected)]
    return refused_shape(found[0], name) if found else error


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found += _flat(value) if isinstance(value, (list, tuple)) else [value]
    return found


def one_axis(x: Selected) -> Selected:
    """Selected elements whose mask has one axis, the count axis: places in row-major order."""
    if x.mask.ndim == 1:
        return x
    count, shape = x.mask.size, x.region.shape
    after = shape[x.before + x.mask.ndim :]
    region = functions.reshape(x.region, (*shape[: x.before], count, *after))
    return Selected(region, functions.reshape(x.mask, (count,)), x.before, x.place, x.guarded)


def all_axes(region: Any, x: Selected, before: int | None = None) -> Selected:
    """What a function gives for `one_axis(x)`, at the places of the mask of `x`.

    `before` is how many of its axes come before the count axis; unless given, as in `x`.
    """
    before = x.before if before is None else before
    shape = (*region.shape[:before], *x.mask.shape, *region.shape[before + 1 :])
    return Selected(functions.reshape(region, shape), x.mask, before, x.place, guarded=True)


def filled(x: Selected, value: Any) -> Any:
    """The region with a value that does not count at places that are not selected."""
    return functions.where(x.condition, x.region, x.dtype.type(value))


def array_of(call: FunctionCall, *others: str) -> tuple[str, Selected]:
    """The first parameter and its argument, which must be what has a mask; so may the `others`.

    Raises:
        BooleanMaskError: it is another argument.
    """
    parameter = next(iter(call.arguments))
    x = call.arguments[parameter]
    for name, value in call.arguments.items():
        if isinstance(value, Selected) and name not in (
            *(parameter, "where", "weights"),
            *others,
        ):
            value.refuse(f"argument {name} of numpy.{call.name}, {{read}},")
    if not isinstance(x, Selected):
        other = next(v for v in call.arguments.values() if isinstance(v, Selected))
        other.refuse(f"numpy.{call.name} of an array that no mask selects from, beside {{read}},")
    return parameter, x


def axes_of(axis: Any, x: Selected) -> tuple[int, ...]:
    """The axes that an argument names, those of the mask being one; all of them for None."""
    if axis is None:
        return tuple(range(x.ndim))
    return tuple(normalize_axis_tuple(axis, x.ndim))


def reduction(call: FunctionCall, neutral: Any = None) -> Any:
    """A reduction with `where=`; over the selected elements, it begins with `neutral` if given."""
    parameter, given = array_of(call)
    axes, x = axes_of(call.arguments.get("axis"), given), one_axis(given)
    where = call.arguments.get("where", True)
    if isinstance(where, Selected):
        require_same_places(where, given)
        where = one_axis(where).region
    elif where is not True:
        where = aligned(where, x)
    replaced: dict[str, Any] = {parameter: x.region, "axis": axes}
    if x.before in axes:
        where = x.condition if where is True else functions.logical_and(x.condition, where)
        if neutral is not None:
            replaced["initial"] = neutral
        return call.with_arguments(**replaced, where=where)
    replaced[parameter] = region_of(x, x)
    if where is not True:
        replaced["where"] = where
    return all_axes(call.with_arguments(**replaced), given, axes_before(call, axes, x))


def _extreme(call: FunctionCall) -> Any:
    _, x = array_of(call)
    lacks_initial = call.arguments.get("initial") in (None, np._NoValue)
    return reduction(call, _EXTREMA[call.name].identity(x.dtype) if lacks_initial else None)


def axes_before(call: FunctionCall, axes: tuple[int, ...], x: Selected) -> int:
    """How many axes before the count axis are left by a reduction of others."""
    if call.arguments.get("keepdims") is True:
        return x.before
    return x.before - len([axis for axis in axes if axis < x.before])


_EXTREMA = {
    **dict.fromkeys(("max", "nanmax"), combiners.MAXIMUM),
    **dict.fromkeys(("min", "nanmin"), combiners.MINIMUM),
}
_REDUCTIONS = (
    *("sum", "prod", "any", "all", "mean", "var", "std"),
    *("nansum", "nanprod", "nanmean", "nanvar", "nanstd"),
)


def _count_nonzero(call: FunctionCall) -> Any:
    parameter, x = array_of(call)
    options = {k: v for k, v in call.arguments.items() if k != parameter}
    return functions.sum(functions.not_equal(x, x.dtype.type(0)), **options)


def _ptp(call: FunctionCall) -> Any:
    parameter, x = array_of(call)
    options = {k: v for k, v in call.arguments.items() if k not in (parameter, "out")}
    result = functions.subtract(functions.max(x, **options), functions.min(x, **options))
    out = call.arguments.get("out")
    return result if out is None else functions.positive(result, out=out)


def _average(call: FunctionCall) -> Any:
    _, x = array_of(call)
    weights = call.arguments.get("weights")
    options = {k: v for k, v in call.arguments.items() if k in ("axis", "keepdims")}
    if call.arguments.get("returned"):
        x.refuse("numpy.average of {read} with returned=True")
    if weights is None:
        return functions.mean(x, **options)
    if not isinstance(weights, Selected):
        x.refuse("numpy.average of {read}, with weights that no mask selects from,")
    total = functions.sum(functions.multiply(x, weights), **options)
    return functions.divide(total, functions.sum(weights, **options))


def _along(neutral: float | None) -> Callable[[FunctionCall], Any]:
    """A function along an axis: the region's, or the count axis with a value that does not count.

    The result along the count axis belongs to the selected elements.
    """

    def rule(call: FunctionCall) -> Any:
        parameter, given = array_of(call)
        x = one_axis(given)
        signature = inspect.signature(call.function).parameters
        axis = call.arguments.get("axis", signature["axis"].default)
        if axis is None and x.ndim > 1:
            x.refuse(f"numpy.{call.name} of all of {{read}}", "give the axis")
        (number,) = axes_of(axis, x)
        if number != x.before:
            found = call.with_arguments(**{parameter: region_of(x, x), "axis": number})
        elif neutral is None:
            raise refused_shape(x, call.name)
        else:
            found = call.with_arguments(**{parameter: filled(x, neutral), "axis": number})
        return all_axes(found, given)

    return rule


def refused_shape(x: Selected, name: str) -> errors.BooleanMaskError:
    """The error of a function that needs the number of elements."""
    return x.refusal(f"numpy.{name} of {{read}}", _ADVICE.get(name, ""), is_of_shape=True)


def _position(call: FunctionCall) -> Any:
    """`argmax`, `argmin`: the position among the selected elements."""
    parameter, given = array_of(call)
    x = one_axis(given)
    axis = call.arguments.get("axis")
    if axis is not None and axes_of(axis, x) != (x.before,):
        found = call.with_arguments(**{parameter: region_of(x, x)})
        return all_axes(found, given, axes_before(call, axes_of(axis, x), x))
    if axis is None and x.ndim > 1:
        x.refuse(f"numpy.{call.name} of all of {{read}}", "give the axis")
    extreme = functions.max if call.name == "argmax" else functions.min
    best = functions.equal(x.region, extreme(x, axis=x.before, keepdims=True))
    if x.dtype.kind in "fcV":
        best = functions.logical_or(best, functions.isnan(x.region))
    best = functions.logical_and(best, x.condition)
    place = call.with_arguments(**{parameter: _position_of(best, call.name), "axis": x.before})
    ranks = functions.cumsum(x.mask) - 1
    return ranks[place]


def _position_of(best: Any, name: str) -> Any:
    """What the function of this name finds the first true element of."""
    return best if name == "argmax" else functions.logical_not(best)


def _by_nans(call: FunctionCall) -> Any:
    """A median or quantile: that of all places, NaN at those that are not selected."""
    parameter, given = array_of(call)
    axes, x = axes_of(call.arguments.get("axis"), given), one_axis(given)
    if x.dtype.kind == "c" or call.arguments.get("weights") is not None:
        raise refused_shape(x, call.name)
    if x.before not in axes:
        found = call.with_arguments(**{parameter: region_of(x, x), "axis": axes})
        return all_axes(
            found, given, axes_before(call, axes, x) + np.ndim(call.arguments.get("q", 0))
        )
    own = x.region if x.dtype.kind in "fV" else functions.astype(x.region, np.float64)
    chosen = functions.where(x.condition, own, np.nan)
    skipping = getattr(functions, f"nan{call.name.removeprefix('nan')}")
    arguments = {**call.arguments, parameter: chosen, "axis": axes}
    result = called(skipping, arguments)
    if call.name.startswith("nan") or x.dtype.kind not in "fV":
        return result
    keepdims = bool(call.arguments.get("keepdims", False))
    spoiled = functions.any(x.like(functions.isnan(x.region)), axis=axes, keepdims=keepdims)
    return functions.where(spoiled, result.dtype.type(np.nan), result)


def _norm(call: FunctionCall) -> Any:
    parameter, given = array_of(call)
    x, order = one_axis(given), call.arguments.get("ord")
    axis = call.arguments.get("axis")
    if x.ndim > 1 and axis is None and order is None:  # that of all elements
        size = functions.absolute(x)
        return functions.sqrt(functions.sum(functions.square(size)))
    axes = axes_of(axis, x)
    if x.before not in axes:
        arguments = {parameter: region_of(x, x), "axis": axes if len(axes) > 1 else axes[0]}
        return all_axes(call.with_arguments(**arguments), given, axes_before(call, axes, x))
    if len(axes) > 1 or not (order is None or order >= 0):
        raise refused_shape(x, call.name)
    return call.with_arguments(**{parameter: filled(x, 0), "axis": axes[0]})


def _product(call: FunctionCall) -> Any:
    """A product of arrays: over the selected elements, or of each of them with a matrix."""
    (first, a), (second, b) = list(call.arguments.items())[:2]
    if isinstance(a, Selected) and isinstance(b, Selected):
        require_same_mask(a, b)
        if not _is_over_count(a, b, call.name):
            raise refused_shape(a, call.name)
        a, b = one_axis(a), one_axis(b)
        return call.with_arguments(**{first: filled(a, 0), second: filled(b, 0)})
    given, parameter, other = (a, first, b) if isinstance(a, Selected) else (b, second, a)
    kept = given.after if parameter == first else given.before and not given.after
    if not kept or np.ndim(other) > 2 or call.name == "vdot":
        raise refused_shape(given, call.name)
    x = one_axis(given)
    region = call.with_arguments(**{parameter: filled(x, 0)})
    return all_axes(region, given, x.before if parameter == first else region.ndim - 1)


def _is_over_count(a: Selected, b: Selected, name: str) -> bool:
    """Whether a product sums over the count axes of both operands."""
    if name == "vdot":
        return a.ndim == b.ndim == 1
    last = name in ("inner", "vecdot") or b.ndim == 1
    return a.after == 0 and b.after == (0 if last else 1)


def _transposed(call: FunctionCall) -> Any:
    _, x = array_of(call)
    axes = call.arguments.get("axes")
    order = tuple(reversed(range(x.ndim))) if axes is None else axes_of(axes, x)
    count, places = x.mask.ndim, x.mask_axes
    own: list[int] = []
    for axis in order:
        own += places if axis == x.before else [axis if axis < x.before else axis + count - 1]
    region = functions.transpose(x.region, tuple(own))
    return Selected(region, x.mask, order.index(x.before), x.place, x.guarded)


def _flat_copy(call: FunctionCall) -> Any:
    """`ravel`: of selected elements along one axis."""
    _, x = array_of(call)
    if x.ndim > 1:
        raise refused_shape(x, call.name)
    return x.copy()


def _reshaped(call: FunctionCall) -> Any:
    """`reshape` to one axis, or to one with axes of extent 1 beside it."""
    _, x = array_of(call)
    shape = call.arguments.get("shape")
    wanted = (shape,) if isinstance(shape, int) else tuple(shape or ())
    if x.ndim > 1 or sorted(wanted) != [-1, *(1,) * (len(wanted) - 1)]:
        raise refused_shape(x, call.name)
    return x[tuple(slice(None) if n == -1 else None for n in wanted)]


def _of_each(position: int) -> Callable[[FunctionCall], Any]:
    """A function of each element of one argument, such as the x of `interp`."""

    def rule(call: FunctionCall) -> Any:
        parameter, x = list(call.arguments.items())[position]
        others = [v for k, v in call.arguments.items() if k != parameter]
        if not isinstance(x, Selected) or any(isinstance(v, Selected) for v in others):
            given = next(v for v in (x, *others) if isinstance(v, Selected))
            raise refused_shape(given, call.name)
        return x.like(call.with_arguments(**{parameter: region_of(x, x)}))

    return rule


def _repaired(call: FunctionCall) -> Any:
    """`nan_to_num`: the numbers in place of others broadcast with the selected elements."""
    parameter, x = array_of(call, "nan", "posinf", "neginf")
    replaced = {
        k: region_of(v, x)
        for k, v in call.arguments.items()
        if k in (parameter, "nan", "posinf", "neginf") and v is not None
    }
    result = x.like(call.with_arguments(**replaced, copy=True))
    if call.arguments.get("copy", True):
        return result
    x.assign(result, "nan_to_num")
    return x


def _alike(call: FunctionCall) -> Any:
    """`zeros_like` and its relatives: as many new elements."""
    parameter, x = array_of(call)
    if call.arguments.get("shape") is not None:
        return call.with_arguments(**{parameter: x.region})
    return x.like(call.with_arguments(**{parameter: x.region}))


def _number_of_axes(call: FunctionCall) -> int:
    return array_of(call)[1].ndim


def _taken(call: FunctionCall) -> Any:
    (_, a), (_, indices) = list(call.arguments.items())[:2]
    axis = call.arguments.get("axis")
    if isinstance(a, Selected) or axis not in (None, 0):
        given = a if isinstance(a, Selected) else indices
        raise refused_shape(given, call.name)
    table = functions.ravel(a) if axis is None else a
    return FUNCTIONS["getitem"](table, indices)


_ADVICE = {
    **dict.fromkeys(
        ("shape", "size"), "write numpy.count_nonzero({mask}) for the number of elements"
    ),
    "extract": "select once, at both masks: {array}[{mask} & other]",
    "sort": "sort all places with the others last: numpy.sort(numpy.where({mask}, {array}, "
    "numpy.inf))",
    "argsort": "sort all places with the others last: numpy.argsort(numpy.where({mask}, {array}, "
    "numpy.inf))",
    "bincount": "count with weights of 0 at the others: numpy.bincount({array}, weights={mask}, "
    "minlength=n)",
    "histogram": "count with weights of 0 at the others: numpy.histogram({array}, bins, "
    "weights={mask})",
    "unique": "give the result a static size: tracegraph.numpy.unique(numpy.where({mask}, {array}, "
    "fill), size=n)",
    "concatenate": "join the arrays and their masks, and select then",
}
"""What to write for functions that need the number of elements, if not the general advice."""

_RULES: Mapping[str, Callable[[FunctionCall], Any]] = {
    **dict.fromkeys(_REDUCTIONS, reduction),
    **dict.fromkeys(_EXTREMA, _extreme),
    "count_nonzero": _count_nonzero,
    "ptp": _ptp,
    "average": _average,
    **dict.fromkeys(("cumsum", "nancumsum"), _along(0)),
    **dict.fromkeys(("cumprod", "nancumprod"), _along(1)),
    **dict.fromkeys(("sort", "argsort", "flip", "diff"), _along(None)),
    **dict.fromkeys(("argmax", "argmin"), _position),
    **dict.fromkeys(
        ("median", "quantile", "percentile", "nanmedian", "nanquantile", "nanpercentile"), _by_nans
    ),
    "norm": _norm,
    **dict.fromkeys(("matmul", "dot", "vdot", "inner", "vecdot"), _product),
    **dict.fromkeys(("transpose", "permute_dims"), _transposed),
    "ravel": _flat_copy,
    "reshape": _reshaped,
    **dict.fromkeys(("interp", "digitize", "isin"), _of_each(0)),
    **dict.fromkeys(("searchsorted", "polyval"), _of_each(1)),
    "take": _taken,
    "nan_to_num": _repaired,
    **dict.fromkeys(("zeros_like", "ones_like", "full_like", "empty_like"), _alike),
    "ndim": _number_of_axes,
}
