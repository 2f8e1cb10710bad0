"""Functions that choose, by element, one of several arrays or functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph.arrays.creation import asarray
from tracegraph.ir.types import broadcast_shapes, result_type, type_of
from tracegraph.numpy.creation import zeros_like
from tracegraph.numpy.dispatching.dispatch import (
    as_array,
    is_python_number,
    laid_out,
    lifted,
    numpy_function,
    unchecked,
)
from tracegraph.numpy.dispatching.output import stored
from tracegraph.numpy.elementwise import where
from tracegraph.numpy.index_modes import checked
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.numpy.ufuncs import less_equal, logical_not, logical_or, not_equal
from tracegraph.tracing.operators import ArrayOperators
from tracegraph.tracing.tracer import Tracer

__all__ = ["choose", "piecewise", "select"]


@numpy_function
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """The first of several choices whose condition holds, by element.

    Shape: that to which conditions and choices broadcast.
    Dtype: the common one of the choices and `default`.

    Raises:
        ValueError: the lists differ in length, or the shapes do not broadcast.
        TypeError: a condition is not of booleans.

    >>> tnp.select([np.array([True, False])], [np.array([1, 2])], default=-1)
    array([ 1, -1])
    """
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ValueError(
            f"select needs as many choices as conditions, got {len(condlist)} and {len(choicelist)}"
        )
    conditions = [as_array(condition) for condition in condlist]
    for number, condition in enumerate(conditions):
        if condition.dtype != np.bool_:
            raise TypeError(
                f"condition {number} of select is of {condition.dtype}, and should be of booleans; "
                "write condition != 0"
            )
    choices = [v if is_python_number(v) else as_array(v) for v in (*choicelist, default)]
    dtype = result_type(*map(type_of, choices))
    *choices, result = (unchecked(v, dtype) for v in choices)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return laid_out(result, None)


@numpy_function
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Elements of the arrays in a sequence, or of the rows of one array: `a` says which by element.

    Static numbers of choices must be in range. Traced ones are limited to it, as with mode "clip";
    with "wrap" they are taken modulo the number of choices.

    Shape: that to which `a` and the choices broadcast.
    Dtype: the common one of the choices.

    Raises:
        TypeError: `a` does not hold integers.
        ValueError: there are no choices, the shapes do not broadcast, or a static number is out of
            range.

    >>> tnp.choose([1, 0, 1], [[10, 20, 30], [11, 21, 31]])
    array([11, 20, 31])
    """
    a = as_array(a)
    if a.dtype.kind not in "biu" or a.dtype == np.uint64:
        raise TypeError(f"choose needs integers that fit into int64, got {a.dtype}")
    one_array = hasattr(choices, "dtype")
    rows = as_array(choices) if one_array else list(choices)
    count = len(rows)
    if count == 0:
        raise ValueError("choose needs at least one choice, got none")
    which = checked(as_array(a, np.int64), count, mode, "choice array")
    if one_array:
        result = _of_rows(which, rows)
    else:
        arrays = [v if is_python_number(v) else as_array(v) for v in rows]
        dtype = result_type(*map(type_of, arrays))
        *arrays, result = (unchecked(v, dtype) for v in arrays)
        for k, choice in reversed([*enumerate(arrays)]):
            result = where(less_equal(which, k), choice, result)
        shape = broadcast_shapes(which.shape, result.shape)
        result = broadcast_to(lifted(result), shape)
    return stored("choose", laid_out(result, None), out, "unsafe")


def _of_rows(which: Any, rows: Any) -> Any:
    """`rows[which[i], i]` for each index i, after broadcasting."""
    shape = broadcast_shapes(which.shape, rows.shape[1:])
    new = (1,) * (len(shape) + 1 - rows.ndim)
    rows = broadcast_to(reshape(rows, (rows.shape[0], *new, *rows.shape[1:])), (len(rows), *shape))
    mesh = np.ogrid[tuple(slice(n) for n in shape)]
    return lifted(rows)[(which, *mesh)]


@numpy_function
def piecewise(
    x: Any,
    condlist: Any,
    funclist: Any,
    *args: Any,
    **kw: Any,
) -> Any:
    """What functions give where conditions hold, by element.

    A last function without a condition is for the rest; elements without a function become 0.
    Under a traced condition a function gets all of `x`, and what it gives is chosen by element;
    under a static one it gets the elements where that holds, as in NumPy. Values stand for
    functions that return them. `args` and `kw` are passed to the functions.

    Shape: that of `x`.
    Dtype: that of `x`.

    Raises:
        ValueError: there are neither as many functions as conditions nor one more.
        IndexError: a condition has another shape.

    >>> tnp.piecewise(np.array([-2.0, 3.0]), [np.array([True, False])], (lambda v: -v, 7))
    array([2., 7.])
    """
    x = _ours(as_array(x))
    listed = isinstance(condlist, (list, tuple))
    if (not listed and np.ndim(condlist) == 0) or (x.ndim and np.ndim(condlist[0]) == 0):
        condlist = [condlist]  # one condition stands for a list of one
    conditions = [_boolean(as_array(c)) for c in condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected, got {len(funclist)}"
        )
    if len(funclist) > len(conditions):
        rest = conditions[0]
        for condition in conditions[1:]:
            rest = logical_or(rest, condition)
        conditions.append(logical_not(rest))
    result = _ours(zeros_like(x))
    for condition, function in zip(conditions, funclist, strict=True):
        result = _piece(result, x, condition, function, args, kw)
    return result


def _ours(x: Any) -> Any:
    """A tracer while tracing, else an Array."""
    x = lifted(x)
    return x if isinstance(x, ArrayOperators) else asarray(x)


def _boolean(condition: Any) -> Any:
    return (
        condition if condition.dtype == np.bool_ else not_equal(condition, condition.dtype.type(0))
    )


def _piece(
    result: Any, x: Any, condition: Any, function: Any, args: tuple[Any, ...], kw: dict[str, Any]
) -> Any:
    if x.shape[: condition.ndim] != condition.shape:
        raise IndexError(
            f"boolean index of shape {condition.shape} did not match x of shape {x.shape}"
        )
    whole = reshape(condition, condition.shape + (1,) * (x.ndim - condition.ndim))
    if not callable(function):
        return where(whole, as_array(function, x.dtype), result)
    if isinstance(condition, Tracer) or condition.ndim == 0:
        return where(whole, as_array(function(x, *args, **kw), x.dtype), result)
    condition = np.asarray(condition)
    if not condition.any():
        return result
    return result.at[condition].set(function(x[condition], *args, **kw))
