"""Calls split along one dimension: one call per column, or one per step of a running fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.evaluation.instructions import UfuncMethod


def in_columns(function: Callable[..., Any] | UfuncMethod, dim: int) -> Callable[..., None]:
    """The same function of arrays and an output, applied to one index of a dimension at a time."""
    fill = _with_output_last(function)

    def each_column(*arrays: Array) -> None:
        for column in range(arrays[-1].shape[dim]):
            fill(*[_column(array, dim, column) for array in arrays])

    return each_column


def stepwise(ufunc: np.ufunc, axis: int) -> Callable[[Array, Array], None]:
    """`accumulate` along an axis as a function (values, out), with one call per step."""

    def step_by_step(values: Array, out: Array) -> None:
        before = _column(out, axis, 0)
        before[...] = _column(values, axis, 0)
        for column in range(1, out.shape[axis]):
            after = _column(out, axis, column)
            ufunc(before, _column(values, axis, column), out=after)
            before = after

    return step_by_step


def _column(array: Array, dim: int, column: int) -> Array:
    if not array.ndim or array.shape[dim] == 1:
        return array
    found: Array = array[(*(slice(None),) * dim, slice(column, column + 1))]
    return found


def _with_output_last(function: Callable[..., Any] | UfuncMethod) -> Callable[..., Any]:
    """The function with its output as the last positional argument."""
    if isinstance(function, UfuncMethod):
        method, before, after = function.bound, function.before, function.after
        return lambda operand, out: method(operand, *before, out, *after)
    if isinstance(function, np.ufunc):  # some take `out` by keyword only
        return lambda *arrays: function(*arrays[:-1], out=arrays[-1])
    return function
