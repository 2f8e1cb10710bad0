"""Effects: debug_print, require (a check), report_step (progress).

Each takes the token of the effect before it and returns the next.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from tracegraph import progress
from tracegraph.ir.derivative import Constant
from tracegraph.ir.effects import TOKEN, Failure, PrintFormat
from tracegraph.ir.op import Effect, Op, register
from tracegraph.ir.types import ArrayType
from tracegraph.progress import Monitor

Array = np.ndarray[Any, Any]


def _require_token(token: ArrayType) -> ArrayType:
    if token != TOKEN:
        raise TypeError(f"the first operand must be a token, {TOKEN}, not {token}")
    return token


def _require_scalar(value: ArrayType, dtype: type) -> None:
    needed = ArrayType(np.dtype(dtype))
    if value.strong() != needed:
        raise TypeError(f"the second operand must be {needed}, not {value}")


def _print_type(token: ArrayType, *arrays: ArrayType, format: PrintFormat) -> ArrayType:
    count = format.positional + len(format.names)
    if len(arrays) != count:
        raise TypeError(f"the format takes {count} arrays, not {len(arrays)}")
    return _require_token(token)


def _print(token: Array, *arrays: Array, format: PrintFormat) -> Array:
    builtins.print(format.render(arrays))
    return token


def _require_type(token: ArrayType, ok: ArrayType, *, failure: Failure) -> ArrayType:
    _require_scalar(ok, np.bool_)
    return _require_token(token)


def _require(token: Array, ok: Array, *, failure: Failure) -> Array:
    if not ok:
        raise failure.exception()
    return token


def _report_type(token: ArrayType, step: ArrayType, *, monitor: Monitor) -> ArrayType:
    _require_scalar(step, np.int64)
    return _require_token(token)


def _report(token: Array, step: Array, *, monitor: Monitor) -> Array:
    progress.report(monitor, int(step))
    return token


def _effect(
    name: str, doc: str, type_rule: Callable[..., Any], reference: Callable[..., Any]
) -> Op:
    """Register an effect, which has tests of its own instead of samples."""
    form, derivative = Effect(), Constant()
    return register(Op(name, doc, type_rule, reference, form, lambda: (), derivative=derivative))


debug_print = _effect("debug_print", "Prints the arrays in a format.", _print_type, _print)

require = _effect(
    "require", "Raises a failure where the condition does not hold.", _require_type, _require
)

report_step = _effect("report_step", "Shows how many steps a loop has done.", _report_type, _report)
