"""Scalar instructions as Python expressions: a NumPy call takes ten times as long for one element.

The results have the same bits. Python computes in float64. A float32 result is then rounded twice,
which is exact: float64 has more than twice the digits of float32 (innocuous double rounding). NumPy
computes what Python refuses: integers that overflow, which wrap, and divisions by zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.instructions import DynamicView, Instruction
from lowering.host.tuning.calls.array_expressions import TunedFrame

_ARITHMETIC: dict[object, str] = {np.add: "+", np.subtract: "-", np.multiply: "*"}
_COMPARISONS: dict[object, str] = {
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
    np.equal: "==",
    np.not_equal: "!=",
}
_LOGIC: dict[object, str] = {
    np.logical_and: "and",
    np.logical_or: "or",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
}
_OUT_OF_RANGE = "(ValueError, OverflowError)"
_FLOATS = (np.float32, np.float64)


def scalar_lines(
    instruction: Instruction, frame: TunedFrame, names: list[str], out: str, exact: str
) -> list[str]:
    """The lines of an instruction whose operands and output are single numbers.

    `names` are those of the inputs, `out` is the name of the output, and `exact` the NumPy call.
    Empty if Python has no such operation.
    """
    found = _value(instruction, frame, names)
    if found is None:
        return []
    value, refused = found
    line = f"{frame.target(out)} = {value}"
    return [line] if not refused else ["try:", f"    {line}", f"except {refused}:", f"    {exact}"]


def scalar_value(instruction: Instruction, frame: TunedFrame, names: list[str]) -> str | None:
    """The result of such an instruction as an expression, if Python always computes it."""
    value, refused = _value(instruction, frame, names) or ("", "")
    return value if value and not refused else None


def _value(instruction: Instruction, frame: TunedFrame, names: list[str]) -> tuple[str, str] | None:
    values = (*instruction.inputs, instruction.output)
    if any(r is None or r.shape or isinstance(r, DynamicView) for r in values):
        return None
    operands = [
        frame.number(value, name) if is_number(value.dtype) else ""
        for value, name in zip(instruction.inputs, names, strict=True)
    ]
    return _computation(instruction, operands)


def _computation(instruction: Instruction, operands: list[str]) -> tuple[str, str] | None:
    """The Python expression with the same result, and the errors that it may raise."""
    function, dtypes = instruction.function, {r.dtype for r in instruction.inputs}
    assert instruction.output is not None
    result = instruction.output.dtype
    if function is numpy_calls.where:
        alike = all(value.dtype == result for value in instruction.inputs[1:])
        chosen = "{1} if {0} else {2}".format(*operands)
        return (chosen, "") if alike and all(operands) and is_number(result) else None
    if len(dtypes) != 1 or not all(operands) or not is_number(result):
        return None
    (dtype,) = dtypes
    if function is numpy_calls.store or function is numpy_calls.convert:
        return _conversion(operands[0], dtype, result)
    if len(operands) != 2:
        return None
    joined = f"{operands[0]} {{}} {operands[1]}".format
    if result == np.bool_:
        known = _LOGIC if dtype == np.bool_ else _COMPARISONS
        return (joined(known[function]), "") if function in known else None
    if dtype != result:
        return None
    if function in _ARITHMETIC:
        return joined(_ARITHMETIC[function]), "" if dtype in _FLOATS else _OUT_OF_RANGE
    if function is np.divide and dtype in _FLOATS:
        return joined("/"), "ZeroDivisionError"
    return None


def _conversion(
    operand: str, source: np.dtype[Any], target: np.dtype[Any]
) -> tuple[str, str] | None:
    """The same number, if the conversion rounds at most once."""
    if source == target or (source in _FLOATS and target in _FLOATS):
        return operand, ""
    if source.kind in "biu" and target.kind in "iu":
        return operand, _OUT_OF_RANGE
    if source.kind in "biu" and target == np.float64:
        return operand, ""
    return None


def is_number(dtype: np.dtype[Any]) -> bool:
    """Whether Python has its values."""
    return dtype.kind in "biu" or dtype in _FLOATS
