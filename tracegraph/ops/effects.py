"""Effects: printing, failing, and reporting how far a loop is.

Each takes the token left by the effect before it, and leaves the next.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tracegraph import progress
from tracegraph.effects import TOKEN, Failure, Monitor, PrintFormat
from tracegraph.op import Effect, Op, register
from tracegraph.types import ArrayType

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


debug_print = register(
    Op(
        name="debug_print",
        doc="Prints the arrays in a format.",
        type_rule=_print_type,
        reference=_print,
        form=Effect(),
        samples=lambda: (),
    )
)

require = register(
    Op(
        name="require",
        doc="Raises a failure where the condition does not hold.",
        type_rule=_require_type,
        reference=_require,
        form=Effect(),
        samples=lambda: (),
    )
)

report_step = register(
    Op(
        name="report_step",
        doc="Shows how many steps a loop has done.",
        type_rule=_report_type,
        reference=_report,
        form=Effect(),
        samples=lambda: (),
    )
)
