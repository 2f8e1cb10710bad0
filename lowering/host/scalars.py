"""Instructions on single numbers, done by Python: NumPy takes ten times as long for one element.

The results are the same bits. Sums, differences and products of float64 are those of Python; of
float32 they are rounded twice, which changes nothing where the wider format has more than twice the
digits. Integers that leave their range are left to NumPy, which wraps them round.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.host import functions
from lowering.host.frame import Frame, Step
from lowering.host.registers import Instruction, Late

Compute = Callable[[Any, Any], Any]

_ARITHMETIC: dict[object, Compute] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
}
_COMPARISONS: dict[object, Compute] = {
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
_LOGIC: dict[object, Compute] = {
    np.logical_and: operator.and_,
    np.logical_or: operator.or_,
}


def scalar_step(instruction: Instruction, frame: Frame, slots: list[int]) -> Step | None:
    """The step of an instruction whose operands and output are single numbers, by Python.

    `slots` are those of the inputs and of the output. None if Python has no such operation.
    """
    registers = (*instruction.inputs, instruction.output)
    if any(r is None or r.shape or isinstance(r, Late) for r in registers):
        return None
    if instruction.function is functions.store:
        return _copy(instruction, frame, slots)
    compute = _computation(instruction)
    if compute is None:
        return None
    return _binary(compute, frame.step(instruction.function, slots), frame, slots)


def _computation(instruction: Instruction) -> Compute | None:
    """The operation of Python, where it has one that gives the same result."""
    function, dtypes = instruction.function, {r.dtype for r in instruction.inputs}
    if len(instruction.inputs) != 2 or len(dtypes) != 1 or not isinstance(function, np.ufunc):
        return None
    (dtype,) = dtypes
    assert instruction.output is not None
    if instruction.output.dtype == dtype and _is_number(dtype):
        return _ARITHMETIC.get(function)
    if instruction.output.dtype != np.bool_:
        return None
    if dtype == np.bool_:
        return _LOGIC.get(function)
    return _COMPARISONS.get(function) if _is_number(dtype) else None


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iu" or dtype in (np.float32, np.float64)


def _binary(compute: Compute, exact: Step, frame: Frame, slots: list[int]) -> Step:
    values = frame.values
    left, right, out = map(frame.cell, slots)

    def run() -> None:
        try:
            values[out][()] = compute(values[left][()], values[right][()])
        except ValueError:  # out of the range of the dtype
            exact()

    return run


def _copy(instruction: Instruction, frame: Frame, slots: list[int]) -> Step | None:
    (source,), target = instruction.inputs, instruction.output
    assert target is not None
    if source.dtype != target.dtype or not (_is_number(source.dtype) or source.dtype == np.bool_):
        return None
    values = frame.values
    value, out = map(frame.cell, slots)

    def run() -> None:
        values[out][()] = values[value][()]

    return run
