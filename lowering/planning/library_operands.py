"""Operands of library calls: strided arrays in memory, copied only if the library needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.kernel import space_index
from lowering.plan.nests.strides import offset_in
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir import scalar
from tracegraph.ir.program import Atom
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Expr
from tracegraph.ir.scalar_values import Load
from tracegraph.ir.types import row_major_strides

_T = TypeVar("_T")

Accept = Callable[[StridedArray], _T | None]
"""The form in which a library takes an array, or None if it does not."""


def contiguous(array: StridedArray) -> StridedArray | None:
    """The array with row-major strides, if it has them; along one element any stride will do."""
    dense = row_major_strides(array.shape)
    if all(map(_matches, array.shape, array.strides, dense)):
        return replace(array, strides=dense)
    return None


def _matches(extent: int, stride: int, wanted: int) -> bool:
    return extent == 1 or stride == wanted


def operand(builder: RegionBuilder, atom: Atom, accept: Accept[_T]) -> _T:
    """An operand in the form that the library accepts: in place, or as a contiguous copy.

    If a captured call cannot be given new addresses, arguments are copied to scratch at the start
    of the graph.
    """
    array, found = _placed(builder, atom, accept)
    if builder.context.is_movable(array.buffer):
        still = accept(in_scratch(builder, array))
        assert still is not None
        return still
    return found


def in_scratch(builder: RegionBuilder, array: StridedArray) -> StridedArray:
    """An array in the scratch copy of its buffer, if that is an argument that moves."""
    if not builder.context.is_movable(array.buffer):
        return array
    return replace(array, buffer=builder.context.scratch_copy_of(array.buffer))


def in_memory(builder: RegionBuilder, atom: Atom, accept: Accept[_T]) -> _T:
    """An operand that may move: in place if it is accepted, or as a contiguous copy."""
    return _placed(builder, atom, accept)[1]


def view(builder: RegionBuilder, atom: Atom) -> StridedArray | None:
    """The operand as an array that is in memory, if it is one."""
    shape = atom.type.shape
    return strided(builder.element(atom, space_index(shape), None), shape)


def _placed(builder: RegionBuilder, atom: Atom, accept: Accept[_T]) -> tuple[StridedArray, _T]:
    shape = atom.type.shape
    index = space_index(shape)
    value = builder.element(atom, index, None)
    array = strided(value, shape)
    found = None if array is None else accept(array)
    if array is None or found is None:
        array = StridedArray.whole(builder.materialize(atom.type, value, index))
        found = accept(array)
    assert found is not None
    return array, found


def strided(value: Expr, shape: tuple[int, ...]) -> StridedArray | None:
    """The strided array whose element at each index of a shape is `value`, if it is one."""
    if not isinstance(value, Load) or value.guard is not None:
        return None
    strides = [0] * len(shape)
    form = scalar.affine(offset_in(value.buffer.type.shape, value.indices))
    if form is None:
        return None
    for axis, factor in form[0].items():
        strides[axis] += factor
    return StridedArray(value.buffer, form[1], shape, tuple(strides))
