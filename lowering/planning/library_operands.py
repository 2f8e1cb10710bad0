"""Operands of library calls: strided arrays in memory, as the library takes them."""

from __future__ import annotations

from collections.abc import Callable

from lowering.plan.library_call import StridedArray
from lowering.planning.region_builder import RegionBuilder
from lowering.planning.stage import space_index
from tracegraph.ir import scalar
from tracegraph.ir.program import Atom
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Expr, Load
from tracegraph.ir.types import row_major_strides

Accepts = Callable[[StridedArray], bool]


def is_contiguous(array: StridedArray) -> bool:
    """Whether an array is row-major without gaps."""
    return array.strides == row_major_strides(array.shape)


def operand(builder: RegionBuilder, atom: Atom, accepts: Accepts = is_contiguous) -> StridedArray:
    """An operand in place, if the library `accepts` it as it is; else a contiguous copy of it.

    Where the device cannot give a captured call new addresses, arguments are read from copies in
    scratch, which the graph fills first.
    """
    index = space_index(atom.type.shape)
    value = builder.element(atom, index, None)
    found = strided(value, atom.type.shape)
    if found is None or not accepts(found):
        buffer = builder.materialize(atom.type, value, index)
        found = strided(Load.make(buffer, index), atom.type.shape)
        assert found is not None
    moves = found.buffer.space in ("input", "output")
    if moves and not builder.context.costs.updates_libraries:
        found = replace(found, buffer=builder.context.stage_input(found.buffer))
    return found


def strided(value: Expr, shape: tuple[int, ...]) -> StridedArray | None:
    """The array whose element at every index of a shape is `value`, if it is strided in memory."""
    if not isinstance(value, Load) or value.guard is not None:
        return None
    strides, offset = [0] * len(shape), 0
    step = 1
    for position, extent in zip(
        reversed(value.indices), reversed(value.buffer.type.shape), strict=True
    ):
        if type(position) is scalar.Axis:  # most are
            strides[position.number] += step
            step *= extent
            continue
        form = scalar.affine(position)
        if form is None:
            return None
        offset += form[1] * step
        for axis, factor in form[0].items():
            strides[axis] += factor * step
        step *= extent
    return StridedArray(value.buffer, offset, shape, tuple(strides))
