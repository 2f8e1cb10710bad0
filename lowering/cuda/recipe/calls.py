"""Calls of libraries in recipes: their fields as JSON, and back.

    value := number | string | bool | null | [value…]
           | {"array": [buffer, offset, shape, strides]}
           | {"matrix": [buffer, offset, batch stride, row stride, column stride]}
           | {"op": name} | {"attributes": {name: attribute}}

A buffer is its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from lowering.plan.calls.fourier import FourierTransform
from lowering.plan.calls.lapack import (
    BatchedCholesky,
    BatchedLU,
    BatchedSolve,
    LapackRoutine,
    TriangularSolve,
)
from lowering.plan.calls.library_call import LibraryCall, StridedArray
from lowering.plan.calls.matrix_product import MatrixOperand, MatrixProduct
from lowering.plan.nests.buffer import Buffer
from tracegraph.errors import MalformedTargetError
from tracegraph.ir.op import Op, Opaque
from tracegraph.ir.stored.attributes import from_json, to_json

KINDS: Mapping[str, type[LibraryCall]] = {
    kind.__name__: kind
    for kind in (
        MatrixProduct,
        FourierTransform,
        LapackRoutine,
        TriangularSolve,
        BatchedCholesky,
        BatchedLU,
        BatchedSolve,
    )
}
"""The calls that recipes may have, by name."""


def fields_to_json(call: LibraryCall, number: Callable[[Buffer], int]) -> dict[str, Any]:
    """The fields of a call; `number` gives that of a buffer."""
    return {each.name: _written(getattr(call, each.name), number) for each in fields(call)}  # type: ignore[arg-type]


def _written(value: Any, number: Callable[[Buffer], int]) -> Any:
    match value:
        case StridedArray():
            shape, strides = list(value.shape), list(value.strides)
            return {"array": [number(value.buffer), value.offset, shape, strides]}
        case MatrixOperand():
            strides = [value.batch_stride, value.row_stride, value.column_stride]
            return {"matrix": [number(value.buffer), value.offset, *strides]}
        case Op():
            return {"op": value.name}
        case Mapping():
            return {"attributes": {name: to_json(item) for name, item in value.items()}}
        case tuple():
            return [_written(item, number) for item in value]
    return to_json(value)


def call_from_json(kind: str, written: Mapping[str, Any], buffers: Sequence[Buffer]) -> LibraryCall:
    """The call of a class in `KINDS` with these fields.

    Raises:
        MalformedTargetError: there is no such class, or it has other fields.
    """
    cls: Any = KINDS.get(kind)
    if cls is None or {each.name for each in fields(cls)} != set(written):
        raise MalformedTargetError(f"no call of a library is a {kind} with these fields")
    try:
        call: LibraryCall = cls(**{name: _read(item, buffers) for name, item in written.items()})
        for array in call.operands:
            if not _is_inside(array):
                raise MalformedTargetError("a call of a library has an array outside of its buffer")
        str(call.name)
        return call
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        if isinstance(error, MalformedTargetError):
            raise
        raise MalformedTargetError(f"a call of a library is none: {error}") from error


def _is_inside(array: StridedArray) -> bool:
    if len(array.shape) != len(array.strides) or min(array.shape, default=0) < 0:
        return False
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    first = array.offset + sum(step for step in steps if step < 0)
    last = array.offset + sum(step for step in steps if step > 0)
    return 0 in array.shape or (first >= 0 and last < array.buffer.type.size)


def _read(value: Any, buffers: Sequence[Buffer]) -> Any:
    match value:
        case {"array": [int(n), int(offset), list(shape), list(strides)]}:
            return StridedArray(_buffer(n, buffers), offset, _ints(shape), _ints(strides))
        case {"matrix": [int(n), int(offset), int(batch), int(row), int(column)]}:
            return MatrixOperand(_buffer(n, buffers), offset, batch, row, column)
        case {"op": str(name)}:
            return _op(name)
        case {"attributes": dict(items)}:
            return {str(name): from_json(item) for name, item in items.items()}
        case list():
            return tuple([_read(item, buffers) for item in value])
    return from_json(value)


def _buffer(number: int, buffers: Sequence[Buffer]) -> Buffer:
    if not 0 <= number < len(buffers):
        raise MalformedTargetError(f"there is no buffer {number}")
    return buffers[number]


def _ints(values: list[Any]) -> tuple[int, ...]:
    if not all(type(value) is int for value in values):
        raise MalformedTargetError("a shape has something else than numbers")
    return tuple(values)


@cache
def _op(name: str) -> Op:
    """An operation as libraries know it: by its name alone. What it computes is not needed."""
    return Op(name, f"The operation {name} of a library.", _unknown, _unknown, Opaque(), tuple)


def _unknown(*operands: Any, **attributes: Any) -> Any:
    raise NotImplementedError("what this operation computes is not known here")
