"""Methods of ufuncs applied to selected elements: `np.maximum.reduce(x[mask])`.

The places that are not selected hold the identity of the ufunc, which no fold in any order notices.
A ufunc that folds in order begins with the first element, and so needs to know which it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from tracegraph import numpy as functions
from tracegraph.numpy.dispatching.ufunc_methods import OF_MAGNITUDES, combiner_of
from tracegraph.numpy.reductions import in_fold_dtype
from tracegraph.numpy.selected_functions import (
    Function,
    FunctionCall,
    all_axes,
    array_of,
    axes_of,
    one_axis,
    reduction,
    refused_shape,
)
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.selected_operations import region_of


def method_of_selected(ufunc: np.ufunc, method: str, function: Function) -> Function:
    """A method of a ufunc for arguments with selected elements, by the one for arrays.

    The result raises a BooleanMaskError if it needs the number of elements, or the first one.
    """

    @wraps(function)
    def applied(*args: Any, **kwargs: Any) -> Any:
        arguments = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
        call = FunctionCall(f"{ufunc.__name__}.{method}", function, arguments)
        rule = _RULES.get(method)
        if rule is None:
            first = next(x for x in (*args, *kwargs.values()) if isinstance(x, Selected))
            raise refused_shape(first, call.name)
        return rule(ufunc, call)

    return applied


def _reduce(ufunc: np.ufunc, call: FunctionCall) -> Any:
    parameter, given = array_of(call)
    arguments = {**call.arguments, "axis": call.arguments.get("axis", 0)}
    x = in_fold_dtype(ufunc, given, arguments.get("dtype"), arguments.get("out"))
    call = call._replace(arguments={**arguments, parameter: x})
    combiner = combiner_of(ufunc, "reduce")
    if arguments.get("initial", ufunc.identity) is not None:
        return reduction(call)
    is_in_order = combiner is None or ufunc.__name__ == "lcm"  # one number alone keeps its sign
    if is_in_order and x.before in axes_of(arguments["axis"], x):
        x.refuse(
            f"numpy.{call.name} of {{read}}, which begins with the first of the selected elements,",
            "give initial=, what it is to begin with",
        )
    return reduction(call, None if combiner is None else combiner.identity(x.dtype))


def _accumulate(ufunc: np.ufunc, call: FunctionCall) -> Any:
    parameter, given = array_of(call)
    dtype, out = call.arguments.get("dtype"), call.arguments.get("out")
    x = one_axis(in_fold_dtype(ufunc, given, dtype, out))
    (axis,) = axes_of(call.arguments.get("axis", 0), x)
    if axis != x.before:
        region = region_of(x, x)
    else:
        combiner = combiner_of(ufunc, "accumulate")
        if combiner is None or ufunc.__name__ in OF_MAGNITUDES:  # the first one keeps its sign
            x.refuse(f"numpy.{call.name} of {{read}}, which begins with the first of the elements,")
        region = functions.where(x.condition, x.region, combiner.identity(x.dtype))
    return all_axes(call.with_arguments(**{parameter: region, "axis": axis}), given)


def _outer(ufunc: np.ufunc, call: FunctionCall) -> Any:
    return call.with_arguments()  # new axes and a function of elements


_RULES: Mapping[str, Callable[[np.ufunc, FunctionCall], Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "outer": _outer,
}
